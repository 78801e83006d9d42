"""Export and import: what comes out of one store goes into another, and comes out of that byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from memory_client import GrantSpec, MessageDraft, Permission

from memoryd.domain.transfer.bring_in import bring_in
from memoryd.domain.transfer.export import export
from memoryd.domain.transfer.records import read_record, record_line
from memoryd.errors import Conflict, InvalidArgument, LimitExceeded, NotFound
from memoryd.model.change import ChangeSet
from memoryd.model.memory import Source
from memoryd.model.work import EXTRACTION_JOB, Work, WorkState
from tests.builders import NOW, STORES, Local, open_duckdb, open_kind, ports_over, ram_store
from tests.forking import run_command
from tests.support import Daemon, running

NO_MODEL = '[embedding]\nprovider = "none"\n[learning]\nextractor = "none"\n'
HOSTILE = [
    "\u202eevil",
    "e\u0301",
    "😀" * 40,
    'quote " and \\ back',
    "line\nbreak\ttab",
    "\u2028 sep",
    "</script>",
    "ı İ ß",
]


async def exported(ports, *, user_id: str = "", most_bytes: int = 1 << 20) -> list[str]:
    lines, cursor = [], ""
    while True:
        part = await export(ports, user_id=user_id, cursor=cursor, most_bytes=most_bytes)
        lines += part.lines
        cursor = part.next_cursor
        if not cursor:
            return lines


async def filled(client: Local, seed: int) -> None:
    """Write of all kinds for several users, chats and agents, and take some of it back."""
    chance = random.Random(seed)
    for n in range(60):
        user = client.acting_for(
            user_id=chance.choice(["alice", "bob", "ünï"]), chat_id=(chat := chance.choice(["", "c1", "c2"])),
            agent_id=chance.choice(["default", "other"]),
        )  # fmt: skip
        text = chance.choice([*HOSTILE, "My sister Anna lives in Rome", "My sister Anna lives in Paris", "I like tea"])
        thread = f"t{chance.randrange(3)}"
        step = chance.randrange(8)
        if step <= 2:
            await user.add(
                f"{text} {n if step else ''}".strip(), tags=["a", "b"], metadata={"k": text}, shared=bool(chat),
                source=Source(speaker="Anna", message_ids=("m1",)), expire_time=NOW + timedelta(days=n + 1),
            ) if step else await user.add(text)  # fmt: skip
        elif step <= 4:
            await user.append(thread, [MessageDraft(content=text), MessageDraft(content="ok", role="assistant")])
        elif step == 5:
            await user.set_working_memory(text)
        elif step == 6:
            try:
                await user.set_summary(thread, text)
            except NotFound:
                continue
        else:
            memories = (await user.page(page_size=100)).memories
            if memories:
                await user.delete(chance.choice(memories).id)
    await client.search("tea")
    await client.rename_entity("Anna", "Anna Miller") if [
        p for p in (await client.people()).people if p.name == "Anna"
    ] else None


MOVES = [(kind, kind) for kind in STORES] + ([("duckdb", "pg"), ("pg", "duckdb")] if "pg" in STORES else [])
"""From which kind of store to which."""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("kind", "to"), MOVES)
async def test_what_comes_out_goes_in_and_comes_out_again_byte_for_byte(folder, seed, kind, to):
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    async with ports_over(open_kind(kind, folder / "a")) as ports:
        client = Local(ports, lambda: NOW, user_id="alice")
        await filled(client, seed)
        lines = await exported(ports)
        assert lines == await exported(ports, most_bytes=1), "parts of one line each"
        mine = await exported(ports, user_id="alice")
        assert {line for line in lines if '"user_id":"alice"' in line and '"chat_id"' not in line} <= set(mine)
        assert set(mine) <= set(lines)
        page = await client.page(page_size=100)
    kinds = {json.loads(line)["type"] for line in lines}
    assert {"memory", "thread", "message", "working_memory"} <= kinds
    async with ports_over(open_kind(to, folder / "b")) as ports:
        told = await bring_in(lines, ports, now=NOW, dry_run=True)
        assert len(lines) == told.new.total()
        assert [] == await exported(ports)
        for n in range(0, len(lines), 7):
            await bring_in(lines[n : n + 7], ports, now=NOW)
        assert lines == await exported(ports)
        again = await bring_in(lines, ports, now=NOW)
        assert (0, len(lines)) == (again.new.total(), again.known.total())
        assert lines == await exported(ports)
        client = Local(ports, lambda: NOW, user_id="alice")
        assert page.memories == (await client.page(page_size=100)).memories
        for thread in (await client.threads()).threads:
            await client.append(thread.id, MessageDraft(content="and it goes on"))


async def test_another_thing_of_the_same_id_stays(folder):
    async with ports_over(ram_store()) as ports:
        client = Local(ports, lambda: NOW, user_id="alice")
        await client.add("I like tea")
        await client.append("t", MessageDraft(content="hello"))
        await client.set_working_memory("ask")
        lines = await exported(ports)
        other = [
            line.replace("I like tea", "I like rum").replace("hello", "bye").replace("ask", "go") for line in lines
        ]
        for line in other:
            if line not in lines:
                with pytest.raises(Conflict, match="is there already"):
                    await bring_in([line], ports, now=NOW)
        done = await bring_in(other, ports, now=NOW, skips_conflicts=True)
        assert ({"memory": 1, "message": 1, "working_memory": 1}, {"thread": 1, "session": 1}) == (
            dict(done.kept), dict(done.known)
        )  # fmt: skip
        assert lines == await exported(ports)


async def test_a_line_that_is_none_is_refused_by_name_and_nothing_is_stored(folder):
    async with ports_over(ram_store()) as ports:
        client = Local(ports, lambda: NOW, user_id="alice")
        await client.add("I like tea", tags=["a"])
        await client.append("t", MessageDraft(content="hello"))
        lines = await exported(ports)
    memory = json.loads(next(line for line in lines if '"memory"' in line))
    message = json.loads(next(line for line in lines if '"type":"message"' in line))
    source = {"message_ids": [1]}
    wrong = [
        ("{", "no JSON"), ("[]", "no JSON object"), ('{"type":"x"}', "none of grant"), ("[" * 100_000, "no JSON"),
        ('{"type":["memory"]}', "none of"), ('{"type":"memory"}', "is missing"),
        (memory | {"idd": "x"}, "idd is not known"), (memory | {"id": 3}, "id must be"),
        (memory | {"id": ""}, "is empty"), (memory | {"create_time": "yesterday"}, "create_time is no datetime"),
        (memory | {"create_time": "2026-01-01T00:00:00"}, "no time zone"),
        (memory | {"kind": "wish"}, "kind is no Kind"), (memory | {"scope": {}}, "exactly one"),
        (memory | {"scope": {"user_id": 1}}, "scope.user_id must be"), (memory | {"tags": "a"}, "tags must be a list"),
        (memory | {"metadata": ["a"]}, "must be an object"), (memory | {"content": "a\0b"}, "content must be"),
        (memory | {"content": "\ud800"}, "content must be"), (memory | {"confidence": True}, "confidence must be"),
        (memory | {"trust": "root"}, "trust is no Trust"), (memory | {"content": "x" * 9000}, "content"),
        (memory | {"source": source}, r"message_ids\[0\]"), (memory | {"agent_id": " x "}, "agent_id"),
        (message | {"seq": 0}, "at least 1"), (message | {"thread_id": "nowhere"}, "comes first"),
    ]  # fmt: skip
    async with ports_over(ram_store()) as ports:
        for line, words in wrong:
            text = line if isinstance(line, str) else json.dumps(line)
            with pytest.raises((InvalidArgument, LimitExceeded), match=words):
                await bring_in([lines[0], text] if "comes first" not in words else [text], ports, now=NOW)
            assert [] == await exported(ports), words
        for cursor in ("x", "3", "[1,2,3,4,5,6]", '["","","","","",-1]', '["","","","","",true]', "[" * 9999):
            with pytest.raises(InvalidArgument, match="cursor"):
                await export(ports, user_id="", cursor=cursor, most_bytes=1)


async def test_what_was_learnt_is_not_learnt_again_and_what_was_not_is(folder):
    async with ports_over(ram_store()) as ports:
        client = Local(ports, lambda: NOW, user_id="alice")
        await client.append("done", MessageDraft(content="I like tea"))
        await client.append("new", MessageDraft(content="I like boats"))
        owner = (await client.thread("done")).owner
        work = [
            Work(kind=EXTRACTION_JOB, owner=owner, thread_id="done", seq=1, state=WorkState.IDLE, due_time=NOW),
            Work(kind=EXTRACTION_JOB, owner=owner, thread_id="new", seq=0, due_time=NOW),
        ]
        await ports.store.commits.write(ChangeSet(work=tuple(work)))
        lines = await exported(ports)
        assert 2 == sum('"work"' in line for line in lines)
    async with ports_over(ram_store()) as ports:
        for line in lines:
            await bring_in([line], ports, now=NOW)
        assert lines == await exported(ports)
        assert [] == await ports.store.work.find(states=[WorkState.WAITING], limit=9), "before its messages are there"
        for thread, learnt in (("done", 1), ("new", 0)):
            work = await ports.store.work.get(owner, EXTRACTION_JOB, thread)
            assert learnt == work.seq


async def test_what_is_written_during_an_export_breaks_nothing(folder):
    async with ports_over(ram_store()) as ports:
        client = Local(ports, lambda: NOW, user_id="alice")
        for n in range(6):
            await client.append(f"t{n}", [MessageDraft(content=f"{n} one"), MessageDraft(content="two")])
        lines, cursor, n = [], "", 0
        while n == 0 or cursor:
            part = await export(ports, user_id="", cursor=cursor, most_bytes=1)
            lines, cursor = lines + part.lines, part.next_cursor
            await client.append(f"t{n % 6}", MessageDraft(content="meanwhile"))
            n += 1
    async with ports_over(ram_store()) as ports:
        await bring_in(lines, ports, now=NOW)
        client = Local(ports, lambda: NOW, user_id="alice")
        threads = (await client.threads()).threads
        assert {f"t{n}" for n in range(6)} == {thread.id for thread in threads}
        for thread in threads:
            seqs = [message.seq for message in (await client.messages(thread.id, page_size=100)).messages]
            assert list(range(1, thread.last_seq + 1)) == seqs
            added = await client.append(thread.id, MessageDraft(content="after"))
            assert thread.last_seq + 1 == added.messages[0].seq


async def test_a_thread_that_stays_takes_no_messages_of_another_one(folder):
    async with ports_over(ram_store()) as ports:
        client = Local(ports, lambda: NOW, user_id="alice")
        await client.append("t", [MessageDraft(content=f"file {n}") for n in range(3)])
        lines = await exported(ports)
    async with ports_over(ram_store()) as ports:
        client = Local(ports, lambda: NOW + timedelta(hours=1), user_id="alice")
        await client.append("t", MessageDraft(content="mine"))
        with pytest.raises(Conflict, match="another thread 't' is there"):
            await bring_in(lines, ports, now=NOW)
        done = await bring_in(lines, ports, now=NOW, skips_conflicts=True)
        assert {"thread": 1, "session": 1, "message": 3} == dict(done.kept)
        for line in lines[2:]:  # as they come in calls of their own
            await bring_in([line], ports, now=NOW, skips_conflicts=True)
        assert ["mine"] == [message.content for message in (await client.messages("t")).messages]


async def test_an_import_is_repeated_although_the_store_has_gone_on(folder):
    async with ports_over(ram_store()) as ports:
        client = Local(ports, lambda: NOW, user_id="alice")
        await client.add("I like tea")
        await client.append("t", MessageDraft(content="hello"))
        lines = await exported(ports)
        await client.append("t", MessageDraft(content="more"))
        await client.set_summary("t", "They said hello.")
        await ports.store.memories.note_recalls({(m := (await client.page()).memories[0]).owner: {m.id: (NOW, 3, NOW)}})
        done = await bring_in(lines, ports, now=NOW)
        assert (0, len(lines)) == (done.new.total(), done.known.total())


async def test_what_a_store_was_told_to_erase_does_not_come_back_with_an_older_export(folder):
    store = open_duckdb(folder, ledger=folder / "ledger")
    async with ports_over(store) as ports:
        client = Local(ports, lambda: NOW, user_id="alice")
        bob = client.acting_for(user_id="bob")
        gone = (await client.add("my locker code is blue")).memory
        kept = (await client.add("I like tea")).memory
        await client.append("t", MessageDraft(content="hello"))
        await bob.add("I am Bob")
        lines = await exported(ports)
        later = Local(ports, lambda: NOW + timedelta(hours=1), user_id="alice")
        await later.delete(gone.id, purge=True)
        await later.delete_thread("t")
        await later.acting_for(user_id="bob").forget_user()
        done = await bring_in(lines, ports, now=NOW + timedelta(hours=2))
        assert {"memory": 2, "thread": 1, "session": 1, "message": 1} == {k: n for k, n in done.erased.items() if n}
        assert (0, {"memory": 1}) == (done.new.total(), dict(done.known))
        assert [kept.id] == [m.id for m in (await client.page()).memories]
        assert [] == await store.files.traces(gone.id)


async def test_the_working_memory_of_an_erased_user_stays_erased(folder):
    store = open_duckdb(folder, ledger=folder / "ledger")
    async with ports_over(store) as ports:
        client = Local(ports, lambda: NOW, user_id="alice")
        await client.set_working_memory("my locker code is blue")
        lines = await exported(ports)
        later = Local(ports, lambda: NOW + timedelta(hours=1), user_id="alice")
        await later.forget_user()
        assert {"working_memory": 1} == dict((await bring_in(lines, ports, now=NOW)).erased)
        assert "" == (await client.working_memory()).text
        newer = Local(ports, lambda: NOW + timedelta(hours=2), user_id="alice")
        await newer.set_working_memory("my locker code is red")
        again = await exported(ports)
        await newer.set_working_memory("")
        assert {"working_memory": 1} == dict((await bring_in(again, ports, now=NOW)).new), (
            "it was set after the erasure"
        )


async def test_lines_that_come_twice_or_hold_no_sense_are_refused(folder):
    async with ports_over(ram_store()) as ports:
        client = Local(ports, lambda: NOW, user_id="alice")
        await client.add("I like tea", metadata={"k": "v"})
        await client.append("t", [MessageDraft(content="one"), MessageDraft(content="two")])
        lines = await exported(ports)
    memory = json.loads(next(line for line in lines if '"memory"' in line))
    thread = json.loads(next(line for line in lines if '"type":"thread"' in line))
    message = json.loads(next(line for line in lines if '"content":"two"' in line))
    async with ports_over(open_duckdb(folder)) as ports:
        for wrong, words in (
            ([memory, memory], "comes twice"), ([memory | {"metadata": {"k": "\0"}}], "must be an object"),
            ([memory | {"confidence": -5}], "out of range"), ([memory | {"recall_count": 10**30}], "out of range"),
            ([thread | {"thread": thread["thread"] | {"last_seq": 2**70}}], "out of range"),
            ([thread | {"thread": thread["thread"] | {"summary": "x" * 40_000}}], "summary"),
            ([thread, message | {"seq": 3}], "belongs to another thread"),
            ([thread, message, message | {"seq": 1}], "belongs to another thread"),
        ):  # fmt: skip
            with pytest.raises((InvalidArgument, LimitExceeded, Conflict), match=words):
                await bring_in([json.dumps(line) for line in wrong], ports, now=NOW)
        await bring_in(lines, ports, now=NOW)
        assert lines == await exported(ports)


def test_a_record_is_read_as_it_was_written():
    line = (
        '{"type":"memory","id":"m","agent_id":"a","scope":{"user_id":"u"},"content":"x",'
        '"create_time":"2026-01-01T00:00:00.000001+00:00","event_time":"2026-01-01T00:00:00+00:00","tags":["b"]}'
    )
    assert line == record_line(read_record(line))
    assert line == record_line(read_record(line.replace("00:00:00.000001+00:00", "01:00:00.000001+01:00")))


def command(daemon: Daemon, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    env = {"PATH": os.environ["PATH"], "HOME": str(daemon.folder), "MEMORYD_EMBEDDING_PROVIDER": "none"}
    call = [sys.executable, "-m", "memoryd", *words, "--socket", daemon.endpoint.removeprefix("unix:")]
    return run_command(call, env=env, capture_output=True, input=stdin, check=False, timeout=120)


def test_the_commands_export_import_resume_and_notice_a_damaged_file(folder):  # noqa: PLR0915  one story
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    out = folder / "all.jsonl"
    with running(folder / "a", config=NO_MODEL) as daemon:
        client = daemon.client()
        for n in range(30):
            client.add(f"note {n} of tea " + "x" * 100)
            client.append("t", [MessageDraft(content=f"said {n}")])
        client.open_sandbox(GrantSpec(user_id="alice", permissions=frozenset({Permission.ADD})))
        client.issue_token(GrantSpec(user_id="bob", permissions=frozenset({Permission.ADD})))
        done = command(daemon, "export", "-o", str(out), "--json")
        assert 0 == done.returncode, done.stderr
        assert {"memory": 30, "message": 30, "thread": 1, "session": 1, "grant": 2} == json.loads(done.stdout)["counts"]
        assert 0o600 == out.stat().st_mode & 0o777
        whole = out.read_bytes()
        assert whole == command(daemon, "export").stdout
        assert b"secret" not in whole
        refused = command(daemon, "export", "-o", str(out))
        assert (2, True) == (refused.returncode, b"is there already" in refused.stderr)
        part, noted = Path(f"{out}.part"), Path(f"{out}.part.cursor")
        lines = whole.splitlines(keepends=True)
        begun = b"".join(lines[:1])
        part.write_bytes(begun + b'{"type":"memo')  # it ended while it wrote
        noted.write_text(json.dumps({"cursor": "", "bytes": len(begun), "user": ""}))
        out.unlink()
        halfway = command(daemon, "export", "-o", str(out))
        assert (2, True) == (halfway.returncode, b"--resume" in halfway.stderr)
        place = json.dumps(["", "", "", "grant", json.loads(lines[1])["id"], 0, 0, 0])
        part.write_bytes(b"".join(lines[:2]) + b'{"type":"memo')
        noted.write_text(json.dumps({"cursor": place, "bytes": len(lines[0] + lines[1]), "user": ""}))
        resumed = command(daemon, "export", "-o", str(out), "--resume")
        assert (0, whole) == (resumed.returncode, out.read_bytes()), resumed.stderr
        assert not part.exists()
        assert not noted.exists()
        alice = command(daemon, "export", "--user", "alice").stdout
        assert b'"grant"' not in alice
        assert alice.splitlines()[1:-1] == [
            line.rstrip() for line in lines if b'"user_id":"alice"' in line and b"grant" not in line
        ]
    with running(folder / "b", config=NO_MODEL) as daemon:
        for damaged, words in (
            (whole[:-30], b"damaged in line 66"), (b"".join(lines[:-1]), b"is cut"), (b"", b"is cut"),
            (whole.replace(b"note 3 ", b"note 9 "), b"not those"), (b"".join(lines[1:]), b"header"),
            (b"".join(lines[:5] + lines[6:]), b"not those"), (b"\xff\xfe\n", b"is no export of memoryd"),
        ):  # fmt: skip
            bad = command(daemon, "import", "-", stdin=damaged)
            assert (65, True) == (bad.returncode, words in bad.stderr), bad.stderr
        dry = command(daemon, "import", str(out), "--dry-run", "--json")
        assert {"memory": 30, "message": 30, "thread": 1, "session": 1, "grant": 2} == json.loads(dry.stdout)["new"]
        assert 0 == daemon.client().server_info().memory_count
        done = command(daemon, "import", str(out))
        assert (0, True) == (done.returncode, b"stored 2 grants, 30 memories" in done.stdout), done.stderr
        assert b"after the next start" in done.stderr
        assert whole == command(daemon, "export").stdout
        again = command(daemon, "import", "-", stdin=whole)
        assert (0, True) == (again.returncode, b"there already: " in again.stdout)
        assert "note 7 of tea" in daemon.client().search("note 7").hits[0].memory.content
        other = folder / "other.jsonl"
        changed = [line.replace(b"note 3 of", b"note 4 of") for line in lines[1:-1]]
        head = lines[0] + b"".join(changed)
        end = json.loads(lines[-1]) | {"sha256": hashlib.sha256(head).hexdigest()}
        other.write_bytes(head + json.dumps(end).encode() + b"\n")
        refused = command(daemon, "import", str(other))
        assert (1, True) == (refused.returncode, b"is there already" in refused.stderr)
        kept = command(daemon, "import", str(other), "--on-conflict", "skip")
        assert (0, True) == (kept.returncode, b"stay: 1 memory" in kept.stdout), kept.stderr
