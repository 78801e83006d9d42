"""Messages with long texts hold no one else up: their texts lie in pieces, and each read puts them together again."""

from __future__ import annotations

import base64
import json
import random
import re
from functools import partial

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_client import InvalidArgument, MessageDraft, MessageSearch, StoreDamaged, ToolCall

from memoryd.embedding.windows import later_windows
from memoryd.knowledge.grammar.names import any_stands_in, straight
from memoryd.model.change import NewMessage
from memoryd.model.conversation import Message, Role
from memoryd.model.conversation import ToolCall as Call
from memoryd.model.scope import Owner
from memoryd.model.validation import fold
from memoryd.store.conversation_rows import MESSAGE_COLUMNS, message_of, message_row
from memoryd.store.conversations import MessageSelector, numbered
from memoryd.store.duckdb import long_texts as pieces
from memoryd.store.duckdb.migrations import MIGRATIONS, long_texts
from memoryd.store.duckdb.proof import noted_of
from memoryd.store.duckdb.restoring import rewrite_copy
from tests.attack.slow_texts import grows_too_fast, growth
from tests.builders import ALICE, MEMORY_LIMIT, NOW, Local, open_database, open_duckdb, ports_over, ram_store, traces_in
from tests.test_releases import unpacked

MEBIBYTE = 1 << 20
BEFORE = MIGRATIONS[: MIGRATIONS.index(long_texts)]
HERON = MessageSearch(text="heron", top_k=5, before=2, after=2)
TEXTS = st.builds(
    lambda text, times: (text * times)[:100_000],
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9),
    st.integers(1, 3_000),
)


def said(seq: int, **texts) -> Message:
    return Message(
        id=f"m{seq}", agent_id="default", scope=ALICE, thread_id="t", seq=seq, session_id="s", role=Role.ASSISTANT,
        create_time=NOW, **{"content": "hello", **texts},
    )  # fmt: skip


def row_of(message: Message, *, terms: str = "") -> dict:
    return message_row(NewMessage(message, terms, ""), numbered(message.seq, 0), message.seq)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(TEXTS, st.lists(TEXTS, max_size=3), TEXTS, TEXTS)
def test_a_message_is_the_same_after_it_was_in_pieces_and_no_row_is_long(content, arguments, metadata, terms):
    name = "n" * 100 if len(arguments) == 3 else "tool"
    calls = tuple(Call(f"{name} {n}", argument, str(n)) for n, argument in enumerate(arguments * 20))
    message = said(1, content=content, tool_calls=calls, metadata=metadata)
    row, made = pieces.divided(row_of(message, terms=terms))
    assert all(len(row[name].encode()) <= pieces.MAX_ROW_BYTES for name in ("content", "details", "metadata", "terms"))
    assert all(len(piece["text"].encode()) <= 4 * pieces.PIECE_CHARACTERS for piece in made)
    held = [(piece["number"], piece["name"], piece["piece"], piece["text"]) for piece in made][::-1]
    (whole,) = pieces.whole(lambda *_: held, [tuple(row[name] for name in MESSAGE_COLUMNS)], MESSAGE_COLUMNS)
    assert message == message_of(whole)
    kept = row["terms"] or pieces.texts_of(held).get(row["number"], {}).get("terms", "")
    assert terms == kept
    if held:
        assert pieces.whole(lambda *_: held[1:], [tuple(row.get(n) for n in MESSAGE_COLUMNS)], MESSAGE_COLUMNS) is None


async def long_thread(memory: Local) -> list[Message]:
    trace = json.dumps({"steps": [f"step {n}: done" for n in range(2_000)]})
    name = "Zebedee Quillfeather"
    across = "y" * (pieces.PIECE_CHARACTERS * 3 - len('[["note", " Zeb')) + f" {name} " + "y" * 20_000
    await memory.append("t", [MessageDraft(content="the heron nests at the lake")])
    await memory.append("t", [MessageDraft(content="the pike " * 2_000, metadata=trace)])
    await memory.append("t", [MessageDraft(role="assistant", tool_calls=(ToolCall("note", across, "1"),))])
    await memory.append("t", [MessageDraft(content="short again", metadata=json.dumps({"note": "z" * 9_000}))])
    return list((await memory.messages("t", page_size=10)).messages)


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
async def test_long_messages_are_read_found_and_forgotten_as_any(kind, folder, clock):
    async with ports_over(open_duckdb(folder) if kind == "duckdb" else ram_store()) as ports:
        memory = Local(ports, clock, user_id="alice")
        first, pike, call, last = await long_thread(memory)
        assert ("the pike " * 2_000, 2_000) == (pike.content, len(json.loads(pike.metadata)["steps"]))
        assert "y Zebedee Quillfeather y" in call.tool_calls[0].arguments
        assert [first, pike, call, last] == list((await memory.messages("t", page_size=4)).messages)
        hits = (await memory.search_messages(MessageSearch(text="the pike", top_k=1, before=1, after=2))).hits
        assert [pike] == [hit.message for hit in hits]
        assert ([first], [call, last]) == (list(hits[0].before), list(hits[0].after))
        read = await ports.store.conversations.numbered(0, limit=10)
        assert [(m.content, m.tool_calls) for _, m in read] == [
            (m.content, m.tool_calls) for m in (first, pike, call, last)
        ]
        sizes = await ports.store.owners.sizes(limit=5)
        assert sum(len(m.content.encode()) for m in (first, pike, call, last)) == sizes.owners[0].content_bytes
        forgotten = await memory.forget_person("Zebedee Quillfeather", with_messages=True)
        assert 1 == forgotten.message_count
        assert [first, pike, last] == list((await memory.messages("t", page_size=10)).messages)


async def test_a_text_that_stands_in_two_pieces_leaves_a_trace_until_it_is_erased(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        memory = Local(ports, clock, user_id="alice")
        await long_thread(memory)
        held = await ports.store._writer.run(lambda con: con.execute("SELECT text FROM long_texts").fetchall())
        assert not [piece for (piece,) in held if "Zebedee" in piece]
        for text in ("Zebedee", "Quillfeather", "Zebedee Quillfeather", " Zebedee Quillfeather " + "y" * 9_000):
            assert "long_texts.text" in await traces_in(ports.store, text)
        assert not await traces_in(ports.store, "Zebedee Quillfeathers")
        await memory.delete_thread("t")
        assert not await traces_in(ports.store, "Zebedee")
        counted = await ports.store._writer.run(lambda con: con.execute("SELECT count(*) FROM long_texts").fetchall())
        assert [(0,)] == counted


async def test_a_message_that_is_erased_while_it_is_read_is_left_out(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        memory, conversations = Local(ports, clock, user_id="alice"), ports.store.conversations
        _, *_, last = await long_thread(memory)
        selector = MessageSelector(owner=Owner("default", ALICE), thread_id="t", limit=10)
        stale = conversations._selected(MESSAGE_COLUMNS, selector, 10)
        await memory.forget_person("Zebedee Quillfeather", with_messages=True)
        answers = [stale, conversations._selected(MESSAGE_COLUMNS, selector, 10)]
        found = conversations._whole(lambda: answers.pop(0))
        assert ([1, 2, last.seq], []) == ([message.seq for _, message in found], answers)


async def test_a_piece_that_is_lost_is_told_as_damage_and_no_cut_text_is_read(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        memory, conversations = Local(ports, clock, user_id="alice"), ports.store.conversations
        await long_thread(memory)
        await ports.store._writer.run(lambda con: con.execute("DELETE FROM long_texts WHERE piece = 1"))
        read = (
            memory.messages("t", page_size=10),
            conversations.numbered(0, limit=10),
            memory.search_messages(MessageSearch(text="the pike", top_k=1)),
        )
        for call in read:
            with pytest.raises(StoreDamaged, match="a piece of a long message"):
                await call


async def test_many_of_one_user_leave_searches_of_others_purges_and_compactions_as_they_are(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        eve, bob = (Local(ports, clock, user_id=user_id) for user_id in ("eve", "bob"))
        await bob.append("b", [MessageDraft(content="the heron of Zebedee nests at the lake")])
        await eve.append("t", [MessageDraft(content="hello", metadata=json.dumps({"steps": "x" * 1_000_000}))])
        await many(ports, 255)
        await bob.append("b", [MessageDraft(content="it nests there in May")])
        for _ in range(2):
            assert (
                "the heron of Zebedee nests at the lake" == (await bob.search_messages(HERON)).hits[0].message.content
            )
            assert 2 == len((await bob.messages("b")).messages)
            assert 4 == len(await ports.store.conversations.numbered(0, limit=4))
            await ports.store.files.compact()
        assert 1 == (await bob.forget_person("Zebedee", with_messages=True)).message_count
        assert 1_000_000 < sum(len(m.metadata) for m in (await eve.messages("t", page_size=4)).messages)
        await eve.delete_thread("t")


async def many(ports, count: int) -> None:
    """Write the first message of thread t again and again, with its pieces."""
    for n in range(1, count, 15):
        for table, more in (("messages", ", m.seq + i AS seq"), ("long_texts", "")):
            again = f"m.* REPLACE (m.id || i AS id, m.number + i AS number{more})"
            first = f"number = (SELECT min(number) FROM {table} WHERE thread_id = 't')"  # noqa: S608  our own names
            sql = f"INSERT INTO {table} SELECT {again} FROM {table} m, range({n}, {n + 15}) r(i) WHERE {first}"  # noqa: S608
            await ports.store._writer.run(lambda con, sql=sql: con.execute(sql))


def test_long_messages_of_an_older_store_are_moved_into_pieces(folder):
    path = folder / "memory.duckdb"
    opened = open_database(path, memory_limit_bytes=MEMORY_LIMIT, migrations=BEFORE)
    rng, wanted = random.Random(7), {}
    for seq in range(1, 300):
        texts = {"content": words(rng, (10, 7_000, 20_000)[seq % 3]), "metadata": words(rng, (0, 700_000)[seq % 2])}
        message = said(seq, **texts, tool_calls=(Call("note", words(rng, 9_000)),) if seq % 5 == 0 else ())
        row = row_of(message, terms=words(rng, 3 * (len(message.content) % 20_000)))
        con = opened.connection
        con.execute(f"INSERT INTO messages ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()])  # noqa: S608
        wanted[row["number"]] = (message, row["terms"])
    opened.connection.execute("DELETE FROM messages WHERE seq % 50 = 0")
    wanted = {number: held for number, held in wanted.items() if held[0].seq % 50}
    opened.close()
    assert path.stat().st_size > MEMORY_LIMIT / 2
    opened = open_database(path, memory_limit_bytes=MEMORY_LIMIT)
    con = opened.connection
    assert [("256.0 MiB",)] == con.execute("SELECT current_setting('memory_limit')").fetchall()
    longest = ", ".join(f"max(strlen({name}))" for name in ("content", "details", "metadata", "terms"))
    assert max(con.execute(f"SELECT {longest} FROM messages").fetchall()[0]) <= pieces.MAX_ROW_BYTES  # noqa: S608
    names = (*MESSAGE_COLUMNS, "terms")
    held = con.execute(f"SELECT {', '.join(names)} FROM messages").fetchall()  # noqa: S608
    assert sorted(wanted) == [row[names.index("number")] for row in held]
    for start in range(0, len(held), 20):
        for row in pieces.whole(
            lambda sql, params: con.execute(sql, params).fetchall(), held[start : start + 20], names
        ):
            assert wanted.pop(row[names.index("number")]) == (message_of(row[:-1]), row[-1])
    assert not wanted
    opened.close()


def words(rng: random.Random, size: int) -> str:
    return base64.b64encode(rng.randbytes(size * 3 // 4)).decode()


async def test_what_a_killed_process_put_aside_is_removed_by_the_next_start_and_looked_at_before(folder):
    aside = folder / "memory.duckdb.tmp"
    async with ports_over(open_duckdb(folder)) as ports:
        aside.mkdir(exist_ok=True)
        (aside / "duckdb_temp_storage_DEFAULT-0.tmp").write_bytes(b"the heron nests")
        assert aside / "duckdb_temp_storage_DEFAULT-0.tmp" in ports.store.files.paths()
    async with ports_over(open_duckdb(folder)) as ports:
        assert not aside.exists() or not list(aside.iterdir())


@pytest.mark.parametrize("schema", [1, 6, 17, 18])
def test_a_snapshot_is_made_of_a_state_of_any_schema(folder, schema):
    unpacked(schema, folder)
    path = folder / "memory.duckdb"
    store_id, transaction = noted_of(path)
    rewrite_copy(path, folder / "snapshot", store_id, transaction, memory_limit_bytes=MEMORY_LIMIT)
    with (
        duckdb.connect(str(folder / "snapshot"), read_only=True) as con,
        duckdb.connect(str(path), read_only=True) as old,
    ):
        count = "SELECT count(*) FROM memories"
        assert old.execute(count).fetchall() == con.execute(count).fetchall() != [(0,)]


async def test_long_messages_that_come_and_go_during_a_compaction_are_in_it_or_not(folder, clock, monkeypatch):
    async with ports_over(open_duckdb(folder)) as ports:
        memory, compactor = Local(ports, clock, user_id="alice"), ports.store.files._compactor
        await long_thread(memory)
        await memory.append("u", [MessageDraft(content="the heron " * 2_000)])
        read, copies = compactor._readers.read, []

        async def read_and_change(call, *args):
            found = await read(call, *args)
            if call == compactor._copy:
                copies.append(1)
                if len(copies) == 1:
                    await memory.delete_thread("u")
                    await memory.append("v", [MessageDraft(content="the otter " * 2_000)])
            return found

        monkeypatch.setattr(compactor._readers, "read", read_and_change)
        await ports.store.files.compact()
        assert 2 == len(copies)  # the first one held what was purged
        assert ["the otter " * 2_000] == [m.content for m in (await memory.messages("v")).messages]
        assert not await traces_in(ports.store, "the heron the")
        counted = "SELECT count(*), (SELECT sum(piece_count) FROM messages) FROM long_texts"
        ((held, wanted),) = await ports.store._writer.run(lambda con: con.execute(counted).fetchall())
        assert held == wanted > 0


ESCAPED = '{"a": "x' + "\\u0315\\u0300" * 2_000 + '"}'


def test_marks_that_json_writes_out_are_refused_as_those_of_a_text():
    for texts in ({"metadata": ESCAPED}, {"tool_calls": (ToolCall("note", ESCAPED),)}):
        with pytest.raises(InvalidArgument, match="combining marks"):
            MessageDraft(content="hello", **texts)
    MessageDraft(
        content="hello", metadata=r'{"a": "e\u0301 \ud83d"}', tool_calls=(ToolCall("note", r"no JSON: \u0301"),)
    )


def test_texts_that_are_made_to_be_slow_take_no_square_of_their_length():
    marks, parts = "\u0315\u0300", "The report goes on and on. "
    for read, text, length in (
        (fold, marks, 60_000),
        (partial(any_stands_in, ["Zebedee"]), marks, 60_000),
        (later_windows, parts, 400_000),
    ):
        assert not grows_too_fast(*growth(read, text, length)), read


@settings(max_examples=400)
@given(
    st.text(alphabet="abBÄ李ß.-’' _1", min_size=1, max_size=5).filter(lambda name: name.strip(" .")),
    st.text(alphabet="abBÄ李ß.-’' _1\n", max_size=40),
)
def test_a_name_stands_where_it_did_before_names_were_looked_for_together(name, text):
    wanted, line = straight(name), straight(text)
    begin = r"(?<!\w)(?<!\w-)" if wanted[0].upper() != wanted[0].lower() or wanted[0].isdigit() else ""
    end = r"(?!\w)(?!-\w)" if wanted[-1].upper() != wanted[-1].lower() or wanted[-1].isdigit() else ""
    stands = bool(re.search(f"{begin}{re.escape(wanted)}{end}", line))
    if not (name[:1].isupper() and "." in text):  # code is looked at besides
        assert stands == any_stands_in(["Zebedee", name], text)
