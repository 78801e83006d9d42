"""A large scope: searched by words while its vectors come, and held in few bytes."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_client import MessageDraft, MessageSearch

from memoryd.domain.conversation.embed import MessageEmbedder
from memoryd.domain.retrieval import recall
from memoryd.domain.retrieval.search import search_each
from memoryd.domain.scopes import EpisodeScopes
from memoryd.errors import Unavailable
from memoryd.index import cache
from memoryd.index.arrays import kth_largest
from memoryd.index.lookup import Ids, Lookup, numbers_of
from memoryd.index.postings import FEW_TERMS, Postings
from memoryd.index.postings import Loading as Terms
from memoryd.index.vectors import Vectors, packed
from memoryd.model.change import ChangeSet, Embedding
from memoryd.model.results import Leg
from memoryd.model.scope import Owner, Scope
from tests.builders import HashEncoder, Local, entry, open_duckdb, ports_over
from tests.index_helpers import LATER, OWNER
from tests.test_index_commits import indexes_over
from tests.test_loading import stored
from tests.test_message_embedding import embedded
from tests.test_window_vectors import ASKED, LONG


class Held:
    """A store whose vectors come when they are let through."""

    def __init__(self, store) -> None:
        self.store, self.let, self.begun, self.fails = store, threading.Event(), threading.Event(), False
        self.head, self.changes = store.commits.memories.head, store.commits.memories.changes

    def snapshot(self, owner, build):
        def held(snapshot):
            def vectors(wanted):
                for batch in snapshot.read_vectors(wanted):
                    self.begun.set()
                    assert self.let.wait(10)
                    if self.fails:
                        raise OSError("the disk is gone")
                    yield batch

            return build(replace(snapshot, read_vectors=vectors))

        return self.store.commits.memories.snapshot(owner, held)


@pytest.fixture
def small_is_large(monkeypatch):
    monkeypatch.setattr(cache, "LARGE", 20)


async def test_a_large_scope_is_searched_by_words_first_and_then_by_all(folder, clock, small_is_large):
    store = await stored(folder, [entry(f"tea and {word} number {n}") for n in range(40) for word in ("rum", "mint")])
    held = Held(store)
    async with ports_over(store) as ports:
        ports.indexes._feed = held
        alice = Local(ports, clock, user_id="alice")
        first = await alice.search("mint number 7")
        assert (Leg.VECTOR,) == first.unavailable_legs
        assert "tea and mint number 7" == first.hits[0].memory.content
        assert 0.0 == first.hits[0].similarity
        adding = asyncio.create_task(alice.add("tea and sugar"))
        await asyncio.sleep(0.1)
        assert not adding.done()  # what is judged is judged beside all
        held.let.set()
        await adding
        second = await alice.search("mint number 7")
        assert () == second.unavailable_legs
        assert second.hits[0].similarity > 0.5
        assert 0 == (await ports.indexes.get(OWNER)).vectors.missing


@pytest.mark.parametrize("with_tokens", [True, False])
async def test_what_changes_while_vectors_come_keeps_its_own(folder, small_is_large, with_tokens):
    some = [entry(f"tea number {n}") for n in range(60)]
    made = [replace(one, tokens=bytes([n + 1]) * 128 * 20, windows=bytes([n + 1]) * 64) for n, one in enumerate(some)]
    store = await stored(folder, made)
    held = Held(store)
    indexes = indexes_over(held, budget_bytes=1 << 30 if with_tokens else 110_000)  # with room for all, or for half
    store.commits.memories.follow(indexes.apply)
    index = await indexes.get(OWNER, partial=True)
    assert (60, False) == (index.vectors.missing, index.is_whole)
    updated, purged, deleted, embedded = (one.memory for one in made[:4])
    other = HashEncoder().encode(["something else"], query=False)[0]
    await store.commits.write(
        ChangeSet(
            updates=(
                replace(made[0], memory=replace(updated, tags=("new",)), vector=None),
                replace(made[2], memory=replace(deleted, delete_time=LATER, purge_time=LATER), vector=None),
            ),
            embeddings=(Embedding(OWNER, embedded.id, other, HashEncoder.fingerprint),),
        )
    )
    await store.commits.write(ChangeSet(purges=(purged,)))
    await store.commits.write(ChangeSet(inserts=(entry("came later"),)))
    held.let.set()
    whole = await indexes.get(OWNER)
    indexes.close()
    assert (index, 0, True) == (whole, whole.vectors.missing, whole.is_whole)
    assert ("new",) == whole.memory(updated.id).tags
    assert np.allclose(made[0].vector, whole.vectors.row(whole.row_of(updated.id)), atol=1e-4)
    assert np.allclose(other, whole.vectors.row(whole.row_of(embedded.id)), atol=1e-4)
    assert (None, None) == (whole.row_of(purged.id), whole.row_of(deleted.id))
    gone = whole._former[deleted.id]
    assert not whole.vectors.rows(np.array(gone)).any()
    for one in made[4:]:
        assert np.allclose(one.vector, whole.vectors.row(whole.row_of(one.memory.id)), atol=1e-4)
    for one in (made[0], *made[4:]):
        assert (one.tokens if with_tokens else b"") == whole.tokens.row(whole.row_of(one.memory.id))
        assert one.windows == whole.window_vectors.row(whole.row_of(one.memory.id))
    assert b"" == whole.tokens.row(whole.row_of(embedded.id)) == whole.window_vectors.row(whole.row_of(embedded.id))
    await store.close()


async def test_who_waits_for_vectors_that_cannot_be_read_is_told_and_the_next_reads_them_again(folder, small_is_large):
    store = await stored(folder, [entry(f"tea number {n}") for n in range(30)])
    held, faults = Held(store), []
    indexes = indexes_over(held)
    indexes._on_fault = faults.append
    held.fails = True
    held.let.set()
    for _ in range(2):
        with pytest.raises(OSError, match="the disk is gone"):
            await asyncio.wait_for(indexes.get(OWNER), 10)
    assert (["OSError"] * 2, 2, None, {}) == (faults, indexes.faults, indexes.ready(OWNER), indexes._filling)
    gc.disable()
    try:
        lost = weakref.ref(await indexes.get(OWNER, partial=True))
        await asyncio.wait([indexes._filling[OWNER].task])
        for _ in range(100):  # the loader's thread lets go of it a moment later
            if lost() is None:
                break
            await asyncio.sleep(0.05)
        assert lost() is None  # no circle holds it
    finally:
        gc.enable()
    held.fails = False
    index = await indexes.get(OWNER)
    assert (True, 0) == (index.is_whole, index.vectors.missing)
    indexes.close()
    await store.close()


async def test_scopes_that_do_not_fit_beside_each_other_are_all_whole_for_who_waits(folder, small_is_large):
    owners = [Owner("default", Scope(user_id=f"u{n}")) for n in range(3)]
    store = open_duckdb(folder)
    for owner in owners:
        made = [entry(f"tea number {n}", scope=owner.scope) for n in range(60)]
        await store.commits.write(ChangeSet(inserts=tuple(made)))
    alone = indexes_over(store)
    size = (await alone.get(owners[0])).nbytes
    alone.close()
    held = Held(store)
    indexes = indexes_over(held, budget_bytes=int(size * 1.5))
    held.let.set()
    found = await asyncio.wait_for(asyncio.gather(*(indexes.get(owner) for owner in owners * 5)), 30)
    assert {(True, 0)} == {(index.is_whole, index.vectors.missing) for index in found}
    assert indexes.nbytes <= size * 1.5
    indexes.close()
    await store.close()


async def test_who_waits_for_a_scope_gets_it_though_it_is_evicted_meanwhile(folder, small_is_large):
    other = Owner("default", Scope(user_id="other"))
    store = await stored(folder, [entry(f"tea number {n}") for n in range(60)])
    made = [entry(f"tea number {n}", scope=other.scope) for n in range(60)]
    await store.commits.write(ChangeSet(inserts=tuple(made)))
    held, loads = Held(store), []
    read = held.snapshot
    held.snapshot = lambda owner, build: loads.append(owner) or read(owner, build)
    indexes = indexes_over(held)
    size = (await indexes.get(OWNER, partial=True)).nbytes
    indexes._budget = int(size * 1.5)
    waiting = asyncio.create_task(indexes.get(OWNER))
    await asyncio.sleep(0.05)
    await indexes.get(other, partial=True)
    assert indexes.ready(OWNER) is None
    held.let.set()
    index = await asyncio.wait_for(waiting, 10)
    assert (True, 0, [OWNER, other]) == (index.is_whole, index.vectors.missing, loads)
    indexes.close()
    await store.close()


async def test_a_scope_that_others_purge_all_the_time_is_loaded_a_few_times_a_call(folder, small_is_large):
    store = await stored(folder, [entry(f"tea number {n}") for n in range(30)])
    held, loads = Held(store), []
    held.let.set()
    read = held.snapshot
    held.snapshot = lambda owner, build: loads.append(owner) or read(owner, build)
    indexes = indexes_over(held)
    begin = indexes._begin_filling
    indexes._begin_filling = lambda owner, *more: begin(owner, *more) or indexes._drop(owner)
    assert await asyncio.wait_for(indexes.get(OWNER), 10) is None  # the store is asked instead
    assert cache.MOST_LOADS == len(loads)
    indexes.close()
    await store.close()


async def test_tokens_that_come_late_are_counted_and_others_go_for_them(folder, small_is_large):
    store = open_duckdb(folder)
    owners = [Owner("default", Scope(user_id=f"u{n}")) for n in range(4)]
    for owner in owners:
        made = [replace(entry(f"tea {n}", scope=owner.scope), tokens=b"\1" * 128 * 20) for n in range(60)]
        await store.commits.write(ChangeSet(inserts=tuple(made)))
    alone = indexes_over(store)
    size = (await alone.get(owners[0])).nbytes
    assert size > 60 * 128 * 20
    alone.close()
    indexes = indexes_over(store, budget_bytes=int(size * 2.5))
    for owner in owners:
        assert (await indexes.get(owner)).tokens.nbytes > 60 * 128 * 20
        assert indexes.nbytes <= size * 2.5
    assert indexes.nbytes == sum(index.nbytes for index in indexes._ready.values())
    indexes.close()
    await store.close()


async def test_a_scope_that_is_made_whole_when_the_daemon_stops_lets_go_of_who_waits(folder, small_is_large):
    store = await stored(folder, [entry(f"tea number {n}") for n in range(30)])
    held = Held(store)
    indexes = indexes_over(held)
    await indexes.get(OWNER, partial=True)
    waiting = asyncio.create_task(indexes.get(OWNER))
    await asyncio.to_thread(held.begun.wait, 10)
    held.let.set()
    indexes.close()
    with pytest.raises(Unavailable, match="shutting down"):
        await asyncio.wait_for(waiting, 10)
    await store.close()


async def test_an_empty_scope_begins_in_float32(folder):
    store = open_duckdb(folder)
    indexes = indexes_over(store)
    store.commits.memories.follow(indexes.apply)
    index = await indexes.get(OWNER)
    await store.commits.write(ChangeSet(inserts=(entry("tea"),)))
    assert (1, False) == (len(index), index.vectors._compressed)
    indexes.close()
    await store.close()


async def test_what_is_dropped_while_vectors_come_takes_no_more_of_them(folder, small_is_large):
    made = [entry(f"tea number {n}") for n in range(30)]
    store = await stored(folder, made)
    held = Held(store)
    indexes = indexes_over(held)
    store.commits.memories.follow(indexes.apply)
    index = await indexes.get(OWNER, partial=True)
    await store.commits.write(ChangeSet(purge_owner=OWNER))
    held.let.set()
    again = await indexes.get(OWNER)
    assert (0, 30) == (len(again), index.vectors.missing)
    assert not indexes._filling
    indexes.close()
    await store.close()


def test_a_row_in_two_bytes_a_number_is_exact_to_a_few_millionths():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((2000, 384)).astype(np.float32)
    rows[:500] *= rng.random((500, 384)).astype(np.float32) ** 8  # some numbers much larger than the others
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    vectors = Vectors.to_fill(384, 2000)
    vectors.fill(np.arange(2000), packed(rows))
    assert 0 == vectors.missing
    for query in rows[::100]:
        exact = rows.astype(np.float64) @ query.astype(np.float64)
        similar = vectors.compare(query, 2000)
        assert np.abs(exact - similar.exact(np.arange(2000))).max() < 5e-5
        assert np.abs(exact - similar.values).max() <= similar.slack + 5e-5


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-4, 4), max_size=30), st.data())
def test_a_lookup_is_a_dictionary_of_lists(numbers, data):
    lookup = Lookup(np.array(numbers, dtype=np.int64))
    known = {number: [n for n, one in enumerate(numbers) if one == number] for number in range(-5, 6)}
    for _ in range(5):
        assert known == {number: lookup.of(number) for number in known}
        if numbers:
            document = data.draw(st.integers(0, len(numbers) - 1))
            lookup.remove(numbers[document], document)
            if document in known[numbers[document]]:
                known[numbers[document]].remove(document)
    gone = [number for number, left in known.items() if not left]
    assert not set(gone).intersection(lookup._numbers.tolist())


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 3000), st.integers(1, 1200), st.integers(0, 3), st.integers(0, 99))
def test_the_kth_largest_is_what_sorting_says(count, k, digits, seed):
    values = np.random.default_rng(seed).standard_normal(count).astype(np.float32).round(digits)
    if seed % 3 == 0:
        values.sort()  # so that a sample is least like the whole
    k = min(k, count)
    assert np.sort(values)[count - k] == kth_largest(values, k)


def test_ids_with_the_same_number_are_told_apart(monkeypatch):
    names = ["one", "two", "three"]
    monkeypatch.setattr("memoryd.index.lookup.hash", lambda _: 7, raising=False)
    ids = Ids(numbers_of(names), lambda document, name: names[document] == name)
    assert [0, 1, 2, None] == [ids.get(name) for name in (*names, "four")]


def test_postings_with_many_terms_find_the_same(monkeypatch):
    texts = [f"tea w{n % 40} w{n % 7} tea" for n in range(200)]
    few = Postings(Terms(texts))
    monkeypatch.setattr("memoryd.index.postings.FEW_TERMS", 3)
    many = Postings(Terms(texts))
    assert FEW_TERMS > 3
    assert not many._terms
    for postings in (few, many):
        postings.append("tea w3 fresh")
        postings.erase(np.array([3, 200]))
    for term in ("tea", "w3", "w39", "fresh", "nowhere"):
        assert few.frequencies([term], 201, None) == many.frequencies([term], 201, None)
        assert few.holding([term], 201).tolist() == many.holding([term], 201).tolist()
    assert "fresh" not in many._terms


async def test_a_large_scope_that_windows_make_too_large_is_not_loaded_at_every_write(folder, clock, monkeypatch):
    monkeypatch.setattr(cache, "LARGE", 5)
    wanted = MessageSearch(text=ASKED, top_k=1, before=0, after=0, min_score=0.0)
    async with ports_over(open_duckdb(folder)) as ports:
        local, embedder = Local(ports, clock, user_id="alice"), MessageEmbedder(ports, clock, print)
        await local.append("t", [MessageDraft(content=f"{LONG} {n}") for n in range(9)])
        await embedded(embedder)
        await local.search_messages(wanted)
        without = ports.episodes.nbytes
        while await embedder.step_of_long():
            pass
    async with ports_over(open_duckdb(folder)) as ports:
        local = Local(ports, clock, user_id="alice")
        monkeypatch.setattr(ports.episodes, "_budget", without + 1)
        too_large: list[int] = []
        for n in range(3):
            assert (await local.search_messages(wanted)).hits
            for filling in list(ports.episodes._filling.values()):
                await filling.end()
            await asyncio.sleep(0)  # for who waits for its end
            too_large.append(len(ports.episodes._oversized))
            await local.append("t", [MessageDraft(content=f"hello {n}")])
        assert [1, 1, 1] == too_large
        assert 0 == ports.episodes.scopes


async def test_a_few_texts_of_many_windows_are_searched_where_others_do_not_wait_for_it(folder, clock, monkeypatch):
    async with ports_over(open_duckdb(folder)) as ports:
        alice = Local(ports, clock, user_id="alice")
        await alice.append("t", [MessageDraft(content=f"mint tea number {n}") for n in range(100)])
        index = await EpisodeScopes(ports).index(OWNER)
        assert index is not None
        assert not ports.indexes.are_large([index])
        long = " ".join(f"word{n % 900}" for n in range(30_000))
        await alice.append("t", [MessageDraft(content=f"{long} {n}") for n in range(4)])
        found = (await alice.search_messages(MessageSearch(text="word7 word8"))).hits[0].message
        assert found.content.startswith(long)
        assert ports.indexes.are_large([index])
        threads = []

        def noted(*args, **more):
            threads.append(threading.current_thread())
            return search_each(*args, **more)

        monkeypatch.setattr(recall, "search_each", noted)
        await alice.search_messages(MessageSearch(text="word7 word8"))
        await alice.search("mint")
        assert [False, True] == [one is threading.main_thread() for one in threads]
