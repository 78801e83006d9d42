"""An index is kept true by every commit: pushed, fetched or brought in by turns; and what fails is built anew."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from memoryd.index.cache import ScopeIndexes
from memoryd.index.scope import ScopeIndex
from memoryd.model.change import ChangeSet, Entry
from tests.builders import (
    HashEncoder,
    Local,
    entry,
    memory,
    open_duckdb,
    ports_over,
    ram_store,
)
from tests.index_helpers import OWNER, WANTED, ask, question


class ReadBy:
    """A store whose snapshots are read by a function."""

    def __init__(self, store, read) -> None:
        self.snapshot, self.head, self.changes = read, store.commits.memories.head, store.commits.memories.changes


def indexes_over(store, **more) -> ScopeIndexes:
    options = {"budget_bytes": 1 << 30, "dimensions": 32, "fingerprint": HashEncoder.fingerprint}
    feed = store.commits.memories if hasattr(store, "commits") else store
    return ScopeIndexes(feed, on_fault=lambda _: None, **{**options, **more})


async def test_many_callers_of_a_cold_scope_cause_one_load():
    store, loads = ram_store(), []
    await store.commits.write(ChangeSet(inserts=(entry(),)))

    def read(owner, build):
        loads.append(owner)
        return store.commits.memories.snapshot(owner, build)

    indexes = indexes_over(ReadBy(store, read))
    found = await asyncio.gather(*(indexes.get(OWNER) for _ in range(64)))
    indexes.close()
    assert ([OWNER], 1) == (loads, len(set(map(id, found))))


async def test_what_is_added_during_a_load_is_found():
    store, loop = ram_store(), asyncio.get_running_loop()
    await store.commits.write(ChangeSet(inserts=(entry("before"),)))

    def read(owner, build):
        def slow(snapshot):
            chunks = list(snapshot.read(WANTED))  # the snapshot is taken …
            for text in ("during", "during too"):  # … and then others write
                asyncio.run_coroutine_threadsafe(store.commits.write(ChangeSet(inserts=(entry(text),))), loop).result(9)
            return build(replace(snapshot, read=lambda _: chunks))

        return store.commits.memories.snapshot(owner, slow)

    indexes = indexes_over(ReadBy(store, read))
    store.commits.memories.follow(indexes.apply)
    index = await indexes.get(OWNER)
    await store.commits.write(ChangeSet(inserts=(entry("after"),)))
    indexes.close()
    assert {"before", "during", "during too", "after"} == {
        hit.memory.content for hit in ask(index, question(HashEncoder().encode(["x"], query=True)[0]))
    }


async def test_an_index_that_has_missed_a_commit_follows_no_later_one_before_it():
    store, seen = ram_store(), []
    store.commits.memories.follow(seen.append)
    indexes = indexes_over(store)
    index = await indexes.get(OWNER)
    made = [entry("first"), entry("second")]
    for one in made:
        await store.commits.write(ChangeSet(inserts=(one,)))
    indexes.apply(seen[1])
    assert (0, [True] * 2) == (len(index), [(await indexes.get(OWNER)).holds(one.memory.id) for one in made])
    indexes.close()


def large(count: int, words: int = 400) -> list[Entry]:
    return [entry(" ".join(f"w{n}x{word}" for word in range(words))) for n in range(count)]


async def test_a_large_commit_is_brought_in_by_turns_and_nobody_sees_half_of_it():
    store, turns, seen = ram_store(), [], []
    indexes = indexes_over(store)
    store.commits.memories.follow(indexes.apply)
    index = await indexes.get(OWNER)

    async def others() -> None:
        while True:
            turns.append(len(index))
            await asyncio.sleep(0)

    other = asyncio.create_task(others())
    made = large(60)
    await store.commits.write(ChangeSet(inserts=tuple(made)))
    assert len(index) < 60
    small = entry("what comes after it waits for it")
    await store.commits.write(ChangeSet(inserts=(small,)))

    async def reader() -> None:
        held = await indexes.get(OWNER)
        seen.append((held is index, len(held), [held.holds(one.memory.id) for one in (*made, small)]))

    await asyncio.gather(*(reader() for _ in range(8)))
    other.cancel()
    indexes.close()
    assert [(True, 61, [True] * 61)] * 8 == seen
    assert len(set(turns)) > 5
    again = indexes_over(store)
    asked = question(None, ("w59x3", "w1x2"))
    assert ask(await again.get(OWNER), asked) == ask(index, asked) != []
    again.close()


async def test_what_is_purged_while_a_large_commit_is_brought_in_is_gone_at_once():
    store = ram_store()
    indexes = indexes_over(store)
    store.commits.memories.follow(indexes.apply)
    index = await indexes.get(OWNER)
    made = large(60)
    await store.commits.write(ChangeSet(inserts=tuple(made)))
    assert not index.holds(made[-1].memory.id)
    await store.commits.write(ChangeSet(purges=(made[-1].memory, made[0].memory)))
    assert not any(indexes.holds(one.memory.id) for one in made)
    await asyncio.sleep(0.1)
    held = await indexes.get(OWNER)
    indexes.close()
    assert (58, False, False) == (len(held), held.holds(made[0].memory.id), held.holds(made[-1].memory.id))
    assert len(index) < 60  # nobody goes on with what was dropped


async def test_what_is_purged_during_a_load_is_not_found_and_costs_no_second_load():
    store, loop, loads = ram_store(), asyncio.get_running_loop(), []
    gone = entry("gone")
    await store.commits.write(ChangeSet(inserts=(entry("kept"), gone)))

    def read(owner, build):
        def slow(snapshot):
            loads.append(owner)
            chunks = list(snapshot.read(WANTED))
            purge = store.commits.write(ChangeSet(purges=(gone.memory,)))
            asyncio.run_coroutine_threadsafe(purge, loop).result(9)
            return build(replace(snapshot, read=lambda _: chunks))

        return store.commits.memories.snapshot(owner, slow)

    indexes = indexes_over(ReadBy(store, read))
    store.commits.memories.follow(indexes.apply)
    index = await indexes.get(OWNER)
    indexes.close()
    assert (1, 1, False) == (len(loads), len(index), index.holds(gone.memory.id))


async def test_the_purges_of_one_daemon_cost_it_no_load(folder, clock, monkeypatch):
    async with ports_over(open_duckdb(folder)) as ports:
        alice, loads, read = Local(ports, clock, user_id="alice"), [], ports.store.commits.memories.snapshot
        monkeypatch.setattr(ports.store.commits.memories, "snapshot", lambda *given: loads.append(1) or read(*given))
        made = [(await alice.add(f"apple number{n} apart")).memory for n in range(40)]

        async def search():
            for _ in range(200):
                await alice.search("apple")
                await asyncio.sleep(0)

        searching = asyncio.create_task(search())
        await asyncio.gather(*(alice.delete(memory.id, purge=True) for memory in made[1:]))
        await searching
        assert (1, 1) == (len(loads), len((await alice.search("apple")).hits))


async def test_where_others_purge_during_every_load_the_store_is_asked_instead():
    store, loop, loads = ram_store(), asyncio.get_running_loop(), []
    await store.commits.write(ChangeSet(inserts=(entry("kept"),)))

    def read(owner, build):
        def slow(snapshot):
            loads.append(owner)
            chunks = list(snapshot.read(WANTED))
            asyncio.run_coroutine_threadsafe(store.commits.write(ChangeSet(purges=(memory(),))), loop).result(9)
            return build(replace(snapshot, read=lambda _: chunks))

        return store.commits.memories.snapshot(owner, slow)

    indexes = indexes_over(ReadBy(store, read))  # and is told of no commit
    assert (None, 4) == (await indexes.get(OWNER), len(loads))
    indexes.close()


async def test_a_commit_that_the_snapshot_holds_is_not_applied_again():
    store = ram_store()
    made = entry("once")
    seen = []
    store.commits.memories.follow(seen.append)
    await store.commits.write(ChangeSet(inserts=(made,)))
    indexes = indexes_over(store)
    index = await indexes.get(OWNER)
    indexes.apply(seen[0])
    indexes.close()
    assert 1 == len(index)


async def test_an_index_that_fails_is_dropped_and_built_anew(clock, folder, monkeypatch):
    async with ports_over(open_duckdb(folder)) as ports:
        alice = Local(ports, clock, user_id="alice")
        await alice.add("before the fault")
        original = ScopeIndex.insert

        def fail(self, _):
            raise MemoryError("planted")

        monkeypatch.setattr(ScopeIndex, "insert", fail)
        result = await alice.add("during the fault")  # acknowledged all the same
        monkeypatch.setattr(ScopeIndex, "insert", original)
        assert (1, result.memory.id) == (ports.indexes.faults, (await alice.search("during")).hits[0].memory.id)
