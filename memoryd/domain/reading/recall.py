"""
Recalling: embed the question, search the scopes that the caller sees, rank (`ranking`), present.

A leg that is unavailable counts 0, and the answer says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Self

from memoryd.domain.ports import Ports
from memoryd.domain.reading.presentation import present
from memoryd.domain.reading.ranking import KEYWORD_WEIGHT, VECTOR_WEIGHT, WEIGHTS, Asked, Found, depth_of, search
from memoryd.domain.scopes import Scopes
from memoryd.domain.subjects import resolve_subjects
from memoryd.embedding.base import Vector
from memoryd.errors import Unavailable
from memoryd.index.analysis import analyse_query
from memoryd.index.question import Question
from memoryd.knowledge.language.words import telling_words
from memoryd.model.caller import Caller
from memoryd.model.change import Recalled
from memoryd.model.memory import Memory
from memoryd.model.query import Query
from memoryd.model.results import Hit, Leg, LegScore, SearchResult
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest
from memoryd.turns import in_turns, let_others

__all__ = ["Embedded", "find", "recall", "write_recalls"]

FEW = 10  # hits that are shown at once
KEPT = 5  # every fifth place of an answer is for higher trust than a sandbox's, where that answers too
EMBEDDING_PATIENCE_S = 2.0  # a search goes on by words when its vector takes longer


async def write_recalls(recalls: Mapping[Owner, Mapping[str, Recalled]], ports: Ports) -> None:
    """Write down how often memories were recalled, then bring the indexes up to it, in turns with all others."""
    await ports.store.note_recalls(recalls)
    ready = [(ports.indexes.ready(owner), noted) for owner, noted in recalls.items()]
    each = ((index, *one) for index, noted in ready if index is not None for one in noted.items())
    async for index, memory_id, recalled in in_turns(each):
        index.note_recalls(memory_id, recalled)


class Embedded:
    """A text that searches share, embedded once from now on."""

    def __init__(self, text: str, caller: Caller, ports: Ports) -> None:
        self.text = text
        self._task = asyncio.ensure_future(_vector(text, caller, ports))

    async def vector(self) -> tuple[Vector | None, float]:
        """Return the vector, None where there is none in time, and the seconds that it took."""
        return await self._task

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._task.cancel()


async def recall(query: Query, caller: Caller, ports: Ports, *, now: datetime) -> SearchResult:
    """Return the memories that answer a query, best first, each counted as recalled; see SearchMemories."""
    with Embedded(query.text, caller, ports) as asked:
        found = await find(query, asked, caller, Scopes(ports), now=now)
    ports.recalls.note([hit.memory for hit in found.hits], now, trusted=caller.trust is Trust.HOST)
    return found


async def find(
    query: Query, embedded: Embedded, caller: Caller, scopes: Scopes, *, now: datetime, kept: int | None = None
) -> SearchResult:
    """
    Return the memories that answer a query, best first.

    So many places as `kept` says (unset: a fifth) are for memories of higher trust than a sandbox's, as far as there
    are any that answer it.
    """
    ports = scopes.ports
    query = replace(query, filter=await resolve_subjects(query.filter, caller, scopes))
    indexes = [await scopes.index(owner) for owner in scopes.seen_by(caller)]
    telling: list[str] = []
    with ports.faults.spared("reading the query"):
        telling = analyse_query(" ".join(telling_words(query.text)))
    vector, embedding_s = await embedded.vector()
    ready = [index for index in indexes if index is not None]
    missing = [Leg.VECTOR] if vector is None or any(index.mostly_unembedded for index in ready) else []
    if len(ready) < len(indexes):  # a scope larger than the memory budget: the store answers, without its words
        missing.append(Leg.KEYWORD)
        found = await _from_store(query, caller, scopes, vector, now)
    else:
        asked = _asked(query, vector, telling, now, kept)
        found = await scopes.of.run(ready, lambda: search(ready, asked, explain=query.explain))
        if len(found) > FEW:
            await let_others()
    memories = await present([hit.memory for hit in found], caller, ports, now, scopes=scopes)
    hits = [_hit(hit, memory, query) for hit, memory in zip(found, memories, strict=True)]
    return SearchResult(tuple(hits), tuple(missing), embedding_s)


def _asked(query: Query, vector: Vector | None, telling: list[str], now: datetime, kept: int | None) -> Asked:
    """Return what is searched for; `kept` places are for higher trust, unset: a fifth."""
    question = Question(
        terms=tuple(analyse_query(query.text)),
        vector=vector,
        filter=query.filter,
        now=now,
        depth=depth_of(query.limit),
        weights=WEIGHTS,
        min_score=query.min_score,
    )
    share = -(-query.limit // KEPT) if query.limit > 1 else 0
    places = share if kept is None else min(kept, query.limit)
    return Asked(question, query.limit, text_digest(query.text), tuple(telling), places)


async def _vector(text: str, caller: Caller, ports: Ports) -> tuple[Vector | None, float]:
    """Return the vector of a text, None where there is none in time, and the seconds that it took."""
    began = time.perf_counter()
    try:
        async with asyncio.timeout(EMBEDDING_PATIENCE_S):
            vector = await ports.embedder.query(text, owner=caller, caller=caller.turn)
    except (Unavailable, TimeoutError):
        vector = None
    return vector, time.perf_counter() - began


async def _from_store(
    query: Query, caller: Caller, scopes: Scopes, vector: Vector | None, now: datetime
) -> list[Found]:
    if vector is None:
        raise Unavailable(
            "the scope is larger than index.memory_bytes and there are no vectors to search it by; raise that limit"
        )
    near = await scopes.nearest(caller.visibility, vector, query.filter, now, query.limit)
    found = [
        Found(round(VECTOR_WEIGHT * max(0.0, similarity), 6), similarity, 0.0, memory, rank, 0)
        for rank, (memory, similarity) in enumerate(near, 1)
    ]
    return [hit for hit in found if hit.score > 0 and hit.score >= query.min_score]


def _hit(found: Found, memory: Memory, query: Query) -> Hit:
    legs: tuple[LegScore, ...] = ()
    if query.explain:
        legs = (
            LegScore(Leg.VECTOR, found.vector_rank, max(0.0, found.similarity), VECTOR_WEIGHT),
            LegScore(Leg.KEYWORD, found.keyword_rank, found.lexical, KEYWORD_WEIGHT),
        )
    return Hit(memory, found.score, found.similarity, found.lexical, legs)
