"""The order of the best hits by a model that reads each with the question, where the operator has named one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memoryd.domain.retrieval.search import Asked, ScoredMemory, with_kept
from memoryd.embedding.base import Reranker
from memoryd.index.analysis import embedded_text
from memoryd.model.results import Leg, LegScore

__all__ = ["MOST_READ", "reranked"]

MOST_READ = 50  # hits that are read with the question


async def reranked(
    question: str, hits: Sequence[ScoredMemory], reranker: Reranker, asked: Asked, limit: int, *, explain: bool
) -> list[ScoredMemory]:
    """
    Return at most `limit` hits: those that the model has read in its order, then the others.

    Scores stay what they are, and so do the places that are kept for higher trust.
    """
    read = hits[:MOST_READ]
    texts = [embedded_text(hit.memory.source.speaker, hit.memory.content) for hit in read]
    values = await reranker.scores(question, texts)
    order = sorted(range(len(values)), key=lambda n: -values[n])
    ranks = {n: rank for rank, n in enumerate(order, 1)}
    told = [
        replace(hit, legs=(*hit.legs, LegScore(Leg.RERANK, ranks[n], values[n], 1.0)))
        if explain and n in ranks
        else hit
        for n, hit in enumerate(hits)
    ]
    ordered = [*(told[n] for n in order), *told[len(values) :]]
    return with_kept(ordered[:limit], ordered, asked.kept, limit)
