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

from memoryd.index import vectors as vectors_module
from memoryd.index.postings import Loading, Postings
from memoryd.index.records import pack, unpack, with_recalls
from memoryd.index.scope import ScopeIndex
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.memory import Judgement, Kind, Source
from memoryd.model.query import Filter
from memoryd.model.validation import text_digest
from tests.builders import (
    ALICE,
    NOW,
    HashEncoder,
    entry,
    memory,
    open_duckdb,
    visible_to,
)
from tests.index_helpers import LATER, OWNER, WANTED, ask, question, random_entries


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
    built = Postings(Loading([e.terms for e in entries]))
    grown = Postings(Loading([e.terms for e in entries[:7]]))
    for e in entries[7:]:
        grown.append(e.terms)
    index = ScopeIndex([entries], dimensions=64, fingerprint="f")
    terms = ["w1", "w2", "w3", "nowhere"]
    expected = bm25_by_the_book([e.terms.split() for e in entries], terms)
    for postings in (built, grown):
        assert np.allclose(expected, postings.score(terms, index.corpus(terms), 40)[0], atol=1e-6)


@pytest.mark.parametrize("count", [300, 5000])
def test_the_vector_leg_is_exact_below_and_above_the_int8_threshold(count):
    entries = random_entries(count)
    index = ScopeIndex([entries], dimensions=64, fingerprint="f")
    assert (count > vectors_module.INT8_FROM) == index.vectors._compressed
    rows = np.stack([e.vector for e in entries]).astype(np.float64)
    for query in random_entries(20, seed=9):
        exact = rows @ query.vector.astype(np.float64)
        best = np.argsort(-np.round(0.3 * np.maximum(exact, 0), 6), kind="stable")[:10]
        found = ask(index, question(query.vector), weights=(0.3, 0.0))
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
    found = ask(index, question(foreign.vector), weights=(1.0, 0.0))
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
    ids = [one for hit in found for one in (hit.memory.id, *hit.same_ids)]
    assert sorted(m.id for m in made if wanted.admits(m, LATER)) == sorted(ids)  # all say "word"


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
    more = replace(whole, recall_time=LATER, recall_count=5)
    assert more == unpack(with_recalls(pack(whole), (LATER, 2, None)))
    by_the_host = replace(more, recall_count=6, trusted_recall_time=LATER)
    assert by_the_host == unpack(with_recalls(pack(more), (LATER, 1, LATER)))


async def test_search_agrees_with_duckdbs_own_cosine(folder):
    store = open_duckdb(folder)
    entries = [entry(f"word{n % 17} word{n % 5} word{n}") for n in range(200)]
    await store.commits.write(ChangeSet(inserts=tuple(entries)))
    index = await asyncio.to_thread(
        store.commits.memories.snapshot,
        OWNER,
        lambda s: ScopeIndex(s.read(WANTED), dimensions=32, fingerprint=HashEncoder.fingerprint),
    )
    for n in range(10):
        query = HashEncoder().encode([f"word{n} word{n + 1}"], query=True)[0]
        oracle = await store.memories.nearest(
            visible_to(ALICE),
            query,
            HashEncoder.fingerprint,
            Filter(),
            now=LATER,
            limit=10,
        )
        found = ask(index, question(query), weights=(1.0, 0.0))
        assert np.allclose([s for _, s in oracle], [hit.similarity for hit in found], atol=1e-5)
        certain = {m.id for m, s in oracle if s > oracle[-1][1] + 1e-5}  # below, ties may fall either way
        assert certain <= {hit.memory.id for hit in found}
    await store.close()
