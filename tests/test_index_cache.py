"""Which scopes are in memory: loaded once, kept true by every commit, evicted by bytes."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from memoryd.daemon.config import Config, IndexConfig
from memoryd.domain.reading.ranking import best_of
from memoryd.entities import directory
from memoryd.index import records
from memoryd.index.analysis import analyse, analyse_query
from memoryd.index.cache import ScopeIndexes
from memoryd.index.records import forget_unpacked
from memoryd.index.scope import ScopeIndex
from memoryd.index.search import candidates
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.query import Filter
from memoryd.model.scope import Owner, Scope
from tests.builders import (
    ALICE,
    NOW,
    HashEncoder,
    Local,
    entry,
    memory,
    open_duckdb,
    ports_over,
    ram_store,
)
from tests.index_helpers import LATER, OWNER, ask, question, random_entries


class ReadBy:
    """A store whose snapshots are read by a function."""

    def __init__(self, store, read) -> None:
        self.read_owner, self.head, self.changes = read, store.head, store.changes


def indexes_over(store, **more) -> ScopeIndexes:
    options = {"budget_bytes": 1 << 30, "dimensions": 32, "fingerprint": HashEncoder.fingerprint}
    return ScopeIndexes(store, on_fault=lambda _: None, **{**options, **more})


async def test_many_callers_of_a_cold_scope_cause_one_load():
    store, loads = ram_store(), []
    await store.commit(ChangeSet(inserts=(entry(),)))

    def read(owner, build):
        loads.append(owner)
        return store.read_owner(owner, build)

    indexes = indexes_over(ReadBy(store, read))
    found = await asyncio.gather(*(indexes.get(OWNER) for _ in range(64)))
    indexes.close()
    assert ([OWNER], 1) == (loads, len(set(map(id, found))))


async def test_what_is_added_during_a_load_is_found():
    store, loop = ram_store(), asyncio.get_running_loop()
    await store.commit(ChangeSet(inserts=(entry("before"),)))

    def read(owner, build):
        def slow(snapshot):
            chunks = [list(chunk) for chunk in snapshot.chunks]  # the snapshot is taken …
            for text in ("during", "during too"):  # … and then others write
                asyncio.run_coroutine_threadsafe(store.commit(ChangeSet(inserts=(entry(text),))), loop).result(9)
            return build(replace(snapshot, chunks=chunks))

        return store.read_owner(owner, slow)

    indexes = indexes_over(ReadBy(store, read))
    store.on_commit(indexes.apply)
    index = await indexes.get(OWNER)
    await store.commit(ChangeSet(inserts=(entry("after"),)))
    indexes.close()
    assert {"before", "during", "during too", "after"} == {
        hit.memory.content for hit in ask(index, question(HashEncoder().encode(["x"], query=True)[0]))
    }


async def test_an_index_that_has_missed_a_commit_follows_no_later_one_before_it():
    store, seen = ram_store(), []
    store.on_commit(seen.append)
    indexes = indexes_over(store)
    index = await indexes.get(OWNER)
    made = [entry("first"), entry("second")]
    for one in made:
        await store.commit(ChangeSet(inserts=(one,)))
    indexes.apply(seen[1])
    assert (0, [True] * 2) == (len(index), [(await indexes.get(OWNER)).holds(one.memory.id) for one in made])
    indexes.close()


async def test_what_is_purged_during_a_load_is_not_found_and_costs_no_second_load():
    store, loop, loads = ram_store(), asyncio.get_running_loop(), []
    gone = entry("gone")
    await store.commit(ChangeSet(inserts=(entry("kept"), gone)))

    def read(owner, build):
        def slow(snapshot):
            loads.append(owner)
            chunks = [list(chunk) for chunk in snapshot.chunks]
            purge = store.commit(ChangeSet(purges=(gone.memory,)))
            asyncio.run_coroutine_threadsafe(purge, loop).result(9)
            return build(replace(snapshot, chunks=chunks))

        return store.read_owner(owner, slow)

    indexes = indexes_over(ReadBy(store, read))
    store.on_commit(indexes.apply)
    index = await indexes.get(OWNER)
    indexes.close()
    assert (1, 1, False) == (len(loads), len(index), index.holds(gone.memory.id))


async def test_the_purges_of_one_daemon_cost_it_no_load(folder, clock, monkeypatch):
    async with ports_over(open_duckdb(folder)) as ports:
        alice, loads, read = Local(ports, clock, user_id="alice"), [], ports.store.read_owner
        monkeypatch.setattr(ports.store, "read_owner", lambda *given: loads.append(1) or read(*given))
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
    await store.commit(ChangeSet(inserts=(entry("kept"),)))

    def read(owner, build):
        def slow(snapshot):
            loads.append(owner)
            chunks = [list(chunk) for chunk in snapshot.chunks]
            asyncio.run_coroutine_threadsafe(store.commit(ChangeSet(purges=(memory(),))), loop).result(9)
            return build(replace(snapshot, chunks=chunks))

        return store.read_owner(owner, slow)

    indexes = indexes_over(ReadBy(store, read))  # and is told of no commit
    assert (None, 4) == (await indexes.get(OWNER), len(loads))
    indexes.close()


async def test_a_commit_that_the_snapshot_holds_is_not_applied_again():
    store = ram_store()
    made = entry("once")
    seen = []
    store.on_commit(seen.append)
    await store.commit(ChangeSet(inserts=(made,)))
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


async def test_the_least_used_scopes_go_when_the_budget_is_spent():
    store = ram_store()
    owners = [Owner(f"agent{n}", ALICE) for n in range(4)]
    for owner in owners:
        await store.commit(ChangeSet(inserts=tuple(entry(f"m{n}", agent_id=owner.agent_id) for n in range(50))))
    probe = indexes_over(store)
    size = (await probe.get(owners[0])).nbytes
    probe.close()
    indexes = indexes_over(store, budget_bytes=int(size * 2.5))
    for owner in owners:
        assert await indexes.get(owner) is not None
    assert 2 == indexes.scopes
    assert indexes.nbytes <= size * 2.5
    indexes.close()


async def test_the_sum_of_the_sizes_is_that_of_what_is_in_memory_whatever_comes_and_goes():
    store = ram_store()
    owners = [Owner("default", Scope(user_id=f"u{n}")) for n in range(12)]
    mentioned = [named(f"Ana {n}", owners[n % 12].scope) for n in range(120)]
    for n, owner in enumerate(owners):
        await store.commit(ChangeSet(inserts=tuple(mentioned[n::12])))
        assert owner == mentioned[n].memory.owner
    one = indexes_over(store)
    await one.get(owners[0])
    indexes = indexes_over(store, budget_bytes=5 * one.nbytes)
    store.on_commit(indexes.apply)
    dice = random.Random(5)
    for step in range(200):
        owner = dice.choice(owners)
        what = dice.randrange(3)
        if what == 0:
            await indexes.get(owner)
        elif what == 1:
            await store.commit(ChangeSet(inserts=(named(f"Bea {step}", owner.scope),)))
        elif (index := indexes.ready(owner)) is not None and len(index):
            await store.commit(ChangeSet(purges=(index.live(LATER)[0],)))
        assert indexes.nbytes == sum(index.nbytes for index in indexes._ready.values()) == sum(indexes._sizes.values())
        assert indexes.nbytes <= 5 * one.nbytes
    assert 1 < indexes.scopes < 12
    for indexed in (one, indexes):
        indexed.close()


def named(name: str, scope: Scope) -> Entry:
    mention = Mention(name.rjust(26), name, Form.NAME, EntityType.PERSON, about=True)
    return entry(f"{name} was here", scope=scope, mentions=(mention,))


def test_what_names_take_is_counted_until_the_last_memory_that_names_them_is_gone():
    index = ScopeIndex([[named(f"Ana {n % 10}", ALICE) for n in range(100)]])
    assert 10 * directory.BYTES_AN_ENTITY + 100 * directory.BYTES_A_MENTION == index.people.nbytes < index.nbytes
    index.erase({one.id for one in index.live(LATER)[10:]})
    assert 10 * (directory.BYTES_AN_ENTITY + directory.BYTES_A_MENTION) == index.people.nbytes
    index.erase({one.id for one in index.live(LATER)})
    assert 0 == index.people.nbytes


async def test_a_scope_larger_than_the_budget_is_searched_by_the_store_and_says_so(folder, clock):
    tiny = Config(index=IndexConfig(memory_bytes=5_000))
    async with ports_over(open_duckdb(folder), tiny) as ports:
        alice = Local(ports, clock, user_id="alice")
        for n in range(12):
            await alice.add(f"word{n} apple")
        found = await alice.search("word3 apple", limit=2)
        assert ["keyword"] == [leg.value for leg in found.unavailable_legs]
        assert "word3 apple" in [hit.memory.content for hit in found.hits]
        assert "reinforced" == (await alice.add("WORD3 apple")).outcome.value
        await alice.add("red", key="k")
        assert "superseded" == (await alice.add("blue", key="k")).outcome.value


async def test_no_two_memories_of_an_owner_share_a_create_time_and_the_clock_of_one_is_not_that_of_others(
    folder, clock
):
    tiny = Config(index=IndexConfig(memory_bytes=1))
    async with ports_over(open_duckdb(folder), tiny) as ports:
        alice, bob = (Local(ports, clock, user_id=name) for name in ("alice", "bob"))
        results = await asyncio.gather(*(alice.add(f"at once {n}", key=f"k{n}") for n in range(8)))
        clock.now -= timedelta(days=1)  # it steps back
        results.append(await alice.add("later", key="k"))
        times = [result.memory.create_time for result in results]
        assert 9 == len(set(times))
        assert max(times) == times[-1]
        assert clock.now == (await bob.add("of another", key="k")).memory.create_time


async def test_a_hit_carries_the_recalls_that_were_written_down(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        alice = Local(ports, clock, user_id="alice")
        made = (await alice.add("apple")).memory
        recalls = {made.owner: {made.id: (clock.now, 3, None)}}
        await ports.store.note_recalls(recalls)
        ports.indexes.note_recalls(recalls)
        assert 3 == (await alice.search("apple")).hits[0].memory.recall_count == (await alice.get(made.id)).recall_count


def test_a_search_in_another_thread_never_misses_a_memory_that_is_being_updated():
    import threading

    entries = random_entries(50, 8)
    index = ScopeIndex([entries], dimensions=8, fingerprint="f")
    done = threading.Event()

    def update() -> None:
        while not done.is_set() and index.count < 20_000:
            index.update(replace(entries[7], vector=None))

    thread = threading.Thread(target=update)
    thread.start()
    try:
        for _ in range(2000):
            assert 50 == int(index.mask(Filter(), LATER).sum())
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("What should I avoid eating?", ["avoid", "eat"]),
        ("I'm 5 years old: C", ["m", "5", "year", "old", "c"]),
        ("黑猫 runs", ["run", "黑", "猫", "黑猫"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー", "東京", "京タ", "タワ", "ワー"]),
        ("", []),
        ("who are you", []),
    ],
)
def test_words_are_stemmed_and_cjk_is_paired(text, terms):
    assert terms == analyse(text)


def test_a_query_has_each_word_once_and_pairs_where_there_are_any():
    assert ["cat", "黑猫", "狗"] == analyse_query("cats cat 黑猫 and 狗")


def test_what_is_erased_makes_no_score_that_is_none():
    made = [Entry(memory(f"statement {n}"), "same " + "word " * (500 * (n == 7)), None, "") for n in range(8)]
    index = ScopeIndex([made])
    index.erase({made[0].memory.id})
    stats = index.corpus(("same",))
    with np.errstate(all="raise"):
        scores = index.postings.score(("same",), stats, index.count)
    assert np.isfinite(scores).all()


def test_a_search_under_way_still_finds_whose_neighbour_is_purged():
    gone = entry("my favorite colour is red")
    held = entry("my favorite colour is blue", contested_with=(gone.memory.id,))
    index = ScopeIndex([[replace(held, terms="colour blue"), replace(gone, terms="colour red")]])
    asked = question(terms=["blue"], now=NOW)
    stats = index.corpus(asked.question.terms)
    under_way = candidates(index, asked.question, stats)
    index.update(replace(held, memory=replace(held.memory, contested_with=()), terms="colour blue"))
    index.erase({gone.memory.id})
    assert [held.memory.id] == [hit.memory.id for hit in best_of(under_way, asked, stats)]
    assert not any(gone.memory.id.encode() in record for record in index._records)
    assert [held.memory.id] == [hit.memory.id for hit in ask(index, asked)]
    index.erase({held.memory.id})
    assert [] == best_of(under_way, asked, stats)
    assert not any(held.memory.id.encode() in record for record in index._records)


def test_erasing_keeps_nothing_that_it_reads():
    made = [entry(f"the heron nests behind lighthouse {n}") for n in range(3)]
    index = ScopeIndex([made])
    forget_unpacked()
    index.erase({made[0].memory.id})
    assert 0 == records._kept.cache_info().currsize


def test_what_expires_now_is_not_found_any_more():
    ended, lasting = (
        entry(f"the gate is {word}", expire_time=NOW + timedelta(seconds=left))
        for word, left in (("open", 0), ("closed", 1))
    )
    index = ScopeIndex([[replace(ended, terms="gate"), replace(lasting, terms="gate")]])
    asked = question(terms=["gate"], now=NOW)
    assert [lasting.memory.id] == [hit.memory.id for hit in ask(index, asked)]


def test_what_a_neighbour_was_before_is_listed_nowhere_after_its_own_purge():
    gone = entry("my favorite colour is red")
    held = entry("my favorite colour is blue", contested_with=(gone.memory.id,), tags=("zebra",), key="colour")
    index = ScopeIndex([[held, gone]])
    index.update(replace(held, memory=replace(held.memory, contested_with=(), tags=(), key="")))
    index.erase({gone.memory.id})
    index.erase({held.memory.id})
    assert ({}, {}, {}, {}) == (
        index.columns.filter_terms,
        index.listings.keys,
        index.listings.texts,
        index.listings.claims,
    )
