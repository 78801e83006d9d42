"""The documents of one scope that answer a question: both legs of the search, and the best by their weighted sum."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memoryd.index.postings import CorpusStats
from memoryd.index.question import Candidate, Question
from memoryd.index.scope import ScopeIndex
from memoryd.index.vectors import Vectors
from memoryd.model.memory import Memory
from memoryd.model.query import Filter
from memoryd.model.trust import Trust

__all__ = ["candidates", "legs", "newest"]

BEST_TRUST = max(trust.weight for trust in Trust)
NO_ROWS: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
TIE = 1e-5  # scores closer than this are compared in float64


def legs(index: ScopeIndex, question: Question, stats: CorpusStats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the exact cosines and keyword scores of what passes the filter, in no order."""
    mask = index.mask(question.filter, question.now)
    rows = np.flatnonzero(mask)
    lexical = index.postings.score(question.terms, stats, len(mask))[rows].astype(np.float64)
    if question.vector is None or index.vectors is None:
        return np.zeros(len(rows)), lexical
    return index.vectors.compare(question.vector, len(mask)).exact(rows), lexical


def _bare(vectors: Vectors, values: NDArray[np.float32], lexical: NDArray[np.float32]) -> NDArray[np.int64]:
    """
    Return the documents with a word of the question that have no vector so far: they stand by their words alone.

    With a cosine of 0 they would stand behind those that have one, and share no word with the question.
    """
    if not vectors.missing:
        return NO_ROWS
    rows = np.flatnonzero((values == 0) & (lexical > 0))
    return rows[~vectors.rows(rows).any(axis=1)] if len(rows) else rows


def newest(indexes: Iterable[ScopeIndex], wanted: Filter, now: datetime) -> Memory | None:
    """Return the latest that passes a filter, of the highest trust that there is; None if nothing passes."""
    best: tuple[int, int, ScopeIndex, int] | None = None
    for index in indexes:
        rows = np.flatnonzero(index.mask(wanted, now))
        if len(rows):
            trusts, created = index.columns.trusts.view()[rows], index.columns.created.view()[rows]
            n = int(np.lexsort((created, trusts))[-1])
            one = (int(trusts[n]), int(created[n]), index, int(rows[n]))
            best = one if best is None or one[:2] > best[:2] else best
    return None if best is None else best[2].memory_at(best[3])


def candidates(index: ScopeIndex, question: Question, stats: CorpusStats) -> list[Candidate]:
    """Return the best documents by the question's weights, best first, with what each leg says of them."""
    mask = index.mask(question.filter, question.now)
    count = len(mask)
    if not count:
        return []
    if question.least_trust:
        mask &= index.columns.trusts.view(count) >= question.least_trust
    depth, weights = question.depth, question.weights
    lexical = index.postings.score(question.terms, stats, count)
    similar = None
    score: NDArray[np.float32] = np.float32(weights.keyword) * lexical
    slack = TIE
    bare = NO_ROWS
    if question.vector is not None and index.vectors is not None:
        similar = index.vectors.compare(question.vector, count)
        bare = _bare(index.vectors, similar.values, lexical)
        score += np.float32(weights.vector) * np.maximum(similar.values, 0)
        score[bare] = lexical[bare]
        slack += weights.vector * similar.slack
    discount = (BEST_TRUST - index.columns.trusts.view(count)).astype(np.float32) * np.float32(weights.trust_step)
    places = np.where(mask, score - discount, np.float32(-2))
    # whatever could still be among the best is compared exactly
    possible = mask & (score >= question.min_score - slack)
    if count > depth:
        possible &= places >= float(np.partition(places, count - depth)[count - depth]) - 2 * slack
    if similar is None or not similar.slack:
        possible &= score > 0
    rows = np.flatnonzero(possible)
    cosines = np.zeros(len(rows)) if similar is None else similar.exact(rows)
    totals = weights.keyword * lexical[rows].astype(np.float64) + weights.vector * np.maximum(cosines, 0)
    if len(bare):
        totals = np.where(np.isin(rows, bare), lexical[rows].astype(np.float64), totals)
    totals = np.round(totals, 6)  # so that equal texts tie, in whatever order they are summed
    order = np.round(totals - discount[rows], 6)
    created = index.columns.created.view()
    best = np.lexsort((rows, created[rows], -order))
    best = best[(totals[best] > 0) & (totals[best] >= question.min_score)][:depth]
    return [
        Candidate(
            float(order[n]),
            float(totals[n]),
            int(created[rows[n]]),
            index,
            int(rows[n]),
            float(cosines[n]),
            float(lexical[rows[n]]),
        )
        for n in best
    ]
