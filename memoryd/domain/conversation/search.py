"""Finding messages: by meaning and by words, in the threads that the caller sees, with what was said around them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.prompt import Prompt
from memoryd.domain.retrieval.recall import find, recall
from memoryd.domain.scopes import EpisodeScopes, NoteScopes, Scopes
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.conversation import Message, place_of, under_own_id
from memoryd.model.memory import Kind
from memoryd.model.query import Query
from memoryd.model.results import Hit, SearchResult
from memoryd.model.scope import Owner
from memoryd.model.talk import FoundMessages, MessageHit, MessageSearch
from memoryd.model.trust import Trust
from memoryd.model.validation import check_count
from memoryd.store.conversations import MessageSelector

__all__ = ["search_everything", "search_messages", "search_with_messages"]

FEW_MESSAGES = 32  # as many are read at once, whatever their size
Place = tuple[Owner, str, int]
"""Of a message: whose, in which thread, and where there."""
Placed = tuple[Hit, Owner, str, int]
"""What was found, and where."""


async def search_everything(query: Query, caller: Caller, ports: Ports, *, now: datetime) -> SearchResult:
    """Return what answers a query: memories, and messages or notes where they are asked for, best first."""
    if not query.asks_for_notes:
        return await _search_said(query, caller, ports, now=now)
    notes = await _search_notes(query, caller, ports, now=now)
    if query.filter.kinds == {Kind.NOTE}:
        return notes
    rest = replace(query, filter=replace(query.filter, kinds=query.filter.kinds - {Kind.NOTE}))
    found = await _search_said(rest, caller, ports, now=now)
    hits = _between(found.hits, notes.hits)[: query.limit]
    legs = dict.fromkeys((*found.unavailable_legs, *notes.unavailable_legs))
    return replace(found, hits=tuple(hits), unavailable_legs=tuple(legs))


def _between(hits: Sequence[Hit], notes: Sequence[Hit]) -> list[Hit]:
    """Return notes among other hits by their scores; the order of each stays."""
    among: list[Hit] = []
    left = deque(notes)
    for hit in hits:
        while left and left[0].score > hit.score:
            among.append(left.popleft())
        among.append(hit)
    return [*among, *left]


async def _search_said(query: Query, caller: Caller, ports: Ports, *, now: datetime) -> SearchResult:
    if query.asks_for_messages:
        return await search_with_messages(query, caller, ports, now=now)
    return await recall(query, caller, ports, now=now)


async def _search_notes(query: Query, caller: Caller, ports: Ports, *, now: datetime) -> SearchResult:
    """Return notes that answer a query, as memories of kind NOTE."""
    asked = replace(query, filter=replace(query.filter, kinds=frozenset({Kind.NOTE})), why_not="")
    with Prompt(query.text, caller, ports) as embedded:
        return await find(asked, embedded, caller, NoteScopes(ports), now=now)


async def search_with_messages(query: Query, caller: Caller, ports: Ports, *, now: datetime) -> SearchResult:
    """
    Return memories and messages that answer a query, best first: the order is that of their scores.

    What was learnt from a message is shown with it once, as one of its `same_ids`. Where its message does not answer
    as well as others, it stands behind them: it says no more than its message, and short sentences score high. (Besides
    the messages of LoCoMo, learnt facts by their own scores took evidence from the first ten: .845 became .783.)
    """
    with Prompt(query.text, caller, ports) as asked:
        memories = await find(query, asked, caller, Scopes(ports), now=now)
        episodes = await find(replace(query, why_not=""), asked, caller, EpisodeScopes(ports), now=now)
    episode_hits = [replace(hit, memory=under_own_id(hit.memory)) for hit in episodes.hits]
    hits = _merged(memories.hits, episode_hits)[: query.limit]
    legs = dict.fromkeys((*memories.unavailable_legs, *episodes.unavailable_legs))
    counted = {hit.memory.id for hit in memories.hits}
    recalled = [hit.memory for hit in hits if hit.memory.id in counted]
    ports.shared.recalls.note(recalled, now, trusted=caller.trust is Trust.HOST)
    return SearchResult(tuple(hits), tuple(legs), memories.miss, memories.embedding_s)


def _merged(memories: Sequence[Hit], hits: Sequence[Hit]) -> list[Hit]:
    """Return memories and messages in one order, and what was learnt from a message with it, or behind all."""
    place_of_message = {hit.memory.id: n for n, hit in enumerate(hits)}
    same: dict[int, list[str]] = {}
    own: list[Hit] = []
    behind: list[Hit] = []
    for hit in memories:
        places = [
            place_of_message[message_id]
            for message_id in hit.memory.source.message_ids
            if message_id in place_of_message
        ]
        if places:
            same.setdefault(min(places), []).extend((hit.memory.id, *hit.same_ids))
        else:
            (behind if hit.memory.source.message_ids else own).append(hit)
    message_hits = [replace(hit, same_ids=(*hit.same_ids, *same.get(n, ()))) for n, hit in enumerate(hits)]
    return [*sorted((*own, *message_hits), key=lambda hit: -hit.score), *behind]


async def search_messages(asked: MessageSearch, caller: Caller, ports: Ports, *, now: datetime) -> FoundMessages:
    """Return the messages that answer a query, whole and with their neighbours; see SearchMessages in the contract."""
    policy = ports.policy.of(caller.agent_id).conversation
    limit = check_count(asked.top_k, "top_k", default=policy.recall_top_k, limit=limits.MAX_SEARCH_LIMIT)
    query = Query(text=asked.text, limit=limit, filter=asked.filter, min_score=asked.min_score)
    owners = None if asked.shared is None else (caller.writes_to(shared=asked.shared),)
    with Prompt(query.text, caller, ports) as embedded:
        result = await find(query, embedded, caller, EpisodeScopes(ports, owners), now=now)
    before = policy.recall_before if asked.before is None else asked.before
    after = policy.recall_after if asked.after is None else asked.after
    hits = [(hit, hit.memory.owner, *place_of(hit.memory.key)) for hit in result.hits]
    messages, omitted = await _messages(hits, before, after, asked, ports)
    return FoundMessages(
        tuple(_told(hits, messages, before, after)), result.unavailable_legs, omitted, result.embedding_s
    )


async def _messages(
    hits: Sequence[Placed], before: int, after: int, asked: MessageSearch, ports: Ports
) -> tuple[dict[Place, Message], int]:
    """Return the messages that were found and those next to them, and how many hits there is no room for."""
    places: dict[Owner, set[tuple[str, int]]] = {}
    for _, owner, thread_id, seq in hits:
        around = range(max(1, seq - before), seq + after + 1)
        places.setdefault(owner, set()).update((thread_id, n) for n in around)
    if sum(map(len, places.values())) <= FEW_MESSAGES:
        messages = await _read(places, ports)
        places_shown, omitted = _within_an_answer(
            hits, {place: message.text_bytes for place, message in messages.items()}, before, after
        )
    else:  # of many, sizes are read before texts
        sizes = {
            (owner, head.thread_id, head.seq): head.text_bytes
            for owner, wanted in places.items()
            for head in await ports.store.conversations.heads(MessageSelector(owner=owner, places=wanted))
        }
        places_shown, omitted = _within_an_answer(hits, sizes, before, after)
        messages = await _read(
            {owner: {place[1:] for place in places_shown if place[0] == owner} for owner in places}, ports
        )
    excluded = asked.exclude_session_ids
    return {
        place: messages[place]
        for place in places_shown
        if place in messages and messages[place].session_id not in excluded
    }, omitted


async def _read(places: Mapping[Owner, set[tuple[str, int]]], ports: Ports) -> dict[Place, Message]:
    return {
        (owner, message.thread_id, message.seq): message
        for owner, wanted in places.items()
        for message in await ports.messages_at(owner, wanted)
    }


def _told(hits: Sequence[Placed], messages: Mapping[Place, Message], before: int, after: int) -> Iterator[MessageHit]:
    """Yield each hit with what stands next to it and is shown with no better one."""
    shown = {(owner, thread_id, seq) for _, owner, thread_id, seq in hits}
    for hit, owner, thread_id, seq in hits:
        message = messages.get((owner, thread_id, seq))
        if message is None:
            continue  # it was erased meanwhile, or the answer would be too long
        sides = []
        for side in (range(max(1, seq - before), seq), range(seq + 1, seq + after + 1)):
            new = [(owner, thread_id, n) for n in side if (owner, thread_id, n) not in shown]
            shown.update(new)
            sides.append(tuple(messages[place] for place in new if place in messages))
        before_it, after_it = sides
        yield MessageHit(
            message, hit.score, hit.similarity, hit.lexical, before_it, after_it, hit.said_by_other, hit.same_ids
        )


def _within_an_answer(
    hits: Sequence[Placed], sizes: Mapping[Place, int], before: int, after: int
) -> tuple[set[Place], int]:
    """
    Return the places that an answer has room for, and how many hits it has no room for.

    The best hits come first, each with its neighbours, the next ones first; a neighbour that is too long is left out.
    """
    left = limits.MAX_FOUND_BYTES
    chosen: set[Place] = set()
    for n, (_, owner, thread_id, seq) in enumerate(hits):
        place = owner, thread_id, seq
        if place in chosen:
            continue
        size = sizes.get(place, 0)
        if n and size > left:
            return chosen, sum((owner, thread_id, seq) not in chosen for _, owner, thread_id, seq in hits)
        chosen.add(place)
        left -= size
        beside = sorted(
            (*range(seq - before, seq), *range(seq + 1, seq + after + 1)), key=lambda other: abs(other - seq)
        )
        for one in beside:
            size = sizes.get((owner, thread_id, one), 0)
            if 0 < size <= left // 2 and (owner, thread_id, one) not in chosen:
                chosen.add((owner, thread_id, one))
                left -= size
    return chosen, 0
