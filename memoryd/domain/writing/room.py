"""Whether there is room for what a call adds: the quota of its grant, and the cap of its scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.domain.writing.evict import evicted, least_valuable
from memoryd.domain.writing.judge import Verdict
from memoryd.domain.writing.pending import Pending
from memoryd.errors import LimitExceeded
from memoryd.index.scope import ScopeIndex
from memoryd.model.caller import Caller
from memoryd.model.grant import GrantUsage
from memoryd.model.memory import Memory
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust

__all__ = ["Room"]


class Room:
    """Counts what one call adds to its grant and to its scopes."""

    def __init__(
        self,
        ports: Ports,
        indexes: Mapping[Owner, ScopeIndex | None],
        pending: Pending,
        now: datetime,
        *,
        used: GrantUsage,
    ) -> None:
        self._ports = ports
        self._indexes = indexes
        self._pending = pending
        self._now = now
        self._used = used
        self._added = 0
        self._added_bytes = 0
        self._evicted: set[str] = set()

    def is_within_quota(self, verdict: Verdict, known: Iterable[Memory], caller: Caller) -> bool:
        """Whether the caller's grant may store what follows from a verdict; if so, it is counted."""
        quota, stored = caller.quota, self._used
        sizes = {memory.id: memory.text_bytes for memory in known}
        grows = sum(
            memory.text_bytes - sizes.get(memory.id, 0)
            for memory in verdict.changed
            if memory.grant_id == caller.grant_id
        )
        added = self._added + (verdict.new is not None)
        size = self._added_bytes + grows + (verdict.new.text_bytes if verdict.new is not None else 0)
        if quota.stored_memories and verdict.new is not None and stored.stored_memories + added > quota.stored_memories:
            return False
        if quota.stored_bytes and size > self._added_bytes and stored.stored_bytes + size > quota.stored_bytes:
            return False
        self._added, self._added_bytes = added, size
        return True

    def is_there_room(self, owner: Owner) -> bool:
        """Whether a scope may have one memory more without one that is evicted for it."""
        cap, index = self._ports.policy.of(owner.agent_id).max_entries, self._indexes[owner]
        if not cap or index is None:
            return True
        return index.live_count(self._now) + self._pending.unsettled(owner) < cap

    async def make(self, verdict: Verdict, owner: Owner, trust: Trust) -> list[Memory]:
        """
        Evict the least valuable memories above the cap of a scope; return them as they were.

        LimitExceeded if all that are there are protected.
        """
        ports, index = self._ports, self._indexes[owner]
        cap = ports.policy.of(owner.agent_id).max_entries
        if not cap or index is None or ports.doubt(self._now):
            return []
        gone = sum(memory.supersede_time is not None for memory in verdict.changed)
        gone += sum(1 for one in self._evicted if self._is_of(one, owner))
        overflow = index.live_count(self._now) + self._pending.unsettled(owner) + 1 - gone - cap
        if overflow <= 0:
            return []
        kept = {*(memory.id for memory in self._pending), *(memory.id for memory in verdict.changed), *self._evicted}
        victims = await least_valuable(index, ports, overflow, kept, self._now, trust=trust)
        if len(victims) < overflow:
            raise LimitExceeded(
                f"the scope holds {cap} memories (memory.max_entries), all of them protected or of higher trust;"
                " delete some",
                limit="max_entries",
            )
        for victim in victims:
            self._evicted.add(victim.id)
            self._pending.put(evicted(victim, ports, self._now))
        return victims

    def _is_of(self, memory_id: str, owner: Owner) -> bool:
        memory = self._pending.get(memory_id)
        return memory is not None and memory.owner == owner
