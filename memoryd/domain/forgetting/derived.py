"""What was made from memories, and goes with any of them: digests, which cite what they are made from."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from memoryd.domain.batching import READ_AT_ONCE
from memoryd.model.memory import Kind, Memory
from memoryd.model.query import Filter
from memoryd.model.scope import Owner, Visibility
from memoryd.store.base import Store
from memoryd.store.memories import Cursor

__all__ = ["CITES", "MOST_CITED", "cited", "digests_citing"]

CITES = "cites"  # the key of a digest's metadata that names its sources
MOST_CITED = 36  # ids that fit into one value of metadata
_DIGESTS = Filter(kinds=frozenset({Kind.REFLECTION}), include_superseded=True, include_expired=True)


def cited(memory: Memory) -> frozenset[str]:
    """Return the ids of the memories that a memory is made from; none of what was stated."""
    return frozenset(str(memory.metadata.get(CITES, "")).split())


async def digests_citing(gone: Iterable[Memory], store: Store, now: datetime) -> list[Memory]:
    """Return the digests, in every state but deleted, that are made from one of some memories."""
    ids: dict[Owner, set[str]] = {}
    for memory in gone:
        ids.setdefault(memory.owner, set()).add(memory.id)
    memories: list[Memory] = []
    for owner, named in ids.items():
        visible = Visibility(owner.agent_id, owner.scope.user_id, owner.scope.chat_id)
        after: Cursor | None = None
        while seen := await store.memories.page(visible, _DIGESTS, now=now, limit=READ_AT_ONCE, after=after):
            after = Cursor(seen[-1].create_time, seen[-1].id)
            memories += [memory for memory in seen if memory.id not in named and not cited(memory).isdisjoint(named)]
            if len(seen) < READ_AT_ONCE:
                break
    return memories
