"""Scores that follow what the answer reader says, in searches that it reads."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

from memoryd.domain.reading.answers_read import Answers
from memoryd.domain.reading.search import falling
from memoryd.model.results import Hit, Leg, LegScore, SearchResult

__all__ = ["following"]

READ_ODDS = (0.58, 0.42)
"""What the answer reader says counts, and what the score says, in log odds (logistic fit on voices apart)."""
LEAST = 1e-6  # of a chance whose odds are taken
DIGITS = 6


def following(found: SearchResult, answers: Answers, *, explain: bool) -> SearchResult:
    """
    Return hits without those that are hidden; of those that were read the score follows what the reader says.

    Their order stays, and scores still fall, of statements and messages each. A sandbox's statement gains nothing, as
    it may repeat the question. Where reading failed the leg counts as missing.
    """
    if not answers.is_whole:
        return replace(found, unavailable_legs=(*found.unavailable_legs, Leg.READER))
    ranks = {one: n for n, one in enumerate(sorted(answers.read, key=lambda one: -answers.read[one]), 1)}

    def read(hit: Hit) -> Hit:
        value = answers.read.get(hit.memory.id)
        if value is None:
            return hit
        score = _followed(hit.score, value)
        leg = LegScore(Leg.READER, ranks[hit.memory.id], value, 0.0)
        return replace(
            hit,
            score=min(score, hit.score) if hit.memory.trust.is_sandbox else score,
            explanation=(*hit.explanation, leg) if explain else (),
        )

    hits = falling(read(hit) for hit in found.hits if hit.memory.id not in answers.hidden)
    miss = found.miss
    if miss is not None and miss.id in answers.hidden:
        miss = replace(miss, reasons=("reader",))
    return replace(found, hits=tuple(hits), miss=miss)


def _followed(score: float, value: float) -> float:
    by_reader, by_score = READ_ODDS
    odds = by_reader * _log_odds(value) + by_score * _log_odds(score)
    return round(1 / (1 + exp(-odds)), DIGITS)


def _log_odds(chance: float) -> float:
    kept = min(max(chance, LEAST), 1 - LEAST)
    return log(kept / (1 - kept))
