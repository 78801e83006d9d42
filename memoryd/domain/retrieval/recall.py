"""
Recalling: embed the question, search the scopes that the caller sees, rank (`ranking`), present.

A leg that is unavailable counts 0, and the answer says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.policy import Policy
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval import browse
from memoryd.domain.retrieval.answers_read import near_ids, read_answers
from memoryd.domain.retrieval.followed import following
from memoryd.domain.retrieval.miss import why_not
from memoryd.domain.retrieval.newer import newer_of
from memoryd.domain.retrieval.presentation import present
from memoryd.domain.retrieval.prompt import Prompt
from memoryd.domain.retrieval.question import read_question
from memoryd.domain.retrieval.rerank import MOST_READ as MOST_RERANKED
from memoryd.domain.retrieval.rerank import reranked
from memoryd.domain.retrieval.search import Asked, ScoredMemory, search_each
from memoryd.domain.scopes import Scopes
from memoryd.domain.shared import SharedState
from memoryd.domain.shares import FIFTH, for_higher_trust
from memoryd.domain.subjects import resolve_subjects
from memoryd.entities.finders import find_entities
from memoryd.entities.known_names import KnownNames
from memoryd.entities.lookup import meant_by
from memoryd.errors import InvalidArgument, Unavailable
from memoryd.index.analysis import analyse_query
from memoryd.index.question import Question
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.grammar.words import telling_words
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import Entry
from memoryd.model.commits import Recalled
from memoryd.model.embedding import Embedded
from memoryd.model.measures import Event, Quantity
from memoryd.model.memory import Memory, ShownMemory
from memoryd.model.query import Query
from memoryd.model.results import Hit, Leg, LegScore, Miss, SearchResult
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest
from memoryd.store.memories import MemorySelector, Order, Vectors
from memoryd.turns import in_turns, let_others

__all__ = ["find", "recall", "write_recalls"]

VECTOR_ALONE = 0.3  # what a cosine counts where a scope is too large for memory
MOST_FADED = 1000  # memories that have faded since the time of `as_of`
_ID = re.compile(rf"[a-z2-7]{{{limits.MIN_ID_PREFIX},{limits.ID_LENGTH}}}")
MOST_READ = 2000  # characters of a query in which names are looked for
_PAST, _ANYBODY = "what has faded", ""  # locks
FEW = 10  # hits that are shown at once


async def write_recalls(recalls: Mapping[Owner, Mapping[str, Recalled]], ports: Ports) -> None:
    """Write down how often memories were recalled, then bring the indexes up to it, in turns with all others."""
    await ports.store.memories.note_recalls(recalls)
    ready = [(ports.indexes.ready(owner), noted) for owner, noted in recalls.items()]
    each = ((index, *one) for index, noted in ready if index is not None for one in noted.items())
    async for index, memory_id, recalled in in_turns(each):
        index.note_recalls(memory_id, recalled)


async def recall(query: Query, caller: Caller, ports: Ports, *, now: datetime) -> SearchResult:
    """Return the memories that answer a query, best first, each counted as recalled; see SearchMemories."""
    with Prompt(query.text, caller, ports) as asked:
        result = await find(query, asked, caller, Scopes(ports), now=now)
        if ports.readers.reads_searches and query.min_score is None and ports.policy.of(caller.agent_id).floor:
            statements = [hit.memory for hit in result.hits]
            near, limit = near_ids(result.hits), query.limit
            answers = await read_answers(asked, statements, near, caller, ports, limit=limit, for_scores=True)
            result = following(result, answers, explain=query.explain, is_reranked=ports.readers.reranker is not None)
    named = await _named_by_id(query, caller, ports, now)
    if named is not None:
        others = [hit for hit in result.hits if hit.memory.id != named.id]
        result = replace(result, hits=(Hit(named, 1.0), *others)[: query.limit])
    if not query.without_recall:
        ports.shared.recalls.note([hit.memory for hit in result.hits], now, trusted=caller.trust is Trust.HOST)
    return result


async def _named_by_id(query: Query, caller: Caller, ports: Ports, now: datetime) -> ShownMemory | None:
    """Return the memory whose id, or its beginning, is all that is asked; None if it is not there or filtered out."""
    asked = query.text.strip().lower()
    if _ID.fullmatch(asked) is None:
        return None
    memories = await ports.store.memories.find(caller.visibility, asked)
    if len(memories) != 1 or not query.filter.admits(memories[0], query.filter.as_of or now):
        return None
    return (await present(memories, caller, ports, query.filter.as_of or now))[0]


async def find(
    query: Query, prompt: Prompt, caller: Caller, scopes: Scopes, *, now: datetime, kept: int | None = None
) -> SearchResult:
    """
    Return the memories that answer a query, best first.

    So many places as `kept` says (unset: a fifth) are for memories of higher trust than a sandbox's, as far as there
    are any that answer it.
    """
    ports = scopes.ports
    query = _by_policy(
        replace(query, filter=await resolve_subjects(query.filter, caller, scopes)), caller, ports.policy, now
    )
    seen = query.filter.as_of or now
    indexes = [await scopes.index(owner) for owner in scopes.seen_by(caller)]
    embedded, embedding_s = await prompt.embedded()
    ports.measures.measure(Quantity.SEARCH_STEP, embedding_s, "embedding")
    names = await _names(query.text, caller, scopes)
    ready = [index for index in indexes if index is not None]
    missing = _missing_legs(embedded, ready)
    miss: Miss | None = None
    if len(ready) < len(indexes):  # a scope larger than the memory budget: the store answers, without its words
        missing.append(Leg.KEYWORD)
        found = await _from_store(query, caller, scopes, embedded, now)
        if query.why_not:
            asked_for = await browse.find(query.why_not, caller, ports.store, deleted=True, field="why_not")
            miss = Miss(asked_for.id, 0, 0.0, ("not_compared",))
    else:
        ready += await _faded(query, caller, scopes)
        asked = []
        for sentence, vectors in zip(prompt.sentences, embedded, strict=True):
            question = read_question(
                sentence, vectors, query.filter, seen, ready, entity_ids=names | query.filter.entity_ids
            )
            asked.append(_asked(query, sentence, question, _telling(sentence, ports.shared), kept))
        async with _turn(caller, ready, ports):
            began = time.perf_counter()
            found = await _ordered(query, asked, ready, scopes, missing)
            ports.measures.measure(Quantity.SEARCH_STEP, time.perf_counter() - began, "ranking")
            if query.why_not:
                miss = await why_not(query, asked, found, ready, caller, scopes, now=now)
        if len(found) > FEW:
            await let_others()
    ordered_s = time.perf_counter()
    as_was = [_as_was(hit.memory, query.filter.as_of) for hit in found]
    newer = await newer_of(as_was, query.filter, caller, scopes, now)
    memories = await present(as_was, caller, ports, seen, scopes=scopes)
    hits = [_hit(hit, memory, newer.get(memory.id)) for hit, memory in zip(found, memories, strict=True)]
    ports.measures.measure(Quantity.SEARCH_STEP, time.perf_counter() - ordered_s, "presentation")
    if not hits:
        ports.measures.count(Event.EMPTY_SEARCH)
    return SearchResult(tuple(hits), tuple(missing), miss, embedding_s)


def _missing_legs(embedded: Sequence[Embedded | None], indexes: Sequence[ScopeIndex]) -> list[Leg]:
    """Return the legs of the model that cannot take part."""
    seen = [prompt for prompt in embedded if prompt is not None]
    are_seen = len(seen) == len(embedded)
    missing = [] if are_seen and not any(index.lacks_vectors for index in indexes) else [Leg.VECTOR]
    if are_seen and seen[0].tokens and not all(index.with_tokens and index.is_whole for index in indexes):
        missing.append(Leg.TOKENS)
    return missing


def _telling(sentence: str, shared: SharedState) -> list[str]:
    """Return the terms of a sentence that tell instances of one shape apart."""
    with shared.faults.spared("reading the query"):
        return analyse_query(" ".join(telling_words(sentence)))
    return []


async def _ordered(
    query: Query, asked: Sequence[Asked], indexes: list[ScopeIndex], scopes: Scopes, missing: list[Leg]
) -> list[ScoredMemory]:
    """Return the hits among what is in memory, in the order of the model that reads them with the query, if any."""
    ports = scopes.ports
    depth = query.limit if ports.readers.reranker is None else max(query.limit, MOST_RERANKED)
    deep = [replace(each, limit=depth) for each in asked]
    hits = await scopes.of.run(indexes, lambda: search_each(indexes, deep, explain=query.explain))
    if ports.readers.reranker is None:
        return hits
    with ports.shared.faults.spared("reranking"):
        return await reranked(query.text, hits, ports.readers.reranker, deep[0], query.limit, explain=query.explain)
    missing.append(Leg.RERANK)
    return hits[: query.limit]


def _turn(caller: Caller, indexes: list[ScopeIndex], ports: Ports) -> contextlib.AbstractAsyncContextManager[object]:
    """Let each sandbox make one large search at a time, so that the search pool is never full of those of one."""
    if caller.trust is Trust.HOST or not ports.indexes.are_large(indexes):
        return contextlib.nullcontext()
    return ports.shared.locks.hold([("large search", caller.turn)])


def _by_policy(query: Query, caller: Caller, policy: Policy, now: datetime) -> Query:
    """Return a query as it is searched; InvalidArgument where it asks for what is still to come."""
    as_of = query.filter.as_of
    if as_of is not None and as_of > now:
        raise InvalidArgument("as_of lies in the future", field="as_of")
    if query.min_score is None and not policy.of(caller.agent_id).floor:
        return replace(query, min_score=0.0)
    return query


async def _faded(query: Query, caller: Caller, scopes: Scopes) -> list[ScopeIndex]:
    """Return what has faded since the time of `as_of`, as indexes of their own; nothing for now."""
    as_of = query.filter.as_of
    if as_of is None:
        return []
    made = []
    ports = scopes.ports
    for owner in scopes.seen_by(caller):
        # one at a time of all, and one of each owner in the line: the entries are many, and belong to this call alone
        async with ports.shared.locks.hold([(_PAST, owner)]), ports.shared.locks.hold([(_PAST, _ANYBODY)]):
            faded = await ports.store.memories.scan(
                MemorySelector(owner=owner, faded_at=as_of),
                limit=MOST_FADED,
                order=Order.NEWEST,
            )
            entries = await ports.store.memories.entries(owner, [memory.id for memory in faded], Vectors.TEXTS)
            if entries:
                live = [
                    replace(entry, memory=replace(entry.memory, delete_time=None, purge_time=None)) for entry in entries
                ]
                model = ports.embedder
                made.append(await asyncio.to_thread(_index_of, live[::-1], model.dimensions, model.fingerprint))
    return made


def _index_of(entries: list[Entry], dimensions: int, fingerprint: str) -> ScopeIndex:
    return ScopeIndex([entries], dimensions=dimensions, fingerprint=fingerprint)


def _as_was(memory: Memory, as_of: datetime | None) -> Memory:
    """Return a memory without what happened to it after a time."""
    if as_of is None or memory.supersede_time is None or memory.supersede_time <= as_of:
        return memory
    return replace(memory, supersede_time=None, superseded_by="", judgement=None)


async def _names(text: str, caller: Caller, scopes: Scopes) -> frozenset[str]:
    """Return the entities that a text names, by all of their ids, in the scopes that the caller sees."""
    named: set[str] = set()
    with scopes.ports.shared.faults.spared("reading names"):
        seen = [(await scopes.people(owner)).seen_by(caller.reads_as(owner)) for owner in scopes.seen_by(caller)]
        finds = find_entities(
            text[:MOST_READ], [*scopes.ports.readers.finders, KnownNames(seen, weight=caller.trust.weight)]
        )
        for people in seen if finds else ():
            async for name in in_turns({find.text for find in finds}):
                named = named.union(*map(people.members, meant_by(name, people)))
    return frozenset(named)


def _asked(query: Query, sentence: str, question: Question, telling: list[str], kept: int | None) -> Asked:
    """Return what is searched for; `kept` places are for higher trust, unset: a fifth."""
    share = for_higher_trust(query.limit, FIFTH) if query.limit > 1 else 0
    places = share if kept is None else min(kept, query.limit)
    digest = text_digest(sentence)
    return Asked(question, query.limit, query.min_score, digest, tuple(telling), places, strict=query.strict)


async def _from_store(
    query: Query, caller: Caller, scopes: Scopes, embedded: Sequence[Embedded | None], now: datetime
) -> list[ScoredMemory]:
    """Return what is most similar, of scopes that are too large for memory: without words, names and tokens."""
    vectors = [prompt.vector for prompt in embedded if prompt is not None]
    if not vectors:
        raise Unavailable(
            "the scope is larger than index.memory_bytes and there are no vectors to search it by; raise that limit"
        )
    closest: dict[str, tuple[Memory, float]] = {}
    for vector in vectors:
        for memory, similarity in await scopes.nearest(caller.visibility, vector, query.filter, now, query.limit):
            if memory.id not in closest or similarity > closest[memory.id][1]:
                closest[memory.id] = memory, similarity
    near = sorted(closest.values(), key=lambda one: -one[1])[: query.limit]
    hits = [
        ScoredMemory(
            round(VECTOR_ALONE * max(0.0, similarity), 6),
            similarity,
            0.0,
            memory,
            legs=(LegScore(Leg.VECTOR, rank, max(0.0, similarity), VECTOR_ALONE),) if query.explain else (),
        )
        for rank, (memory, similarity) in enumerate(near, 1)
    ]
    return [hit for hit in hits if hit.score > 0 and hit.score >= (query.min_score or 0.0)]


def _hit(hit: ScoredMemory, memory: ShownMemory, newer: ShownMemory | None) -> Hit:
    return Hit(memory, hit.score, hit.similarity, hit.lexical, hit.legs, hit.same_ids, hit.said_by_other, newer)
