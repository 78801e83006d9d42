"""Scores that follow what the answer reader says, in searches that it reads."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from math import exp, log

from memoryd.domain.retrieval.answers_read import Answers, stated_by
from memoryd.domain.retrieval.search import falling
from memoryd.model.memory import Kind
from memoryd.model.results import Hit, Leg, LegScore, Miss, SearchResult

__all__ = ["following", "log_odds"]

READ_ODDS = (0.43, 0.45)
"""What the answer reader says counts, and what the score says, in log odds (logistic fit: make eval SETS=odds)."""
LEAST = 1e-6  # of a chance whose odds are taken
DIGITS = 6


def following(result: SearchResult, answers: Answers, *, explain: bool, is_reranked: bool = False) -> SearchResult:
    """
    Return hits without those that are hidden; of those that were read the score follows what the reader says.

    Scores still fall. The order of what one author states stays; one whose best is read to be worse loses places to
    others, but none to lower trust, and a sandbox's statement gains no score, as it may repeat the question. Where a
    reranker has ordered the hits, their order is its own. Where reading failed the leg counts as missing.
    """
    if not answers.is_whole:
        return replace(result, unavailable_legs=(*result.unavailable_legs, Leg.READER))
    if not answers.read:
        return result
    ranked = sorted(answers.read, key=lambda one: -answers.read[one])
    legs = {one: LegScore(Leg.READER, n, answers.read[one], 0.0) for n, one in enumerate(ranked, 1)}

    def read(hit: Hit) -> Hit:
        leg = legs.get(hit.memory.id)
        if leg is None:
            return hit
        score = _followed(hit.score, leg.score)
        return replace(
            hit,
            score=min(score, hit.score) if hit.memory.trust.is_sandbox else score,
            explanation=(*hit.explanation, leg) if explain else (),
        )

    shown = [read(hit) for hit in result.hits if hit.memory.id not in answers.hidden]
    hits = shown if is_reranked else _ordered(shown, answers.read)
    miss = _missed(result, answers, hits)
    if miss is not None and miss.id in legs:
        miss = replace(miss, explanation=(*miss.explanation, legs[miss.id]))
    return replace(result, hits=tuple(hits), miss=miss)


def _missed(result: SearchResult, answers: Answers, shown: Sequence[Hit]) -> Miss | None:
    """Return why a memory is missing: also as it, or all that stands above it, is hidden."""
    miss = result.miss
    if miss is None:
        return None
    same = {one for hit in result.hits if hit.memory.id in answers.hidden for one in (hit.memory.id, *hit.same_ids)}
    if miss.id in same or (miss.reasons == ("limit",) and not shown):
        return replace(miss, reasons=("reader",))
    return replace(miss, score=next((hit.score for hit in shown if hit.memory.id == miss.id), miss.score))


def _ordered(hits: Sequence[Hit], read: Collection[str]) -> list[Hit]:
    """
    Return hits whose scores fall: within what one author states, and from higher trust to lower.

    What was not read passes nothing that was, as it only seems to be better.
    """
    capped: list[tuple[Hit, Hashable]] = []
    for hit in hits:
        memory, whom = hit.memory, stated_by(hit.memory)
        above = [
            hit.score
            for hit, by in capped
            if (hit.memory.kind is Kind.EPISODE) == (memory.kind is Kind.EPISODE)
            and not memory.trust.outranks(hit.memory.trust)
            and (
                by == whom
                or hit.memory.trust.outranks(memory.trust)
                or (memory.id not in read and hit.memory.id in read)
            )
        ]
        capped.append((replace(hit, score=min((hit.score, *above))), whom))
    bounded = [hit for hit, _ in capped]
    best = iter(sorted((hit for hit in bounded if hit.memory.kind is not Kind.EPISODE), key=lambda hit: -hit.score))
    return falling(hit if hit.memory.kind is Kind.EPISODE else next(best) for hit in bounded)


def _followed(score: float, value: float) -> float:
    by_reader, by_score = READ_ODDS
    odds = by_reader * log_odds(value) + by_score * log_odds(score)
    return round(1 / (1 + exp(-odds)), DIGITS)


def log_odds(chance: float) -> float:
    """Return the log odds of a chance, which is never quite 0 or 1."""
    kept = min(max(chance, LEAST), 1 - LEAST)
    return log(kept / (1 - kept))
