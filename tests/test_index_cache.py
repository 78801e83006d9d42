"""Which scopes are in memory: loaded once, kept true by every commit, evicted by bytes."""

from __future__ import annotations

import asyncio
import gc
import random
import weakref
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from memoryd.daemon.config import Config, IndexConfig
from memoryd.domain.retrieval.ranking import ranked
from memoryd.domain.retrieval.recall import write_recalls
from memoryd.domain.retrieval.search import hits_of
from memoryd.entities import directory
from memoryd.index import records
from memoryd.index.analysis import analyse, analyse_query
from memoryd.index.records import forget_unpacked
from memoryd.index.scope import ScopeIndex
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.query import Filter
from memoryd.model.scope import Owner, Scope
from memoryd.model.validation import text_digest
from tests.builders import (
    ALICE,
    NOW,
    Local,
    entry,
    memory,
    open_duckdb,
    ports_over,
    ram_store,
)
from tests.index_helpers import LATER, ask, question, random_entries
from tests.test_index_commits import indexes_over


async def test_the_least_used_scopes_go_when_the_budget_is_spent():
    store = ram_store()
    owners = [Owner(f"agent{n}", ALICE) for n in range(4)]
    for owner in owners:
        await store.commits.write(ChangeSet(inserts=tuple(entry(f"m{n}", agent_id=owner.agent_id) for n in range(50))))
    probe = indexes_over(store)
    size = (await probe.get(owners[0])).nbytes
    probe.close()
    indexes = indexes_over(store, budget_bytes=int(size * 2.5))
    for owner in owners:
        assert await indexes.get(owner) is not None
    assert 2 == indexes.scopes
    assert indexes.nbytes <= size * 2.5
    indexes.close()


def test_an_index_that_nobody_uses_is_gone_at_once_with_what_it_has_read():
    known = named("Ana", ALICE)
    index = ScopeIndex([random_entries(100), [known]], dimensions=64, fingerprint="f")
    assert index.reader.read("Ana likes tea").words.stems
    assert {"a"} == index.people.members("a")
    ask(index, question(np.ones(64, dtype=np.float32), ["w1"]))
    gone = [weakref.ref(index), weakref.ref(index.reader), weakref.ref(index.people)]
    gc.disable()  # so that only what is in no circle goes
    try:
        del index
        assert [None, None, None] == [one() for one in gone]
    finally:
        gc.enable()


async def test_the_sum_of_the_sizes_is_that_of_what_is_in_memory_whatever_comes_and_goes():
    store = ram_store()
    owners = [Owner("default", Scope(user_id=f"u{n}")) for n in range(12)]
    mentioned = [named(f"Ana {n}", owners[n % 12].scope) for n in range(120)]
    for n, owner in enumerate(owners):
        await store.commits.write(ChangeSet(inserts=tuple(mentioned[n::12])))
        assert owner == mentioned[n].memory.owner
    one = indexes_over(store)
    await one.get(owners[0])
    indexes = indexes_over(store, budget_bytes=5 * one.nbytes)
    store.commits.memories.follow(indexes.apply)
    dice = random.Random(5)
    for step in range(200):
        owner = dice.choice(owners)
        what = dice.randrange(3)
        if what == 0:
            await indexes.get(owner)
        elif what == 1:
            await store.commits.write(ChangeSet(inserts=(named(f"Bea {step}", owner.scope),)))
        elif (index := indexes.ready(owner)) is not None and len(index):
            await store.commits.write(ChangeSet(purges=(next(index.live(LATER)),)))
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
    index.erase({one.id for one in [*index.live(LATER)][10:]})
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
        await write_recalls(recalls, ports)
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
        scores, _ = index.postings.score(("same",), stats, index.count)
    assert np.isfinite(scores).all()


def held_bytes(index: ScopeIndex) -> bytes:
    held = index._records
    return b"".join([bytes(held._piece), *held._changed.values(), *held._late])


def test_a_search_under_way_still_finds_whose_neighbour_is_purged():
    gone = entry("my favorite colour is red")
    held = entry("my favorite colour is blue", contested_with=(gone.memory.id,))
    index = ScopeIndex([[replace(held, terms="colour blue"), replace(gone, terms="colour red")]])
    asked = question(terms=["blue"], now=NOW)
    under_way = ranked([index], asked.question)
    index.update(replace(held, memory=replace(held.memory, contested_with=()), terms="colour blue"))
    index.erase({gone.memory.id})
    assert [held.memory.id] == [hit.memory.id for hit in hits_of(under_way, asked)]
    assert gone.memory.id.encode() not in held_bytes(index)
    assert [held.memory.id] == [hit.memory.id for hit in ask(index, asked)]
    index.erase({held.memory.id})
    assert [] == hits_of(under_way, asked)
    assert held.memory.id.encode() not in held_bytes(index)


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
    lists = index.columns.filter_terms, index.listings.keys, index.listings._late_texts, index.listings.claims
    assert ({}, {}, {}, {}) == lists
    digest = text_digest(held.memory.content)
    assert () == index.listings.of_text(digest)
    assert int.from_bytes(digest[:8], "little", signed=True) not in index.listings._texts._numbers
    assert int.from_bytes(digest[8:], "little") not in index.listings._rests
