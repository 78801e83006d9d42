"""The order of the best hits by a model that reads each with the question, where the operator has named one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memoryd.domain.reading.search import Found
from memoryd.embedding.base import Reranker
from memoryd.index.analysis import embedded_text
from memoryd.model.results import Leg, LegScore
from memoryd.model.trust import Trust

__all__ = ["MOST_READ", "reranked"]

MOST_READ = 50  # hits that are read with the question


async def reranked(
    question: str, found: Sequence[Found], reranker: Reranker, *, limit: int, kept: int, explain: bool
) -> list[Found]:
    """
    Return at most `limit` hits: those that the model has read in its order, then the others.

    Scores stay what they are. So many places as `kept` are for higher trust than a sandbox's, as before.
    """
    read = found[:MOST_READ]
    texts = [embedded_text(hit.memory.source.speaker, hit.memory.content) for hit in read]
    values = await reranker.scores(question, texts)
    order = sorted(range(len(values)), key=lambda n: -values[n])
    ranks = {n: rank for rank, n in enumerate(order, 1)}
    told = [
        replace(hit, legs=(*hit.legs, LegScore(Leg.RERANK, ranks[n], values[n], 1.0)))
        if explain and n in ranks
        else hit
        for n, hit in enumerate(found)
    ]
    return _with_kept([*(told[n] for n in order), *told[len(values) :]], limit, kept)


def _with_kept(ordered: Sequence[Found], limit: int, kept: int) -> list[Found]:
    """Return the first hits, the last of a sandbox's replaced where too few are of higher trust."""
    chosen = list(ordered[:limit])
    missing = kept - sum(hit.memory.trust is not Trust.SANDBOX for hit in chosen)
    higher = [hit for hit in ordered[limit:] if hit.memory.trust is not Trust.SANDBOX][: max(0, missing)]
    lower = [n for n, hit in enumerate(chosen) if hit.memory.trust is Trust.SANDBOX]
    gone = {*lower[len(lower) - len(higher) :]} if higher else set()
    return [hit for n, hit in enumerate(chosen) if n not in gone] + higher
