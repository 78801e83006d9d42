"""Finding messages: by meaning and by words, in the threads that the caller sees, with what was said around them."""

from __future__ import annotations

from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.domain.reading.recall import recall
from memoryd.domain.scopes import EpisodeScopes
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.query import Query
from memoryd.model.results import SearchResult
from memoryd.model.scope import Owner
from memoryd.model.talk import FoundMessages, MessageHit, MessageSearch
from memoryd.model.validation import check_count

__all__ = ["find_episodes", "search_messages", "search_with_messages"]


async def find_episodes(
    query: Query, caller: Caller, ports: Ports, *, now: datetime, owners: tuple[Owner, ...] | None = None
) -> SearchResult:
    """Return the messages that answer a query as memories of kind EPISODE, best first; recalls are not counted."""
    return await recall(query, caller, ports, now=now, counted=False, scopes=EpisodeScopes(ports, owners))


async def search_with_messages(query: Query, caller: Caller, ports: Ports, *, now: datetime) -> SearchResult:
    """Return memories and messages that answer a query, best first: the order is that of their scores."""
    episodes = await find_episodes(query, caller, ports, now=now)
    memories = await recall(query, caller, ports, now=now)
    hits = sorted((*memories.hits, *episodes.hits), key=lambda hit: -hit.score)[: query.limit]
    legs = dict.fromkeys((*memories.unavailable_legs, *episodes.unavailable_legs))
    return SearchResult(tuple(hits), tuple(legs), episodes.embedding_s + memories.embedding_s)


async def search_messages(asked: MessageSearch, caller: Caller, ports: Ports, *, now: datetime) -> FoundMessages:
    """Return the messages that answer a query, whole and with their neighbours; see SearchMessages in the contract."""
    policy = ports.policy.conversation
    limit = check_count(asked.top_k, "top_k", default=policy.recall_top_k, limit=limits.MAX_SEARCH_LIMIT)
    query = Query(text=asked.text, limit=limit, filter=asked.filter, min_score=asked.min_score)
    owners = None if asked.shared is None else (caller.writes_to(shared=asked.shared),)
    found = await find_episodes(query, caller, ports, now=now, owners=owners)
    before = policy.recall_before if asked.before is None else asked.before
    after = policy.recall_after if asked.after is None else asked.after
    places: dict[Owner, set[tuple[str, int]]] = {}
    hits = [(hit, hit.memory.owner, *_place(hit.memory.key)) for hit in found.hits]
    for _, owner, thread_id, seq in hits:
        around = range(max(1, seq - before), seq + after + 1)
        places.setdefault(owner, set()).update((thread_id, n) for n in around)
    said = {
        (owner, message.thread_id, message.seq): message
        for owner, wanted in places.items()
        for message in await ports.store.messages_at(owner, wanted)
    }
    shown = {(owner, thread_id, seq) for _, owner, thread_id, seq in hits}
    told = []
    for hit, owner, thread_id, seq in hits:
        message = said.get((owner, thread_id, seq))
        if message is None:
            continue  # it was erased meanwhile
        sides = []
        for side in (range(max(1, seq - before), seq), range(seq + 1, seq + after + 1)):
            new = [(owner, thread_id, n) for n in side if (owner, thread_id, n) not in shown]
            shown.update(new)
            sides.append(tuple(said[one] for one in new if one in said))
        told.append(MessageHit(message, hit.score, hit.similarity, hit.lexical, *sides))
    return FoundMessages(tuple(told), found.unavailable_legs, found.embedding_s)


def _place(key: str) -> tuple[str, int]:
    thread_id, _, seq = key.rpartition("\x1f")
    return thread_id, int(seq)
