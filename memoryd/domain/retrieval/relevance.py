"""
How likely a hit answers, and whether anything does.

Score: the share of hits of that relevance that answered, by a logistic curve fitted on development data; statements and
what was said have each their own. Floor: of a question that nothing answers the best hits look alike, whatever was
asked; the more text is searched, the better the best of them looks by chance. What is below the floor is left out where
the caller names no min_score. Both are fitted by `make tune`; docs/benchmarks.md shows the curves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.retrieval.ranking import Ranked

__all__ = ["Curve", "above_floor", "scores_of"]

LEAST_PIECES = 20.0  # of text, as of two short statements, from which a floor rises
LEAST_SCORED = 200.0  # as of fifteen statements: with less the best hit is no better for being among few
BEST = 10  # hits in which evidence is looked for
# of the relevance of the best, what others need at the least: of a good one, and of one that hardly answers itself
SHARE_OF_GOOD, SHARE_OF_WEAK = 0.3, 0.7
GOOD = 0.8  # a relevance that is enough: a best one that repeats the question sets no higher bar
HINTED = 0.75  # of what days and names add to a statement's relevance, that its score leaves out
STRICTER = 0.8  # by so much the floor of a context is higher
HALF_KNOWN = 0.5  # of a language, from which evidence is looked for too
LEAST_SCORE = 0.07  # of the best of what was said, and of anything in a language that the model does not read
# the same of a text that a later window makes near, whose score says too little: docs/benchmarks.md
LEAST_SCORE_BY_WINDOW = 0.05
DIGITS = 6

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """
    1 / (1 + exp(−(slope · relevance + text · ln(word pieces searched) + offset))).

    Among more statements a relevance is reached more often by chance. What was said showed no such effect.
    """

    slope: float
    text: float
    offset: float

    def at(self, relevance: Floats, pieces: Floats | float) -> Floats:
        """Return the scores of some relevances."""
        exponent = self.slope * relevance + self.text * np.log(np.maximum(pieces, LEAST_SCORED)) + self.offset
        values: Floats = 1 / (1 + np.exp(-exponent))
        return values


SEEN_STATEMENTS, SEEN_SAID = Curve(16.6, -1.47, 3.2), Curve(6.2, 0.0, -5.5)
READ_STATEMENTS, READ_SAID = Curve(14.4, -0.82, 3.0), Curve(6.4, 0.0, -3.7)
"""Of words alone."""
UNREAD = Curve(10.5, -0.82, 1.5)
"""Of words in a language that the model does not read, where words that no text holds do not count (measured on 12)."""


@dataclass(frozen=True, slots=True)
class _Floor:
    """The least evidence: it rises with the logarithm of the word pieces that are searched, between two bounds."""

    offset: float
    slope: float
    least: float
    most: float

    def of(self, pieces: float) -> float:
        return min(self.most, max(self.least, self.offset + self.slope * float(np.log(max(pieces, LEAST_PIECES)))))


STATEMENTS, SAID = _Floor(-10.1, 0.43, -8.0, -5.0), _Floor(-13.9, 1.12, -8.0, -2.4)
WORDS_ALONE = _Floor(-4.6, 0.0, -4.6, -4.6)


def scores_of(ranked: Ranked, rows: NDArray[np.int64]) -> Floats:
    """Return the scores of some documents, 0–1."""
    said = _said(ranked)[rows]
    relevance = ranked.relevance[rows] - np.where(said, 0, HINTED * ranked.hints[rows])
    read = ranked.by_words[rows]
    seen = _seen(ranked)
    trusted = _trusted(ranked)[rows]
    pieces = np.where(trusted, *(_pieces(ranked, is_said=False, trusted_alone=alone) for alone in (True, False)))
    by_all = np.where(said, SEEN_SAID.at(relevance, 0), SEEN_STATEMENTS.at(relevance, pieces))
    by_words = np.where(said, READ_SAID.at(read, 0), READ_STATEMENTS.at(read, pieces))
    known = _known(ranked)
    by_words = known * by_words + (1 - known) * UNREAD.at(read, np.where(said, LEAST_SCORED, pieces))
    alone = ranked.joined("bare")[rows]
    scores: Floats = np.where(alone, by_words, seen * by_all + (1 - seen) * by_words)
    return np.round(scores, DIGITS)


def above_floor(ranked: Ranked, order: NDArray[np.int64], *, strict: bool = False) -> NDArray[np.bool_]:
    """
    Return which of some documents, best first, may be answers.

    Statements and what was said are judged apart, and what is of higher trust than a sandbox's as if that were all.
    What mentions someone or something that the question names is one in any case.
    """
    said, trusted = _said(ranked)[order], _trusted(ranked)[order]
    named = ranked.joined("names")[order].astype(np.bool_)
    relevance = ranked.relevance[order]
    kept, least = named.copy(), np.zeros(len(order))
    for judged, alone in ((trusted, True), (~trusted, False)):
        if not judged.any():
            continue
        seen = trusted if alone else np.ones(len(order), dtype=np.bool_)
        for is_said, floor in ((True, SAID), (False, STATEMENTS)):
            some = order[seen & (said == is_said)][:BEST]
            bar = _least(ranked, floor, is_said=is_said, trusted_alone=alone) + strict * STRICTER
            by_score = is_said and _pieces(ranked, is_said=True, trusted_alone=alone) >= LEAST_SCORED
            if len(some) and _may_answer(ranked, some, bar, by_score=by_score):
                kept |= judged & (said == is_said)
        best = min(GOOD, float(relevance[seen].max(initial=0.0)))
        share = SHARE_OF_WEAK + (SHARE_OF_GOOD - SHARE_OF_WEAK) * best / GOOD
        least[judged] = share * best
    has_words = ranked.joined("words")[order].astype(np.float64) > 0
    least = np.where(has_words, _seen(ranked) * least, least)  # of words alone a common one may be all that is shared
    return kept & (relevance > 0) & (named | (relevance >= least))


def _may_answer(ranked: Ranked, best: NDArray[np.int64], bar: float, *, by_score: bool) -> bool:
    """Return whether the best of something may answer: by their scores where evidence is alike, and by evidence."""
    if _known(ranked) < HALF_KNOWN and ranked.joined("holds_all")[best].any():
        return True  # there is no other evidence, and a score falls with all that is searched
    if _known(ranked) < 1 or (by_score and _seen(ranked)):
        by_window = ranked.by_window[best] & (_known(ranked) == 1)
        if not (scores_of(ranked, best) >= np.where(by_window, LEAST_SCORE_BY_WINDOW, LEAST_SCORE)).any():
            return False
        if _known(ranked) < HALF_KNOWN:
            return True
    return _evidence(ranked, best) >= bar


def _known(ranked: Ranked) -> float:
    """Return how far the question is of a language that the model reads, 0–1; 1 where it is English."""
    return max((pool.question.judged_share for pool in ranked.pools), default=1.0)


def _seen(ranked: Ranked) -> float:
    """Return how far what the model says of the question counts; 0 without one."""
    shares = [p.question.judged_share for p in ranked.pools if p.similar is not None]
    return max(shares, default=0.0)


def _said(ranked: Ranked) -> NDArray[np.bool_]:
    return ranked.joined("said").astype(np.bool_)


def _trusted(ranked: Ranked) -> NDArray[np.bool_]:
    return ranked.joined("trusted").astype(np.bool_)


def _evidence(ranked: Ranked, best: NDArray[np.int64]) -> float:
    """Return the log odds that something answers, each leg by its best of the first hits (logistic, `make tune`)."""

    def most(values: NDArray[np.generic]) -> float:
        return float(np.asarray(values, dtype=np.float64)[best].max(initial=0.0))

    words = most(ranked.joined("words"))
    named = max(most(ranked.joined("said_by_named")), most(ranked.joined("names")))
    time = most(ranked.joined("time"))
    seen = _seen(ranked) * (1 - float(np.asarray(ranked.joined("bare"), dtype=np.float64)[best].min(initial=1.0)))
    by_words = 22.6 * words + 1.2 * named - 5.5
    by_all = 12.5 * most(ranked.tokens) + 14.4 * most(ranked.joined("similarity")) + 14.6 * words - 12.9
    by_all += 2.0 * named + 1.1 * time
    return seen * by_all + (1 - seen) * by_words


def _least(ranked: Ranked, floor: _Floor, *, is_said: bool, trusted_alone: bool) -> float:
    seen = _seen(ranked)
    pieces = _pieces(ranked, is_said=is_said, trusted_alone=trusted_alone)
    return seen * floor.of(pieces) + (1 - seen) * WORDS_ALONE.of(pieces)


def _pieces(ranked: Ranked, *, is_said: bool, trusted_alone: bool) -> float:
    """Return how much text is searched, in word pieces, of what was said or of statements."""
    return sum(pool.searched(is_said=is_said, trusted_alone=trusted_alone) for pool in ranked.pools)
