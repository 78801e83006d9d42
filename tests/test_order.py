"""In which order hits stand: by their own scores, of a close pair the newer first, and always with the same bits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.retrieval.pairs import CLOSE, CLOSE_CONTESTED
from memoryd.domain.retrieval.ranking import WEIGHTS, Weights
from memoryd.domain.retrieval.relevance import SEEN_STATEMENTS
from memoryd.domain.retrieval.search import Asked, ScoredMemory, falling
from memoryd.domain.retrieval.search import search as best_of
from memoryd.index.question import Question
from memoryd.index.scope import ScopeIndex
from memoryd.index.vectors import Vectors
from memoryd.model.change import Entry
from memoryd.model.memory import Kind
from memoryd.model.query import Filter
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest
from tests.builders import NOW, HashEncoder, memory

LATER = NOW + timedelta(days=1)
PLAIN = Weights(recency=0.0, tokens=0.0, statement_tokens=0.0)  # all of one time, and found by vectors alone
SIZE = HashEncoder.dimensions


def unit(*parts: float) -> np.ndarray:
    row = np.zeros(SIZE, dtype=np.float32)
    row[: len(parts)] = parts
    return row / np.linalg.norm(row)


def index_of(entries: list[Entry]) -> ScopeIndex:
    return ScopeIndex([entries], dimensions=SIZE, fingerprint=HashEncoder.fingerprint)


def search(index: ScopeIndex, text: str, *, vector=None, limit=10, min_score=0.0, telling=()):
    terms = tuple(text.split())
    asked = Asked(Question(terms, vector, Filter(), LATER), limit, min_score, text_digest(text), telling)
    return best_of([index], asked, weights=PLAIN)


def family(*scores: float, trust: Trust = Trust.HOST, contested: bool = True) -> list[Entry]:
    """Statements of falling cosine with (1, 0, …), each newer than the one before it; all contest each other."""
    made = [memory(f"statement {n}", trust=trust, claims=("a",)) for n in range(len(scores))]
    ids = [one.id for one in made]
    if contested:
        made = [replace(one, contested_with=tuple(i for i in ids if i != one.id)) for one in made]
    return [
        Entry(one, f"w{n}", unit(score, (1 - score**2) ** 0.5), HashEncoder.fingerprint)
        for n, (one, score) in enumerate(zip(made, scores, strict=True))
    ]


def order(entries: list[Entry], **more) -> list[str]:
    return [hit.memory.content for hit in search(index_of(entries), "nothing", vector=unit(1), **more)]


def score_of(cosine: float) -> float:
    """The score of a statement that the vector leg alone finds."""
    return float(SEEN_STATEMENTS.at(np.array([WEIGHTS.statement_vector * cosine]), 0)[0])


def test_of_two_close_scores_the_newer_stands_first_and_the_older_shows_no_more():
    found = search(index_of(family(0.9, 0.85)), "nothing", vector=unit(1))
    assert ["statement 1", "statement 0"] == [hit.memory.content for hit in found]
    assert score_of(0.85) == pytest.approx(found[0].score, abs=1e-5)
    assert found[0].score == found[1].score < score_of(0.9)


def test_of_two_scores_apart_the_better_stands_first():
    assert ["statement 0", "statement 1"] == order(family(0.9, 0.9 * (1 - CLOSE_CONTESTED) - 0.05))
    assert ["statement 1", "statement 0"] == order(family(0.9, 0.9 * (1 - CLOSE_CONTESTED) + 0.05))


def test_what_denies_what_is_like_it_stands_first_and_what_denies_something_else_does_not():
    def told(old, new, values):
        made = [replace(one, terms="van") for one in family(*values, contested=False)]
        made = [
            replace(one, memory=replace(one.memory, content=text)) for one, text in zip(made, (old, new), strict=True)
        ]
        return [hit.memory.content for hit in search(index_of(made), "van", vector=unit(1))]

    used, never = "Anna uses the van", "Anna never uses the van"
    near, far = (0.9, 0.6), (0.9, -0.1)
    assert [never, used] == told(used, never, near)
    assert [used, never] == told(used, never, far)
    assert ["no van", "the van"] != told("the van", "a van", near)


def test_nobody_falls_further_than_what_is_close_however_many_come_after():
    scores = [0.95 - 0.03 * n for n in range(20)]
    hits = search(index_of(family(*scores)), "nothing", vector=unit(1), limit=20)
    first = next(place for place, hit in enumerate(hits) if hit.memory.content == "statement 0")
    assert all(hit.similarity >= (1 - CLOSE) * hits[first].similarity - 1e-5 for hit in hits[:first])


def test_who_is_not_of_the_pair_is_never_displaced():
    pair = family(0.9, 0.8)
    between = Entry(memory("between"), "w", unit(0.85, 0.2, 0.4885), HashEncoder.fingerprint)
    assert ["between", "statement 1", "statement 0"] == order([*pair, between])


def test_no_partner_passes_min_score_or_the_limit():
    pair = family(0.9, 0.8)
    assert ["statement 0"] == order(pair, min_score=score_of(0.89))
    assert ["statement 1"] == order(pair, limit=1)
    assert ["statement 0"] == order(family(0.9, 0.1), limit=1)


def test_a_sandbox_does_not_stand_before_the_host_in_a_pair():
    host, sandbox = family(0.85, 0.84)
    sandbox = replace(sandbox, memory=replace(sandbox.memory, trust=Trust.SANDBOX))
    assert ["statement 0", "statement 1"] == order([host, sandbox])


def test_who_says_what_was_asked_word_for_word_stands_by_its_score():
    old, new = family(0.9, 0.88)
    index = index_of([old, new])
    assert "statement 1" == search(index, "nothing", vector=unit(1))[0].memory.content
    assert "statement 0" == search(index, "statement 0", vector=unit(1))[0].memory.content


def test_who_alone_holds_a_name_that_was_asked_for_stands_by_its_score():
    old, new = family(0.9, 0.88)
    old, new = replace(old, terms="visit hooli anna may"), replace(new, terms="visit initech anna may")
    index = index_of([old, new])
    assert "statement 1" == search(index, "visit anna may", vector=unit(1))[0].memory.content
    asked = "visit anna may hooli"
    assert "statement 0" == search(index, asked, vector=unit(1), telling=("hooli",))[0].memory.content


def test_of_one_shape_the_newer_stands_first_and_strangers_do_not():
    akin = [
        replace(one, terms=f"live {town}")
        for one, town in zip(family(0.9, 0.85, contested=False), ("a", "b"), strict=True)
    ]
    assert ["statement 1", "statement 0"] == [h.memory.content for h in search(index_of(akin), "live", vector=unit(1))]
    past = [akin[0], replace(akin[1], memory=replace(akin[1].memory, content="used to be statement 1"))]
    found = search(index_of(past), "live", vector=unit(1))
    assert ["statement 0", "used to be statement 1"] == [hit.memory.content for hit in found]
    strangers = [replace(one, memory=replace(one.memory, claims=())) for one in akin]
    found = search(index_of(strangers), "live", vector=unit(1))
    assert ["statement 0", "statement 1"] == [hit.memory.content for hit in found]


def test_lower_trust_moves_the_order_a_little_and_hides_nothing():
    made = [
        Entry(memory(text, trust=trust), "w", unit(score, (1 - score**2) ** 0.5), HashEncoder.fingerprint)
        for text, trust, score in (
            ("sandbox", Trust.SANDBOX, 0.9),
            ("host", Trust.HOST, 0.9 - 2 * WEIGHTS.trust_step / WEIGHTS.statement_vector + 0.01),
            ("far", Trust.HOST, 0.5),
        )
    ]
    assert ["host", "sandbox", "far"] == order(made)
    assert ["sandbox"] == order(made, min_score=score_of(0.899))


VECTORS = st.lists(st.integers(0, 40), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(lives=VECTORS, extra=st.integers(0, 60), asked=st.integers(0, 1000))
def test_the_same_question_gives_the_same_bits_however_the_index_came_about(lives, extra, asked):
    rng = np.random.default_rng(asked)
    rows = rng.standard_normal((41 + extra, SIZE)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    made = [Entry(memory(f"m{n}"), f"w{n % 5} w{n % 3}", row, HashEncoder.fingerprint) for n, row in enumerate(rows)]
    grown = index_of(made[:20])
    for one in made[20:]:
        grown.insert(one)
    gone = set()
    for n in lives:
        if n in gone:
            grown.insert(made[n])
        elif n % 2:
            grown.remove(made[n].memory.id)
        else:
            grown.update(made[n])
        gone ^= {n} if n % 2 or n in gone else set()
    loaded = index_of([one for n, one in enumerate(made) if n not in gone])
    query = rng.standard_normal(SIZE).astype(np.float32)
    query /= np.linalg.norm(query)
    assert search(grown, "w1 w2", vector=query, limit=30) == search(loaded, "w1 w2", vector=query, limit=30)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 300])
def test_a_cosine_has_the_same_bits_alone_and_among_others(count):
    rows = np.random.default_rng(count).standard_normal((count, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    vectors, query = Vectors(384, rows), rows[0]
    together = vectors.compare(query, count).exact(np.arange(count))
    alone = [
        float(Vectors(384, rows[n : n + 1].copy()).compare(query, 1).exact(np.array([0]))[0]) for n in range(count)
    ]
    assert alone == together.tolist()


def test_scores_fall_of_statements_and_of_messages_each():
    def found(score, kind=Kind.FACT):
        return ScoredMemory(score, score, 0.0, memory(f"{score}", kind=kind))

    hits = [found(0.5), found(0.7), found(0.6, Kind.EPISODE), found(0.2), found(0.3), found(0.65, Kind.EPISODE)]
    assert [0.5, 0.5, 0.6, 0.2, 0.2, 0.6] == [hit.score for hit in falling(hits)]
