"""
In which order candidates are shown: each by its own score, and of a pair whose scores are close the newer first.

A pair is an older and a newer statement that contest each other, or that say another thing of the same shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memoryd.index.postings import CorpusStats
from memoryd.model.memory import Memory
from memoryd.model.query import Filter

if TYPE_CHECKING:
    from memoryd.index.scope import ScopeIndex

__all__ = ["Candidate", "Found", "Question", "best_of"]

# Chosen on the development halves of letta-evals' facts, those that are contradicted and those that are not
# (docs/benchmarks.md): the more pairs are found close, the more of the latter stand below a newer one.
CLOSE = 0.2  # share of the older one's place that the newer may lack
MOST_OWN = 0.25  # share of the question's words (by idf) that the older one alone may hold
NEAR_ENOUGH = 0.1  # by so much the newer may be less similar to the question where both share no word of it


@dataclass(frozen=True, slots=True)
class Question:
    """A query as the index sees it: weights say how much each leg counts in the score."""

    terms: tuple[str, ...]
    vector: NDArray[np.float32] | None
    filter: Filter
    now: datetime
    limit: int
    vector_weight: float
    keyword_weight: float
    min_score: float = 0.0
    digest: bytes = b""
    """Of the query as a text: a statement that says just this stands by its score alone."""
    telling: tuple[str, ...] = ()
    """Those of the terms that tell instances of one shape apart: names, numbers, days."""
    least_trust: int = 0
    """Memories whose trust weighs less are left out."""


@dataclass(frozen=True, slots=True)
class Found:
    """One document that was found."""

    score: float
    similarity: float
    lexical: float
    create_us: int
    memory: Memory
    vector_rank: int = 0
    keyword_rank: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One document that may become a hit; `place` is what the order goes by: the score, less for lower trust."""

    place: float
    score: float
    create_us: int
    index: ScopeIndex
    row: int
    similarity: float
    lexical: float


def best_of(candidates: Sequence[Candidate], question: Question, stats: CorpusStats) -> list[Found]:
    """
    Return the best of the candidates of one or two scopes, at most `limit`.

    The older one of a close pair counts as much as the newer, and so stands right below it; it never takes a place more
    than CLOSE below its own, however many newer ones there are.
    """
    by_index: dict[int, dict[int, Candidate]] = {}
    for candidate in candidates:
        by_index.setdefault(id(candidate.index), {})[candidate.row] = candidate
    yielded = {
        (key, row): place for key, known in by_index.items() for row, place in _yielded(known, question, stats).items()
    }

    def order(one: Candidate) -> tuple[float, bool, int]:
        place = yielded.get((id(one.index), one.row))
        return (-one.place, False, one.create_us) if place is None else (-place, True, -one.create_us)

    found = (one.index.found(one) for one in sorted(candidates, key=order))
    return list(islice((one for one in found if one is not None), question.limit))


def _yielded(known: Mapping[int, Candidate], question: Question, stats: CorpusStats) -> dict[int, float]:
    """Return the places that the older ones of close pairs take, by row; all candidates are of one index."""
    index = next(iter(known.values())).index
    asked = _Asked(index, known, question, stats)

    def is_close(older: int, newer: int) -> bool:
        gap = known[older].place - known[newer].place
        return 0 <= gap <= CLOSE * known[older].place and not asked.of_older_alone(older, newer)

    rows = list(known)
    contested = [pair for pair in index.contested_pairs(rows) if is_close(*pair)]
    shaped = index.shaped_pairs(rows, lambda older, newer: is_close(older, newer) and asked.of_both(older, newer))
    places: dict[int, float] = {}
    for older, newer in [*contested, *shaped]:
        places[older] = min(places.get(older, known[older].place), known[newer].place)
    return places


class _Asked:
    """Which candidates hold the words of a question."""

    def __init__(
        self, index: ScopeIndex, known: Mapping[int, Candidate], question: Question, stats: CorpusStats
    ) -> None:
        self._known = known
        self._exact = index.says(question.digest)
        mass = sum(stats.idf) or 1.0
        held = [
            (term, idf / mass, index.postings.holders(term, list(known)))
            for term, idf in zip(question.terms, stats.idf, strict=True)
        ]
        self._telling = [rows for term, _, rows in held if term in question.telling]
        self._plain = [(share, rows) for term, share, rows in held if term not in question.telling]

    def of_older_alone(self, older: int, newer: int) -> bool:
        """Whether the older one is what was meant: it says just the question, or alone holds what tells them apart."""
        if older in self._exact or any(older in rows and newer not in rows for rows in self._telling):
            return True
        return sum(share for share, rows in self._plain if older in rows and newer not in rows) > MOST_OWN

    def of_both(self, older: int, newer: int) -> bool:
        """Whether both are about what was asked, and not just about the same person."""
        if any(older in rows for _, rows in self._plain):
            return any(older in rows and newer in rows for _, rows in self._plain)
        return self._known[newer].similarity >= self._known[older].similarity - NEAR_ENOUGH
