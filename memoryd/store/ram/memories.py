"""What the reference store answers about memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memoryd.model import limits
from memoryd.model.change import Entry, Tombstone
from memoryd.model.commits import Recalled
from memoryd.model.memory import Memory, State
from memoryd.model.query import Filter
from memoryd.model.reports import GcReport
from memoryd.model.results import MemoryCount, Stats
from memoryd.model.scope import Owner, Visibility
from memoryd.model.validation import text_digest
from memoryd.store.memories import Cursor, Graces, MemorySelector, Order, Vectors, read_cursor, read_owner_place
from memoryd.store.ram.state import RamState

__all__ = ["RamMemories"]


class RamMemories:
    """Memories in a dictionary."""

    def __init__(self, state: RamState) -> None:
        self._state = state

    def _visible(self, visible: Visibility) -> list[Memory]:
        owners = set(visible.owners)
        return [entry.memory for entry in self._state.entries.values() if entry.memory.owner in owners]

    async def page(
        self,
        visible: Visibility,
        wanted: Filter,
        *,
        now: datetime,
        limit: int,
        after: Cursor | None = None,
    ) -> list[Memory]:
        memories = [memory for memory in self._visible(visible) if wanted.admits(memory, now)]
        memories.sort(key=lambda memory: (memory.create_time, memory.id), reverse=True)
        return _past(memories, after)[:limit]

    async def find(self, visible: Visibility, prefix: str, *, deleted: bool = False) -> list[Memory]:
        begun = (memory for memory in self._visible(visible) if memory.id.startswith(prefix))
        memories = [memory for memory in begun if deleted or memory.delete_time is None]
        return [memory for memory in memories if memory.id == prefix] or memories[:2]

    async def entries(self, owner: Owner, ids: Collection[str], vectors: Vectors = Vectors.NONE) -> list[Entry]:
        entries = filter(None, (self._state.entries.get(memory_id) for memory_id in dict.fromkeys(ids)))
        own = [entry for entry in entries if entry.memory.owner == owner]
        if vectors is Vectors.NONE:
            return [Entry(entry.memory, entry.terms) for entry in own]
        return own if vectors is Vectors.ALL else [replace(entry, tokens=b"") for entry in own]

    async def alike(self, owner: Owner, now: datetime, *, digest: bytes = b"", key: str = "") -> list[Memory]:
        memories = (entry.memory for entry in self._state.entries.values() if entry.memory.owner == owner)
        live = (memory for memory in memories if memory.state_at(now) is State.LIVE)
        matching = [memory for memory in live if (memory.key == key if key else text_digest(memory.content) == digest)]
        return sorted(matching, key=lambda memory: memory.create_time)[: limits.MOST_ALIKE]

    async def nearest(
        self,
        visible: Visibility,
        vector: NDArray[np.float32],
        fingerprint: str,
        wanted: Filter,
        *,
        now: datetime,
        limit: int,
    ) -> list[tuple[Memory, float]]:
        found = []
        for memory in self._visible(visible):
            entry = self._state.entries[memory.id]
            if entry.vector is not None and entry.fingerprint == fingerprint and wanted.admits(memory, now):
                found.append((memory, float(entry.vector @ vector)))
        found.sort(key=lambda hit: (-hit[1], hit[0].create_time))
        return found[:limit]

    async def stats(self, visible: Visibility, now: datetime) -> Stats:
        memories = self._visible(visible)
        counts = Counter((m.kind, m.state_at(now), m.scope.chat_id is not None) for m in memories)
        ordered = sorted(counts.items(), key=lambda item: (item[0][0].value, item[0][1].value, item[0][2]))
        return Stats(
            tuple(MemoryCount(kind, state, shared, count) for (kind, state, shared), count in ordered),
            max((memory.create_time for memory in memories), default=None),
            sum(len(memory.content.encode()) for memory in memories),
        )

    async def tombstones(self, owner: Owner, digests: Sequence[bytes]) -> frozenset[bytes]:
        return frozenset(digest for digest in digests if Tombstone(owner, digest) in self._state.tombstones)

    async def scan(
        self,
        selector: MemorySelector,
        *,
        limit: int,
        after: str = "",
        order: Order = Order.OWNERS,
    ) -> list[Memory]:
        memories = self._selected(selector)
        if order is Order.IN_TURNS:
            memories = in_turns_of_owners(memories)
            return sorted(memories[: limit or None], key=_by_time)
        if order is Order.HAPPENED:
            memories.sort(key=lambda memory: (memory.event_time, memory.id))
        elif order is Order.OWNERS:
            memories.sort(key=_by_owner)
            if after:
                memories = [memory for memory in memories if _by_owner(memory) > read_owner_place(after)]
        else:
            is_newest = order is Order.NEWEST
            memories.sort(key=_by_time, reverse=is_newest)
            if after:
                last = read_cursor(after)
                place = (last.create_time, last.id)
                memories = [
                    memory
                    for memory in memories
                    if (_by_time(memory) < place if is_newest else _by_time(memory) > place)
                ]
        return memories[:limit] if limit else memories

    async def count(self, selector: MemorySelector) -> int:
        return len(self._selected(selector))

    def _selected(self, selector: MemorySelector) -> list[Memory]:
        entries = self._state.entries.values()
        return [entry.memory for entry in entries if selector.admits(entry.memory, entry.fingerprint)]

    async def collectable(self, graces: Graces, *, limit: int) -> tuple[GcReport, list[Memory]]:
        over = [entry.memory for entry in self._state.entries.values() if graces.are_over(entry.memory)]
        deleted = [memory for memory in over if memory.delete_time is not None]
        superseded = [m for m in over if m.delete_time is None and m.supersede_time is not None]
        expired = [m for m in over if m.delete_time is None and m.supersede_time is None]
        requests = sum(request.create_time < graces.requests_before for request in self._state.requests.values())
        report = GcReport(len(expired), len(superseded), len(deleted), requests)
        return report, (deleted + superseded + expired)[:limit]

    async def note_recalls(self, recalls: Mapping[Owner, Mapping[str, Recalled]]) -> None:
        flat = [(owner, *one) for owner, noted in recalls.items() for one in noted.items()]
        for owner, memory_id, (time, count, trusted) in flat:
            entry = self._state.entries.get(memory_id)
            if entry is not None and entry.memory.owner == owner:
                memory = replace(
                    entry.memory,
                    recall_time=time,
                    recall_count=entry.memory.recall_count + count,
                    trusted_recall_time=trusted or entry.memory.trusted_recall_time,
                )
                self._state.entries[memory_id] = replace(entry, memory=memory)


def _past(memories: list[Memory], after: Cursor | None) -> list[Memory]:
    if after is None:
        return memories
    return [memory for memory in memories if (memory.create_time, memory.id) < (after.create_time, after.id)]


def _by_owner(memory: Memory) -> tuple[str, str, str, str]:
    scope = memory.scope
    return memory.agent_id, scope.user_id or "", scope.chat_id or "", memory.id


def _by_time(memory: Memory) -> tuple[datetime, str]:
    return memory.create_time, memory.id


def in_turns_of_owners(memories: Iterable[Memory]) -> list[Memory]:
    """Return memories in the order IN_TURNS."""
    counts: dict[Owner, int] = {}
    placed = []
    for one in sorted(memories, key=lambda memory: memory.create_time):
        counts[one.owner] = counts.get(one.owner, 0) + 1
        placed.append((one.trust.is_sandbox, counts[one.owner], one))
    return [memory for *_, memory in sorted(placed, key=lambda three: three[:2])]
