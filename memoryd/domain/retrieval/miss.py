"""Why a memory is not among the hits: what keeps it out, what the legs say of it, and the place that it would have."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memoryd.domain.retrieval import browse
from memoryd.domain.retrieval.search import Asked, ScoredMemory, place_of
from memoryd.domain.scopes import Scopes
from memoryd.index.scope import ScopeIndex
from memoryd.model.caller import Caller
from memoryd.model.query import Query
from memoryd.model.results import Miss

__all__ = ["why_not"]


async def why_not(
    query: Query,
    asked: Sequence[Asked],
    hits: Sequence[ScoredMemory],
    indexes: Sequence[ScopeIndex],
    caller: Caller,
    scopes: Scopes,
    *,
    now: datetime,
) -> Miss:
    """
    Return what became of a memory that the caller sees; MemoryNotFound for any other.

    Of several questions the one counts for which it scores best.
    """
    memory = await browse.find(query.why_not, caller, scopes.ports.store, deleted=True, field="why_not")
    if memory.delete_time is not None and not any(index.memory(memory.id) for index in indexes):
        return Miss(memory.id, 0, 0.0, ("deleted",))
    refused = query.filter.refusals(memory, now)
    places = await scopes.of.run(indexes, lambda: [place_of(indexes, each, memory.id) for each in asked])
    place, score, below, legs = max(places, key=lambda one: one[1])
    reasons = list(refused)
    at = next((n for n, hit in enumerate(hits, 1) if hit.memory.id == memory.id), 0)
    if at:
        return Miss(memory.id, at, score, (), legs)
    if any(memory.id in hit.same_ids for hit in hits):
        reasons.append("same")
    if not place:
        reasons.append("unrelated")
    elif below:
        reasons.append("floor" if query.min_score is None else "min_score")
    if not reasons:
        reasons.append("limit")
    return Miss(memory.id, place, score, tuple(reasons), legs)
