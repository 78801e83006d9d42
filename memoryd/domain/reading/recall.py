"""
Recalling: embed the question, search the scopes that the caller sees, rank.

score = 0.3 · max(0, cosine) + 0.7 · BM25 / Σ idf of the query's terms. Both legs lie in 0–1 by themselves, so that a
score means the same with one candidate, in two scopes and against min_score. A leg that is unavailable counts 0, and
the answer says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.domain.reading.presentation import present
from memoryd.domain.subjects import resolve_subjects
from memoryd.embedding.base import Vector
from memoryd.errors import Unavailable
from memoryd.index.analysis import analyse_query
from memoryd.index.order import Found, Question
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.language.words import telling_words
from memoryd.model.caller import Caller
from memoryd.model.query import Query
from memoryd.model.results import Hit, Leg, LegScore, SearchResult
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest

__all__ = ["KEYWORD_WEIGHT", "VECTOR_WEIGHT", "recall"]

KEPT = 5  # every fifth place of an answer is for higher trust than a sandbox's, where that answers too
LEAST_SHARE = 0.5  # of the best score of higher trust, for another of it to be worth a place that is kept
VECTOR_WEIGHT = 0.3
KEYWORD_WEIGHT = 0.7
EMBEDDING_PATIENCE_S = 2.0  # a search goes on by words when its vector takes longer


async def recall(
    query: Query, caller: Caller, ports: Ports, *, now: datetime, counted: bool = True, kept: int | None = None
) -> SearchResult:
    """
    Return the memories that answer a query, best first; see SearchMemories in the contract.

    Each hit counts as a recall, unless the caller counts those that it shows. So many places as `kept` says (unset: a
    fifth) are for memories of higher trust than a sandbox's, as far as there are any that answer it.
    """
    embedding = asyncio.ensure_future(_vector(query, caller, ports))
    try:
        query = replace(query, filter=await resolve_subjects(query.filter, caller, ports))
        terms = analyse_query(query.text)
        telling: list[str] = []
        with ports.faults.spared("reading the query"):
            telling = analyse_query(" ".join(telling_words(query.text)))
        indexes = [await ports.indexes.get(owner) for owner in caller.visibility.owners]
        vector, embedding_s = await embedding
    finally:
        embedding.cancel()
    missing = [Leg.VECTOR] if vector is None else []
    ready = [index for index in indexes if index is not None]
    if len(ready) < len(indexes):  # a scope larger than the memory budget: the store answers, without its words
        missing.append(Leg.KEYWORD)
        found = await _from_store(query, caller, ports, vector, now)
    else:
        question = Question(
            tuple(terms),
            vector,
            query.filter,
            now,
            query.limit,
            VECTOR_WEIGHT,
            KEYWORD_WEIGHT,
            query.min_score,
            text_digest(query.text),
            tuple(telling),
        )
        found = await ports.indexes.search(ready, question, explain=query.explain)
        share = -(-query.limit // KEPT) if query.limit > 1 else 0
        places = share if kept is None else min(kept, query.limit)
        found = await _with_kept(found, question, ready, ports, places, explain=query.explain)
    hits = [_hit(hit, query, now) for hit in found]
    memories = await present([hit.memory for hit in hits], caller, ports, now)
    hits = [replace(hit, memory=memory) for hit, memory in zip(hits, memories, strict=True)]
    if counted:
        ports.recalls.note((hit.memory for hit in hits), now, trusted=caller.trust is Trust.HOST)
    return SearchResult(tuple(hits), tuple(missing), embedding_s)


async def _with_kept(
    found: list[Found],
    question: Question,
    indexes: Sequence[ScopeIndex],
    ports: Ports,
    kept: int,
    *,
    explain: bool,
) -> list[Found]:
    """Return what was found with the best of higher trust in it, in place of the last of a sandbox's."""
    lower = [hit for hit in found if hit.memory.trust is Trust.SANDBOX]
    missing = kept - (len(found) - len(lower))
    if not lower or missing <= 0 or len(found) < question.limit:
        return found  # nothing of higher trust was crowded out
    asked = replace(question, limit=kept, least_trust=Trust.IMPORTED.weight)
    there = {hit.memory.id for hit in found}
    higher = await ports.indexes.search(indexes, asked, explain=explain)
    # measured by its own best: by that of all, a sandbox that repeats the question would set the bar
    least = LEAST_SHARE * max((hit.score for hit in higher), default=0.0)
    more = [hit for hit in higher if hit.memory.id not in there and hit.score >= least][:missing]
    gone = {hit.memory.id for hit in lower[len(lower) - len(more) :]} if more else set()
    return [hit for hit in found if hit.memory.id not in gone] + more


async def _vector(query: Query, caller: Caller, ports: Ports) -> tuple[Vector | None, float]:
    """Return the vector of a query, None where there is none in time, and the seconds that it took."""
    if ports.vector_refusal:
        return None, 0.0
    began = time.perf_counter()
    try:
        async with asyncio.timeout(EMBEDDING_PATIENCE_S):
            vector = await ports.embedder.query(query.text, owner=caller, caller=caller.turn)
    except (Unavailable, TimeoutError):
        vector = None
    return vector, time.perf_counter() - began


async def _from_store(query: Query, caller: Caller, ports: Ports, vector: Vector | None, now: datetime) -> list[Found]:
    if vector is None:
        raise Unavailable(
            "the scope is larger than index.memory_bytes and there are no vectors to search it by; raise that limit"
        )
    near = await ports.store.nearest(
        caller.visibility, vector, ports.embedder.fingerprint, query.filter, now=now, limit=query.limit
    )
    found = [
        Found(round(VECTOR_WEIGHT * max(0.0, similarity), 6), similarity, 0.0, 0, memory, rank, 0)
        for rank, (memory, similarity) in enumerate(near, 1)
    ]
    return [hit for hit in found if hit.score > 0 and hit.score >= query.min_score]


def _hit(found: Found, query: Query, now: datetime) -> Hit:
    legs: tuple[LegScore, ...] = ()
    if query.explain:
        legs = (
            LegScore(Leg.VECTOR, found.vector_rank, max(0.0, found.similarity), VECTOR_WEIGHT),
            LegScore(Leg.KEYWORD, found.keyword_rank, found.lexical, KEYWORD_WEIGHT),
        )
    return Hit(found.memory.as_of(now), found.score, found.similarity, found.lexical, legs)
