"""The index is exact, agrees with its oracles, and never falls behind a commit."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.daemon.config import Config, IndexConfig
from memoryd.domain.reading import ranking
from memoryd.domain.reading.ranking import Asked, best_of, depth_of
from memoryd.index import records
from memoryd.index import vectors as vectors_module
from memoryd.index.analysis import analyse, analyse_query
from memoryd.index.cache import ScopeIndexes
from memoryd.index.postings import Postings
from memoryd.index.question import Question, Weights
from memoryd.index.records import forget_unpacked, pack, unpack
from memoryd.index.scope import ScopeIndex
from memoryd.index.search import candidates
from memoryd.model.change import Applied, ChangeSet, Entry
from memoryd.model.memory import Judgement, Kind, Source
from memoryd.model.query import Filter
from memoryd.model.scope import Owner
from memoryd.model.validation import text_digest
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
    run,
    visible_to,
)

OWNER = Owner("default", ALICE)
LATER = NOW + timedelta(days=1)


def random_entries(count: int, dimensions: int = 64, seed: int = 0) -> list[Entry]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    words = [f"w{n}" for n in range(50)]
    return [
        Entry(memory(f"m{n}"), " ".join(rng.choice(words, rng.integers(1, 9))), row, "f") for n, row in enumerate(rows)
    ]


def question(vector=None, terms=(), *, limit=10, wanted=None, weights=(0.3, 0.7), now=LATER) -> Asked:
    given = Question(tuple(terms), vector, wanted or Filter(), now, depth_of(limit), Weights(*weights))
    return Asked(given, limit)


def ask(index: ScopeIndex, asked: Asked):
    return ranking.search([index], asked)


def bm25_by_the_book(documents: list[list[str]], terms: list[str]) -> list[float]:
    lengths = [len(words) for words in documents]
    mean = sum(lengths) / len(lengths)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in lengths) / len(lengths))
    b = min(1.0, max(0.3, deviation / mean))
    scores, mass = [0.0] * len(documents), 0.0
    for term in terms:
        df = sum(term in words for words in documents)
        idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
        mass += idf
        for n, words in enumerate(documents):
            tf = words.count(term)
            scores[n] += idf * tf / (tf + 1.2 * (1 - b + b * len(words) / mean))
    return [score / mass for score in scores]


def test_the_keyword_leg_is_bm25_by_the_book():
    entries = random_entries(40)
    built = Postings([e.terms for e in entries])
    grown = Postings([e.terms for e in entries[:7]])
    for e in entries[7:]:
        grown.append(e.terms)
    index = ScopeIndex([entries], dimensions=64, fingerprint="f")
    terms = ["w1", "w2", "w3", "nowhere"]
    expected = bm25_by_the_book([e.terms.split() for e in entries], terms)
    for postings in (built, grown):
        assert np.allclose(expected, postings.score(terms, index.corpus(terms), 40), atol=1e-6)


@pytest.mark.parametrize("count", [300, 5000])
def test_the_vector_leg_is_exact_below_and_above_the_int8_threshold(count):
    entries = random_entries(count)
    index = ScopeIndex([entries], dimensions=64, fingerprint="f")
    assert (count > vectors_module.INT8_FROM) == index.vectors._compressed
    rows = np.stack([e.vector for e in entries]).astype(np.float64)
    for query in random_entries(20, seed=9):
        exact = rows @ query.vector.astype(np.float64)
        best = np.argsort(-np.round(0.3 * np.maximum(exact, 0), 6), kind="stable")[:10]
        found = ask(index, question(query.vector, weights=(0.3, 0.0)))
        assert [entries[n].memory.id for n in best] == [hit.memory.id for hit in found]
        assert np.allclose(exact[best], [hit.similarity for hit in found], atol=1e-6)


def test_close_vectors_are_told_apart_above_the_int8_threshold():
    rng = np.random.default_rng(3)
    base = rng.standard_normal(64)
    rows = (base + 1e-3 * rng.standard_normal((4000, 64))).astype(np.float32)  # closer than int8 can say
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    entries = [Entry(memory(f"{n}"), "w", row, "f") for n, row in enumerate(rows)]
    index = ScopeIndex([entries], dimensions=64, fingerprint="f")
    query = rows[17]
    exact = rows.astype(np.float64) @ query.astype(np.float64)
    best = np.argsort(-np.round(0.3 * exact, 6), kind="stable")[:10]
    assert [entries[n].memory.id for n in best] == [hit.memory.id for hit in ask(index, question(query))]


def test_an_index_that_grew_equals_one_that_was_built():
    entries = random_entries(3000)
    built = ScopeIndex([entries[:1500], entries[1500:]], dimensions=64, fingerprint="f")
    grown = ScopeIndex([entries[:1990]], dimensions=64, fingerprint="f")
    for e in entries[1990:]:
        grown.insert(e)
    for query in random_entries(10, seed=5):
        asked = question(query.vector, query.terms.split())
        assert ask(built, asked) == ask(grown, asked)
    assert len(built) == len(grown) == 3000


def test_a_removed_memory_leaves_hits_counts_and_lookups():
    entries = random_entries(30)
    index = ScopeIndex([entries], dimensions=64, fingerprint="f")
    fresh = ScopeIndex([entries[10:]], dimensions=64, fingerprint="f")
    for e in entries[:10]:
        index.remove(e.memory.id)
    index.remove("not there")
    terms = entries[0].terms.split()
    assert fresh.corpus(terms) == index.corpus(terms)
    asked = question(entries[0].vector, terms, limit=30)
    assert ask(fresh, asked) == ask(index, asked)
    assert [] == index.same_text(text_digest(entries[0].memory.content), LATER)
    assert 20 == len(index)


def test_a_quarter_dead_is_wasteful():
    entries = random_entries(2000)
    index = ScopeIndex([entries], dimensions=64, fingerprint="f")
    for e in entries[:500]:
        index.remove(e.memory.id)
    assert not index.wasteful
    index.remove(entries[500].memory.id)
    assert index.wasteful


def test_vectors_of_another_fingerprint_are_never_compared():
    mine, foreign = random_entries(2)
    index = ScopeIndex([[mine, replace(foreign, fingerprint="g")]], dimensions=64, fingerprint="f")
    found = ask(index, question(foreign.vector, weights=(1.0, 0.0)))
    assert foreign.memory.id not in [hit.memory.id for hit in found]


times = st.one_of(st.none(), st.integers(-3, 3).map(lambda n: LATER + timedelta(hours=n)))
labels = st.lists(st.sampled_from(["a", "b", "A", "c d"]), max_size=3).map(tuple)
memories = st.builds(
    memory,
    content=st.just("word"),
    kind=st.sampled_from(Kind),
    subjects=labels,
    tags=labels,
    category=st.sampled_from(["", "x", "y"]),
    metadata=st.dictionaries(st.sampled_from(["k", "l"]), st.sampled_from(["1", "2"])),
    expire_time=times,
    supersede_time=times,
    event_time=st.integers(-3, 3).map(lambda n: NOW + timedelta(hours=n)),
)
bounds = st.one_of(st.none(), st.integers(-3, 0).map(lambda n: NOW + timedelta(hours=n)))
ends = st.one_of(st.none(), st.integers(1, 3).map(lambda n: NOW + timedelta(hours=n)))
filters = st.builds(
    Filter,
    kinds=st.frozensets(st.sampled_from(Kind)),
    subjects=labels,
    tags=labels,
    metadata=st.dictionaries(st.sampled_from(["k", "l"]), st.sampled_from(["1", "2"])),
    category=st.sampled_from(["", "x"]),
    event_time_from=bounds,
    event_time_to=ends,
    create_time_from=bounds,
    create_time_to=ends,
    include_expired=st.booleans(),
    include_superseded=st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(memories, max_size=8, unique_by=lambda m: m.id), filters)
def test_the_mask_admits_what_the_filter_admits(made, wanted):
    entries = [Entry(m, "word") for m in made]
    index = ScopeIndex([entries])
    found = ask(index, question(terms=["word"], limit=100, wanted=wanted))
    assert {m.id for m in made if wanted.admits(m, LATER)} == {hit.memory.id for hit in found}


def test_a_packed_memory_comes_back_whole():
    whole = memory(
        "ü",
        kind=Kind.EVENT,
        subjects=("s",),
        metadata={"k": "v"},
        source=Source("a", "b", "c", "d", ("e",)),
        expire_time=LATER,
        decay_rate=0.5,
        judgement=Judgement("r", "s", "t"),
        recall_time=NOW,
        recall_count=3,
    )
    assert whole == unpack(pack(whole))


def test_search_agrees_with_duckdbs_own_cosine(folder):
    async def rule():
        store = open_duckdb(folder)
        entries = [entry(f"word{n % 17} word{n % 5} word{n}") for n in range(200)]
        await store.commit(ChangeSet(inserts=tuple(entries)))
        index = await asyncio.to_thread(
            store.read_owner,
            OWNER,
            lambda s: ScopeIndex(s.chunks, dimensions=32, fingerprint=HashEncoder.fingerprint),
        )
        for n in range(10):
            query = HashEncoder().encode([f"word{n} word{n + 1}"], query=True)[0]
            oracle = await store.nearest(
                visible_to(ALICE), query, HashEncoder.fingerprint, Filter(), now=LATER, limit=10
            )
            found = ask(index, question(query, weights=(1.0, 0.0)))
            assert np.allclose([s for _, s in oracle], [hit.similarity for hit in found], atol=1e-5)
            certain = {m.id for m, s in oracle if s > oracle[-1][1] + 1e-5}  # below, ties may fall either way
            assert certain <= {hit.memory.id for hit in found}
        await store.close()

    run(rule())


# --- the cache ---


def indexes_over(read, **more) -> ScopeIndexes:
    options = {"budget_bytes": 1 << 30, "dimensions": 32, "fingerprint": HashEncoder.fingerprint}
    return ScopeIndexes(read, on_fault=lambda _: None, **{**options, **more})


def test_many_callers_of_a_cold_scope_cause_one_load():
    async def rule():
        store, loads = ram_store(), []
        await store.commit(ChangeSet(inserts=(entry(),)))

        def read(owner, build):
            loads.append(owner)
            return store.read_owner(owner, build)

        indexes = indexes_over(read)
        found = await asyncio.gather(*(indexes.get(OWNER) for _ in range(64)))
        indexes.close()
        assert ([OWNER], 1) == (loads, len(set(map(id, found))))

    run(rule())


def test_what_is_added_during_a_load_is_found():
    async def rule():
        store, loop = ram_store(), asyncio.get_running_loop()
        await store.commit(ChangeSet(inserts=(entry("before"),)))

        def read(owner, build):
            def slow(snapshot):
                chunks = [list(chunk) for chunk in snapshot.chunks]  # the snapshot is taken …
                for text in ("during", "during too"):  # … and then others write
                    asyncio.run_coroutine_threadsafe(store.commit(ChangeSet(inserts=(entry(text),))), loop).result(9)
                return build(replace(snapshot, chunks=chunks))

            return store.read_owner(owner, slow)

        indexes = indexes_over(read)
        store.on_commit(indexes.apply)
        index = await indexes.get(OWNER)
        await store.commit(ChangeSet(inserts=(entry("after"),)))
        indexes.close()
        assert {"before", "during", "during too", "after"} == {
            hit.memory.content for hit in ask(index, question(HashEncoder().encode(["x"], query=True)[0]))
        }

    run(rule())


def test_a_commit_that_the_snapshot_holds_is_not_applied_again():
    async def rule():
        store = ram_store()
        made = entry("once")
        seq = await store.commit(ChangeSet(inserts=(made,)))
        indexes = indexes_over(store.read_owner)
        index = await indexes.get(OWNER)
        indexes.apply(Applied(seq, ChangeSet(inserts=(made,))))
        indexes.close()
        assert 1 == len(index)

    run(rule())


def test_an_index_that_fails_is_dropped_and_built_anew(clock, folder, monkeypatch):
    async def rule():
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

    run(rule())


def test_the_least_used_scopes_go_when_the_budget_is_spent():
    async def rule():
        store = ram_store()
        owners = [Owner(f"agent{n}", ALICE) for n in range(4)]
        for owner in owners:
            await store.commit(ChangeSet(inserts=tuple(entry(f"m{n}", agent_id=owner.agent_id) for n in range(50))))
        probe = indexes_over(store.read_owner)
        size = (await probe.get(owners[0])).nbytes
        probe.close()
        indexes = indexes_over(store.read_owner, budget_bytes=int(size * 2.5))
        for owner in owners:
            assert await indexes.get(owner) is not None
        assert 2 == indexes.scopes
        assert indexes.nbytes <= size * 2.5
        indexes.close()

    run(rule())


def test_a_scope_larger_than_the_budget_is_searched_by_the_store_and_says_so(folder, clock):
    async def rule():
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

    run(rule())


def test_no_two_memories_share_a_create_time(folder, clock):
    async def rule():
        tiny = Config(index=IndexConfig(memory_bytes=1))
        async with ports_over(open_duckdb(folder), tiny) as ports:
            people = [Local(ports, clock, user_id=f"u{n}") for n in range(8)]
            results = await asyncio.gather(*(person.add("at once", key="k") for person in people))
            assert 8 == len({result.memory.create_time for result in results})

    run(rule())


def test_a_hit_carries_the_recalls_that_were_written_down(folder, clock):
    async def rule():
        async with ports_over(open_duckdb(folder)) as ports:
            alice = Local(ports, clock, user_id="alice")
            made = (await alice.add("apple")).memory
            recalls = {made.owner: {made.id: (clock.now, 3, None)}}
            await ports.store.note_recalls(recalls)
            ports.indexes.note_recalls(recalls)
            assert (
                3
                == (await alice.search("apple")).hits[0].memory.recall_count
                == (await alice.get(made.id)).recall_count
            )

    run(rule())


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


# --- words ---


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
