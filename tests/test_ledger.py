"""What was purged stays purged when an older copy of the database is put back: the ledger says what is missing."""

from __future__ import annotations

import json
import os
import random
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from memory_client import MessageDraft

from memoryd.domain.forgetting.catch_up import catch_up
from memoryd.errors import NotFound, Unavailable
from memoryd.model.change import PURGE, ChangeSet
from memoryd.model.memory import Source
from memoryd.store.ledger import KEY, LINES, PurgeLedger, PurgeMark
from tests.builders import NOW, Local, open_duckdb, ports_over
from tests.support import running

FILES = ("memory.duckdb", "memory.duckdb.seq", "memory.duckdb.wal")


@asynccontextmanager
async def served(folder: Path, *, catches_up: bool = True):
    """Open the store in a folder as a start does, and yield a client of alice."""
    store = open_duckdb(folder, ledger=folder / "ledger")
    async with ports_over(store) as ports:
        if catches_up:
            await catch_up(ports, now=NOW)
        yield Local(ports, lambda: NOW, user_id="alice")


def copied(folder: Path, target: Path) -> None:
    """Copy the database of a folder, as operators do: not its ledger."""
    target.mkdir(exist_ok=True)
    for name in FILES:
        (target / name).unlink(missing_ok=True)
        if (folder / name).exists():
            shutil.copy(folder / name, target / name)


def lines_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "ledger" / LINES).read_text().splitlines()]


async def held(client: Local) -> dict[str, set[str]]:
    """Return the ids of all that users have."""
    everyone = [client.acting_for(user_id=name) for name in ("alice", "bob", "carol")]
    ids: dict[str, set[str]] = {"memories": set(), "messages": set(), "texts": set()}
    for user in everyone:
        ids["memories"] |= {m.id for m in (await user.page(page_size=1000)).memories}
        for thread in (await user.threads(page_size=1000)).threads:
            ids["messages"] |= {m.id for m in (await user.messages(thread.id, page_size=1000)).messages}
            ids["texts"] |= {thread.summary} - {""}
        ids["texts"] |= {(await user.working_memory()).text} - {""}
    return ids


class World:
    """Random writes and purges of three users, with what must be there."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.number = 0
        self.gone: list[set[str]] = []
        """The ids that were purged, by the copy after which they were."""

    def purged(self, ids) -> None:
        for gone in self.gone:
            gone.update(ids)

    async def step(self, client: Local) -> None:
        user = client.acting_for(user_id=self.random.choice(["alice", "bob", "carol"]))
        self.number += 1
        text = f"note {self.number} of {self.random.choice(['tea', 'boats', 'Lyon'])}"
        thread = f"t{self.random.randrange(3)}"
        do = self.random.choices(
            [self.add, self.append, self.purge, self.take_back, self.purge_thread, self.erase_user, self.forget_person],
            [8, 8, 4, 4, 2, 0.5, 1],
        )[0]
        await do(user, text, thread)

    async def add(self, user, text, _):
        await user.add(text if self.random.random() < 0.7 else f"Bob Miller wrote {text}")

    async def append(self, user, text, thread):
        said = text if self.random.random() < 0.8 else f"Bob Miller wrote {text}"
        await user.append(thread, [MessageDraft(content=said), MessageDraft(content="ok", role="assistant")])
        if self.random.random() < 0.3:
            await user.set_summary(thread, f"summary {said}")
        if self.random.random() < 0.2:
            await user.set_working_memory(f"working {said}")

    async def purge(self, user, *_):
        memories = (await user.page(page_size=1000)).memories
        if memories:
            gone = self.random.choice(memories)
            await user.delete(gone.id, purge=True)
            self.purged([gone.id])

    async def take_back(self, user, _, thread):
        try:
            seen = await user.thread(thread)
        except NotFound:
            return
        gone = await user.delete_messages(thread, after_seq=max(0, seen.last_seq - self.random.randrange(4)))
        self.purged([*gone.message_ids, *({seen.summary} - {"", gone.thread.summary})])

    async def purge_thread(self, user, _, thread):
        try:
            ids = [m.id for m in (await user.messages(thread, page_size=1000)).messages]
            summary = (await user.thread(thread)).summary
        except NotFound:
            return
        gone = await user.delete_thread(thread, with_memories=True)
        self.purged([*ids, *gone.memory_ids, *([summary] if summary else [])])

    async def erase_user(self, user, *_):
        mine = await held_by(user)
        await user.forget_user()
        self.purged(mine)

    async def forget_person(self, user, *_):
        before = await held_by(user)
        try:
            done = await user.forget_person("Bob Miller", with_messages=True)
        except NotFound:
            return
        texts = {text for text in before - await held_by(user) if text.startswith(("summary", "working"))}
        self.purged([*done.purged_ids, *done.message_ids, *texts])


async def held_by(user: Local) -> set[str]:
    ids = {m.id for m in (await user.page(page_size=1000)).memories}
    for thread in (await user.threads(page_size=1000)).threads:
        ids |= {m.id for m in (await user.messages(thread.id, page_size=1000)).messages} | ({thread.summary} - {""})
    return ids | ({(await user.working_memory()).text} - {""})


@pytest.mark.parametrize("seed", range(3))
async def test_a_copy_of_any_time_is_cleaned_of_all_that_was_purged_after_it(folder, seed):
    world, copies = World(seed), []
    for n in range(4):
        async with served(folder) as client:
            for _ in range(world.random.randrange(5, 25)):
                await world.step(client)
            there = await held(client)
        copied(folder, folder / f"copy{n}")
        copies.append(there)
        world.gone.append(set())
    async with served(folder) as client:
        for _ in range(20):
            await world.step(client)
    for n in (world.random.randrange(4), 0):
        copied(folder / f"copy{n}", folder)
        async with served(folder) as client:
            now = await held(client)
            gone = world.gone[n]
            for kind in ("memories", "messages"):
                assert copies[n][kind] - gone == now[kind], (kind, n)
            assert not now["texts"] & gone
            files = client.ports.store.files
            for one in gone:
                assert [] == await files.traces(one), one
            assert files.missed_purges() is None
            assert [] == client.ports.store.warnings


async def test_what_comes_after_an_erasure_is_not_erased_with_it(folder):
    async with served(folder) as client:
        await client.add("I like tea")
        await client.append("t", MessageDraft(content="old"))
    copied(folder, folder / "before")
    async with served(folder) as client:
        await client.forget_user()
        new = await client.add("I like coffee")
        await client.append("t", MessageDraft(content="new"))
    copied(folder, folder / "after")
    copied(folder / "before", folder)
    async with served(folder) as client:
        assert [] == list((await client.page()).memories)
        again = await client.add("I like water")
        await client.append("t", MessageDraft(content="newer"))
    async with served(folder) as client:
        assert [again.memory.id] == [m.id for m in (await client.page()).memories]
        assert ["newer"] == [m.content for m in (await client.messages("t")).messages]
    copied(folder / "after", folder)
    async with served(folder) as client:
        assert [new.memory.id] == [m.id for m in (await client.page()).memories]


@pytest.mark.parametrize("rewritten", ["", "named", "only summed up"])
async def test_texts_that_spoke_of_a_person_who_was_forgotten_do_not_come_back(folder, rewritten):
    async with served(folder) as client:
        for thread in ("named", "only summed up", "other"):
            said = "I met Bob Miller" if thread == "named" else "I met someone"
            await client.append(thread, MessageDraft(content=said))
        for thread in ("named", "only summed up"):
            await client.set_summary(thread, "They spoke of Bob Miller.")
        await client.set_summary("other", "They spoke of tea.")
        await client.set_working_memory("ask Bob Miller", thread_id="named")
        await client.set_working_memory("call Bob  MILLER, and Jo")
    copied(folder, folder / "before")
    async with served(folder) as client:
        if rewritten:
            await client.set_summary(rewritten, "They spoke of a meeting.")
            await client.set_working_memory("call Jo")
        await client.forget_person("Bob Miller", with_messages=True)
    copied(folder / "before", folder)
    async with served(folder) as client:
        threads = {thread.id: thread for thread in (await client.threads()).threads}
        assert ["", "", "They spoke of tea."] == [
            threads[name].summary for name in ("named", "only summed up", "other")
        ]
        assert "" == (await client.working_memory(thread_id="named")).text
        assert "" == (await client.working_memory()).text
        assert [] == await client.ports.store.files.traces("Bob Miller")


async def test_what_was_purged_is_not_learnt_again_from_an_older_copy(folder):
    async with served(folder) as client:
        await client.append("t", MessageDraft(content="my locker code is blue"))
    copied(folder, folder / "before")
    async with served(folder) as client:
        added = await client.add("my locker code is blue")
        await client.delete(added.memory.id, purge=True)
        stones = await tombstones(client)
    assert stones
    copied(folder / "before", folder)
    async with served(folder) as client:
        assert stones == await tombstones(client)


async def tombstones(client: Local) -> list[tuple]:
    readers = client.ports.store._readers
    return await readers.read(readers.rows, "SELECT * FROM tombstones ORDER BY ALL")


async def test_the_ledger_names_nothing_and_no_one(folder):
    async with served(folder) as client:
        added = await client.add("Bob Miller likes tea")
        made = await client.append("secret-thread", MessageDraft(content="Bob Miller"))
        await client.forget_person("Bob Miller", with_messages=True)
        await client.delete_thread("secret-thread")
        await client.add("I like water")
        await client.forget_user()
    text = (folder / "ledger" / LINES).read_text()
    for word in ("alice", "Bob", "Miller", "secret-thread", added.memory.id, made.messages[0].id, "default"):
        assert word not in text
    kinds = {kind for line in lines_of(folder)[1:] for kind in line["erased"]}
    assert {"memory", "message", "texts", "thread", "owner", "entity", "name"} == kinds
    for path in (folder / "ledger" / LINES, folder / "ledger" / KEY):
        assert 0o600 == path.stat().st_mode & 0o777
    assert (folder / "ledger" / KEY).read_text().strip() not in (folder / "memory.duckdb").read_bytes().decode(
        "latin-1"
    )


async def test_a_line_is_on_disk_before_the_purge_is_acknowledged_and_void_if_it_fails(folder, monkeypatch):
    order = []
    async with served(folder) as client:
        kept = await client.add("I like tea")
        store = client.ports.store
        append = PurgeLedger._append
        monkeypatch.setattr(PurgeLedger, "_append", lambda *line: (order.append("ledger"), append(*line))[1])
        monkeypatch.setattr(store._writer, "_journal", Journal(order))
        with pytest.raises(Unavailable):
            await client.delete(kept.memory.id, purge=True)
        assert ["ledger", "journal", "ledger"] == order
        assert kept.memory.id == (await client.get(kept.memory.id)).id
        monkeypatch.setattr(store._writer, "_journal", None)
    assert [{"purge": 1}, {"void": 1}] == [
        {name: line[name] for name in ("purge", "void") if name in line} for line in lines_of(folder)[1:]
    ]
    async with served(folder) as client:
        assert kept.memory.id == (await client.get(kept.memory.id)).id
        await client.delete(kept.memory.id, purge=True)
    assert 2 == lines_of(folder)[-1]["purge"]


async def test_a_thread_goes_with_what_was_learnt_from_it_or_neither_goes(folder, monkeypatch):
    async with served(folder) as client:
        made = await client.append("t", MessageDraft(content="I like tea"))
        source = Source(thread_id="t", message_ids=(made.messages[0].id,))
        learnt = await client.add("The user likes tea", source=source)
        store = client.ports.store
        committed = store._writer.commit_seq
        with monkeypatch.context() as planted:
            planted.setattr(store._writer, "_journal", Journal([]))
            with pytest.raises(Unavailable):
                await client.delete_thread("t", with_memories=True)
        assert learnt.memory.id == (await client.get(learnt.memory.id)).id
        assert 1 == len((await client.messages("t")).messages)
        committed = store._writer.commit_seq
        gone = await client.delete_thread("t", with_memories=True)
        assert (learnt.memory.id,) == gone.memory_ids
        assert {"memory", "thread"} == set(lines_of(folder)[-1]["erased"])
        assert committed < lines_of(folder)[-1]["transaction"] == store._writer.commit_seq


class Journal:
    """An audit log that cannot be written."""

    def __init__(self, order) -> None:
        self.order = order

    def record(self, work):
        self.order.append("journal")
        raise Unavailable("the audit log cannot be written")


async def test_a_purge_that_was_written_down_and_not_carried_out_is_carried_out_at_the_next_start(folder):
    async with served(folder) as client:
        added = await client.add("I like tea")
        other = await client.add("I like boats in Lyon")
        owner = client.ports.store._opened
        store_id = owner.store_id
    ledger = PurgeLedger(folder / "ledger", store_id, PurgeMark(), random_bytes=os.urandom)
    assert 1 == ledger.record([ChangeSet(purges=(added.memory,), marks={PURGE: NOW})], 7)
    ledger.close()
    with (folder / "ledger" / LINES).open("ab") as file:
        file.write(b'{"purge":2,"transaction":8,"ti')  # the process died while it wrote
    async with served(folder) as client:
        assert [other.memory.id] == [m.id for m in (await client.page()).memories]
        await client.delete(other.memory.id, purge=True)
    assert [1, 2] == [line["purge"] for line in lines_of(folder)[1:]]


async def test_a_start_that_ends_while_it_cleans_begins_anew(folder, monkeypatch):
    async with served(folder) as client:
        for n in range(5):
            await client.add(f"note {n} of tea")
    copied(folder, folder / "before")
    async with served(folder) as client:
        for m in (await client.page()).memories:
            await client.delete(m.id, purge=True)
    copied(folder / "before", folder)
    import memoryd.domain.forgetting.catch_up as module

    async def fail(*_):
        raise RuntimeError("planted")

    with monkeypatch.context() as planted:
        planted.setattr(module, "_memories", fail)
        with pytest.raises(RuntimeError, match="planted"):
            async with served(folder):
                pass
    async with served(folder, catches_up=False) as client:
        assert 5 == len((await client.page()).memories)
    async with served(folder) as client:
        assert 0 == len((await client.page()).memories)


def test_a_daemon_with_an_older_copy_is_cleaned_before_it_serves(folder):
    with running(folder) as daemon:
        client = daemon.client()
        gone, kept = client.add("my locker code is blue").memory, client.add("I like tea").memory
    copied(folder, folder / "copy")
    with running(folder) as daemon:
        daemon.client().delete(gone.id, purge=True)
    copied(folder / "copy", folder)
    with running(folder) as daemon:
        client = daemon.client()
        assert [kept.id] == [m.id for m in client.page().memories]
        assert gone.id not in {hit.memory.id for hit in client.search("locker code").hits}
        assert not [warning for warning in client.server_info().warnings if "ledger" in warning]
    shutil.rmtree(folder / "ledger")
    with running(folder) as daemon:
        assert [warning for warning in daemon.client().server_info().warnings if "does not know the first" in warning]
