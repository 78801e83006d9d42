"""
Which memory stands before which. Everything that decides it is here; an index only knows facts.

1. Score: 0.3 · max(0, cosine) + 0.7 · BM25 / Σ idf of the question's terms. Both legs lie in 0–1 by themselves, so that
   a score means the same with one candidate, in two scopes and against min_score.
2. Place: the score, less TRUST_STEP for each class of trust below the host's. It orders; it is not shown.
3. Pairs: of an older and a newer statement that contest each other, or that say another thing of the same shape, the
   newer stands first where their places are close. Of messages alone none does.
4. Kept places: a share of an answer is for higher trust than a sandbox's, where that answers too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memoryd.index.postings import CorpusStats
from memoryd.index.question import Candidate, Question, Weights
from memoryd.index.scope import ScopeIndex
from memoryd.index.search import candidates, legs
from memoryd.knowledge.compare.comparison import may_stand_before
from memoryd.model.memory import Kind, Memory
from memoryd.model.trust import Trust

__all__ = ["KEYWORD_WEIGHT", "VECTOR_WEIGHT", "WEIGHTS", "Asked", "Found", "best_of", "depth_of", "search"]

VECTOR_WEIGHT = 0.3
KEYWORD_WEIGHT = 0.7
TRUST_STEP = 0.02  # by so much is a class of trust worth less than the one above it, in the order only
WEIGHTS = Weights(VECTOR_WEIGHT, KEYWORD_WEIGHT, TRUST_STEP)
DEPTH = 30  # candidates of a search at the least, so that a newer statement is there to be told from the older one

# Chosen on the development halves of letta-evals' facts, those that are contradicted and those that are not
# (docs/benchmarks.md): the more pairs are found close, the more of the latter stand below a newer one.
CLOSE = 0.2  # share of the older one's place that the newer may lack
MOST_OWN = 0.25  # share of the question's words (by idf) that the older one alone may hold
NEAR_ENOUGH = 0.1  # by so much the newer may be less similar to the question where both share no word of it
SHAPE = 0.5  # cosine from which two statements may be of one shape
MOST_COMPARED = 16  # older statements of its shape with which a newer one is compared in a search

LEAST_SHARE = 0.5  # of the best score of higher trust, for another of it to be worth a place that is kept
MESSAGES = frozenset({Kind.EPISODE})
RANK_TIE = 1e-6  # scores closer than this share a rank
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """A search: what the index is asked, and what else the order goes by."""

    question: Question
    limit: int
    digest: bytes = b""
    """Of the query as a text: a statement that says just this stands by its score alone."""
    telling: tuple[str, ...] = ()
    """Those of the terms that tell instances of one shape apart: names, numbers, days."""
    kept: int = 0
    """Places for memories of higher trust than a sandbox's."""


@dataclass(frozen=True, slots=True)
class Found:
    """One memory that was found."""

    score: float
    similarity: float
    lexical: float
    memory: Memory
    vector_rank: int = 0
    keyword_rank: int = 0


def depth_of(limit: int) -> int:
    """Return how many candidates of each index are looked at for so many hits."""
    return max(limit, DEPTH)


def search(indexes: Sequence[ScopeIndex], asked: Asked, *, explain: bool = False) -> list[Found]:
    """Return the best of several indexes together, with the statistics of all of them; best first."""
    found = _search(indexes, asked, explain=explain)
    lower = [hit for hit in found if hit.memory.trust is Trust.SANDBOX]
    missing = asked.kept - (len(found) - len(lower))
    if not lower or missing <= 0 or len(found) < asked.limit:
        return found  # nothing of higher trust was crowded out
    question = replace(asked.question, least_trust=Trust.IMPORTED.weight, depth=depth_of(asked.kept))
    higher = _search(indexes, replace(asked, question=question, limit=asked.kept), explain=explain)
    return _with_kept(found, lower, higher, missing)


def _with_kept(found: Sequence[Found], lower: Sequence[Found], higher: Sequence[Found], missing: int) -> list[Found]:
    """Return what was found with the best of higher trust in it, in place of the last of a sandbox's."""
    there = {hit.memory.id for hit in found}
    # measured by its own best: by that of all, a sandbox that repeats the question would set the bar
    least = LEAST_SHARE * max((hit.score for hit in higher), default=0.0)
    more = [hit for hit in higher if hit.memory.id not in there and hit.score >= least][:missing]
    gone = {hit.memory.id for hit in lower[len(lower) - len(more) :]} if more else set()
    return [hit for hit in found if hit.memory.id not in gone] + more


def _search(indexes: Sequence[ScopeIndex], asked: Asked, *, explain: bool) -> list[Found]:
    question = asked.question
    corpora = [index.corpus(question.terms) for index in indexes]
    stats = sum(corpora[1:], corpora[0]) if corpora else CorpusStats(0, 0, 0, ())
    found = best_of([one for index in indexes for one in candidates(index, question, stats)], asked, stats)
    return _with_ranks(found, [legs(index, question, stats) for index in indexes]) if explain else found


def _with_ranks(found: Sequence[Found], legs: Sequence[tuple[Floats, Floats]]) -> list[Found]:
    """Return hits with their places in the order of each leg, over all scopes together."""

    def rank(leg: int, value: float) -> int:
        better = sum(int(np.count_nonzero(scores[leg] > value + RANK_TIE)) for scores in legs)
        return better + 1 if value > 0 else 0

    return [replace(hit, vector_rank=rank(0, hit.similarity), keyword_rank=rank(1, hit.lexical)) for hit in found]


def best_of(found: Sequence[Candidate], asked: Asked, stats: CorpusStats) -> list[Found]:
    """
    Return the best of the candidates of one or two scopes, at most `limit`.

    The older one of a close pair counts as much as the newer, and so stands right below it; it never takes a place more
    than CLOSE below its own, however many newer ones there are. Messages replace none another: they stand by their
    places alone.
    """
    by_index: dict[int, dict[int, Candidate]] = {}
    for candidate in found if asked.question.filter.kinds != MESSAGES else ():
        by_index.setdefault(id(candidate.index), {})[candidate.row] = candidate
    yielded = {
        (key, row): place for key, known in by_index.items() for row, place in _yielded(known, asked, stats).items()
    }

    def order(one: Candidate) -> tuple[float, bool, int]:
        place = yielded.get((id(one.index), one.row))
        return (-one.place, False, one.create_us) if place is None else (-place, True, -one.create_us)

    hits = (_found(one) for one in sorted(found, key=order))
    return list(islice((one for one in hits if one is not None), asked.limit))


def _found(one: Candidate) -> Found | None:
    """Return a candidate with its memory; None if it was erased meanwhile."""
    memory = one.index.memory_at(one.row)
    return None if memory is None else Found(one.score, one.similarity, one.lexical, memory)


def _yielded(known: Mapping[int, Candidate], asked: Asked, stats: CorpusStats) -> dict[int, float]:
    """Return the places that the older ones of close pairs take, by row; all candidates are of one index."""
    index = next(iter(known.values())).index
    words = _WordsAsked(index, known, asked, stats)

    def is_close(older: int, newer: int) -> bool:
        gap = known[older].place - known[newer].place
        return 0 <= gap <= CLOSE * known[older].place and not words.of_older_alone(older, newer)

    contested = [(a, b) for a, b in index.contested_pairs(known) if index.follows(a, b) and is_close(a, b)]
    shaped = [
        pair
        for newer, older in index.alike(known, floor=SHAPE)
        if (
            pair := next(
                (
                    (row, newer)
                    for row in older[:MOST_COMPARED]
                    if index.follows(row, newer)
                    and is_close(row, newer)
                    and words.of_both(row, newer)
                    and _is_of_one(index, row, newer)
                ),
                None,
            )
        )
    ]
    places: dict[int, float] = {}
    for older, newer in [*contested, *shaped]:
        places[older] = min(places.get(older, known[older].place), known[newer].place)
    return places


def _is_of_one(index: ScopeIndex, row: int, other: int) -> bool:
    """Whether two documents name one thing or speak of one attribute, and the second may be the first's heir."""
    one, two = index.memory_at(row), index.memory_at(other)
    if one is None or two is None or not may_stand_before(two.content, one.content):
        return False
    named = [{mention.entity_id for mention in memory.mentions} for memory in (one, two)]
    if all(named):
        return not named[0].isdisjoint(named[1])  # the ages of two people are no two versions of one
    return bool({*one.claims} & {*two.claims})


class _WordsAsked:
    """Which candidates hold the words of a question."""

    def __init__(self, index: ScopeIndex, known: Mapping[int, Candidate], asked: Asked, stats: CorpusStats) -> None:
        self._index, self._known, self._asked, self._stats = index, known, asked, stats
        self._exact = index.says(asked.digest)

    @cached_property
    def _held(self) -> tuple[list[set[int]], list[tuple[float, set[int]]]]:
        """Who holds the terms that tell instances apart, and who the others, with their shares; few searches ask."""
        terms = self._asked.question.terms
        mass = sum(self._stats.idf) or 1.0
        rows_of = self._index.postings.holders(terms, self._known.keys())
        held = list(zip(terms, self._stats.idf, rows_of, strict=True))
        telling = [rows for term, _, rows in held if term in self._asked.telling]
        return telling, [(idf / mass, rows) for term, idf, rows in held if term not in self._asked.telling]

    def of_older_alone(self, older: int, newer: int) -> bool:
        """Whether the older one is what was meant: it says just the question, or alone holds what tells them apart."""
        if older in self._exact:
            return True
        telling, plain = self._held
        if any(older in rows and newer not in rows for rows in telling):
            return True
        return sum(share for share, rows in plain if older in rows and newer not in rows) > MOST_OWN

    def of_both(self, older: int, newer: int) -> bool:
        """Whether both are about what was asked, and not just about the same person."""
        _, plain = self._held
        if any(older in rows for _, rows in plain):
            return any(older in rows and newer in rows for _, rows in plain)
        return self._known[newer].similarity >= self._known[older].similarity - NEAR_ENOUGH
