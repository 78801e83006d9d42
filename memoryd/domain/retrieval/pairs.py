"""
Of a pair of statements the newer first.

A pair: an older and a newer statement that contest each other, or that say another thing of the same shape, and stand
close. Of messages alone there is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from memoryd.index.neighbours import alike, cosine, follows
from memoryd.index.postings import CorpusStats
from memoryd.index.question import Question
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.comparison.comparison import may_stand_before

__all__ = ["CLOSE", "Candidate", "in_order"]

# Chosen on the development halves of letta-evals' facts, those that are contradicted and those that are not
# (docs/benchmarks.md): the more pairs are found close, the more of the latter stand below a newer one.
CLOSE = 0.2  # share of the older one's place that the newer may lack …
CLOSE_CONTESTED = 0.35  # … and where it contests that
MOST_OWN = 0.25  # share of the question's words (by idf) that the older one alone may hold
MOST_OWN_DOUBTED = 0.5  # the same where the newer contests or denies it
NEAR_ENOUGH = 0.1  # by so much the newer may be less similar to the question where both share no word of it
DENIED = 0.75  # cosine from which what denies something may be about what the older one says, where no name is shared
SHAPE = 0.5  # cosine from which two statements may be of one shape
MOST_COMPARED = 16  # older statements of its shape with which a newer one is compared in a search


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One document that may become a hit."""

    number: int
    """Among the documents of the search."""
    place: float
    score: float
    create_us: int
    index: ScopeIndex
    row: int
    similarity: float
    is_said: bool


def in_order(
    candidates: Sequence[Candidate], question: Question, stats: CorpusStats, digest: bytes, telling: Sequence[str]
) -> list[Candidate]:
    """
    Return the candidates of one or two scopes, best first; ties oldest first.

    The older one of a close pair counts as much as the newer, and so stands right below it; it never takes a place more
    than CLOSE below its own, however many newer ones there are. `digest` is that of the question: a statement that says
    just this stands by itself. `telling`: those of its terms that tell instances of one shape apart.
    """
    by_index: dict[int, dict[int, Candidate]] = {}
    for candidate in candidates:
        if not candidate.is_said:
            by_index.setdefault(id(candidate.index), {})[candidate.row] = candidate
    yielded = {
        (key, row): place
        for key, known in by_index.items()
        if len(known) > 1
        for row, place in _yielded(known, _Words(known, question, stats, digest, telling)).items()
    }

    def order(one: Candidate) -> tuple[float, bool, int]:
        place = yielded.get((id(one.index), one.row))
        return (-one.place, False, one.create_us) if place is None else (-place, True, -one.create_us)

    return sorted(candidates, key=order)


def _yielded(known: Mapping[int, Candidate], words: _Words) -> dict[int, float]:
    """Return the places that the older ones of close pairs take, by row; all candidates are of one index."""
    index = next(iter(known.values())).index

    def is_near(older: int, newer: int, share: float) -> bool:
        return 0 <= known[older].place - known[newer].place <= share * known[older].place

    def is_close(older: int, newer: int) -> bool:
        return is_near(older, newer, CLOSE) and not words.of_older_alone(older, newer)

    def is_denied(older: int, newer: int) -> bool:
        if not is_near(older, newer, CLOSE_CONTESTED) or words.of_older_alone(older, newer, MOST_OWN_DOUBTED):
            return False
        if not denies(index, newer) or denies(index, older):
            return False
        return _share_a_name(index, older, newer) or cosine(index, older, newer) >= DENIED

    contested = [
        (a, b)
        for a, b in index.contested_pairs(known)
        if follows(index, a, b) and is_near(a, b, CLOSE_CONTESTED) and not words.of_older_alone(a, b, MOST_OWN_DOUBTED)
    ]
    shaped = [
        pair
        for newer, older in alike(index, known, floor=SHAPE)
        if (
            pair := next(
                (
                    (row, newer)
                    for row in older[:MOST_COMPARED]
                    if follows(index, row, newer)
                    and (is_close(row, newer) or is_denied(row, newer))
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
    first, two = index.memory_at(row), index.memory_at(other)
    if first is None or two is None or not may_stand_before(two.content, first.content):
        return False
    named = [{mention.entity_id for mention in memory.mentions} for memory in (first, two)]
    if all(named):
        return not named[0].isdisjoint(named[1])  # the ages of two people are no two versions of one
    return bool({*first.claims} & {*two.claims})


def _share_a_name(index: ScopeIndex, row: int, other: int) -> bool:
    """Whether two documents mention one and the same."""
    memories = (index.memory_at(one) for one in (row, other))
    named = [{mention.entity_id for mention in memory.mentions} for memory in memories if memory is not None]
    return len(named) == 2 and not named[0].isdisjoint(named[1])  # noqa: PLR2004  both are there


_DENIES = re.compile(
    r"\b(?:never|not|n't|n’t|only|exclusively|instead|no longer|rather than|without|dislikes?|avoids?)\b", re.IGNORECASE
)


def denies(index: ScopeIndex, row: int) -> bool:
    """Whether a document denies or excludes something."""
    memory = index.memory_at(row)
    return memory is not None and _DENIES.search(memory.content) is not None


class _Words:
    """Which candidates hold the words of a question."""

    def __init__(
        self,
        known: Mapping[int, Candidate],
        question: Question,
        stats: CorpusStats,
        digest: bytes,
        telling: Sequence[str],
    ) -> None:
        self._known, self._question, self._stats, self._telling = known, question, stats, frozenset(telling)
        self._index = next(iter(known.values())).index
        self._exact = self._index.says(digest)

    @cached_property
    def _held(self) -> tuple[list[set[int]], list[tuple[float, set[int]]]]:
        """Who holds the terms that tell instances apart, and who the others, with their shares; few searches ask."""
        terms = self._question.terms
        mass = sum(self._stats.idf) or 1.0
        rows_of = self._index.postings.holders(terms, self._known.keys())
        held = list(zip(terms, self._stats.idf, rows_of, strict=True))
        telling = [rows for term, _, rows in held if term in self._telling]
        return telling, [(idf / mass, rows) for term, idf, rows in held if term not in self._telling]

    def of_older_alone(self, older: int, newer: int, most: float = MOST_OWN) -> bool:
        """Whether the older one is what was meant: it says just the question, or alone holds what tells them apart."""
        if older in self._exact:
            return True
        telling, plain = self._held
        if any(older in rows and newer not in rows for rows in telling):
            return True
        return sum(share for share, rows in plain if older in rows and newer not in rows) > most

    def of_both(self, older: int, newer: int) -> bool:
        """Whether both are about what was asked, and not just about the same person."""
        _, plain = self._held
        if any(older in rows for _, rows in plain):
            return any(older in rows and newer in rows for _, rows in plain)
        return self._known[newer].similarity >= self._known[older].similarity - NEAR_ENOUGH
