"""
Which scopes are in memory: loaded once for all who wait, kept true by every commit, evicted by bytes.

A load reads a snapshot while commits go on: it registers first, so that what is committed meanwhile is kept for it and
applied where the snapshot does not have it yet. All of this happens on the event loop's thread, but for the reading.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from memoryd.index.scope import BYTES_A_DOCUMENT, ScopeIndex
from memoryd.model.change import Applied, Recalled, Snapshot
from memoryd.model.scope import Owner

__all__ = ["ScopeIndexes"]

CHECK_EVERY = 1024  # memories that come between two looks at the budget
ON_LOOP = 20_000  # documents that are searched on the loop itself (≤ 1 ms); above, in the search pool


MOST_ERASED = 256  # purges of one commit that are erased in place (36 ms of 100,000); with more an index is rebuilt
T = TypeVar("T")
Read = Callable[[Owner, Callable[[Snapshot], ScopeIndex | None]], ScopeIndex | None]
"""Calls back with a snapshot, inside one read transaction, in the calling thread; returns what that returned."""


class ScopeIndexes:
    """The indexes of the owners in use."""

    def __init__(
        self, read: Read, *, budget_bytes: int, dimensions: int, fingerprint: str, on_fault: Callable[[str], None]
    ) -> None:
        """Hold at most budget_bytes of indexes; an owner that alone would take more gets none."""
        self._read = read
        self._budget = budget_bytes
        self._dimensions = dimensions
        self._fingerprint = fingerprint
        self._on_fault = on_fault
        self._ready: OrderedDict[Owner, ScopeIndex] = OrderedDict()
        self._loading: dict[Owner, asyncio.Task[ScopeIndex | None]] = {}
        self._missed: dict[Owner, list[Applied]] = {}
        self._loader = ThreadPoolExecutor(1, "index-load")
        self._searchers = ThreadPoolExecutor(2, "index-search")
        self._oversized: set[Owner] = set()  # not looked at again until something is purged
        self._unchecked = 0
        self.faults = 0

    @property
    def scopes(self) -> int:
        """How many owners are in memory."""
        return len(self._ready)

    @property
    def nbytes(self) -> int:
        """Bytes that they take, estimated."""
        return sum(index.nbytes for index in self._ready.values())

    def close(self) -> None:
        """Stop the threads."""
        self._loader.shutdown(cancel_futures=True)
        self._searchers.shutdown(cancel_futures=True)

    async def get(self, owner: Owner) -> ScopeIndex | None:
        """Return the owner's index, loading it if need be; None if it is larger than the budget."""
        index = self._ready.get(owner)
        if index is not None:
            self._ready.move_to_end(owner)
            return index
        if owner in self._oversized:
            return None
        task = self._loading.get(owner)
        if task is None:
            self._missed[owner] = []
            task = self._loading[owner] = asyncio.create_task(self._load(owner))
        return await asyncio.shield(task)

    async def _load(self, owner: Owner) -> ScopeIndex | None:
        try:
            loop = asyncio.get_running_loop()
            index = await loop.run_in_executor(self._loader, self._read, owner, self._build)
            if index is None:
                self._oversized.add(owner)
                return None
            for applied in self._missed[owner]:
                self._bring(index, owner, applied)
            self._ready[owner] = index
            self._evict(keep=owner)
            return index
        finally:
            del self._missed[owner], self._loading[owner]

    def _build(self, snapshot: Snapshot) -> ScopeIndex | None:
        if snapshot.count * (5 * self._dimensions + BYTES_A_DOCUMENT) + 2 * snapshot.text_bytes > self._budget:
            return None
        index = ScopeIndex(
            snapshot.chunks,
            dimensions=self._dimensions,
            fingerprint=self._fingerprint,
            entities=snapshot.entities,
            tombstones=snapshot.tombstones,
        )
        index.commit_seq = snapshot.commit_seq
        return index if index.nbytes <= self._budget else None

    def _evict(self, keep: Owner) -> None:
        sizes = {owner: index.nbytes for owner, index in self._ready.items()}
        total = sum(sizes.values())
        for owner, size in sizes.items():
            if total <= self._budget:
                return
            if owner != keep:
                del self._ready[owner]
                total -= size

    def apply(self, applied: Applied) -> None:
        """Bring every index up to a commit; an index that fails is dropped and rebuilt at its next use."""
        self._oversized.difference_update(memory.owner for memory in applied.change.purges)
        for owner in applied.change.owners:
            if owner in self._missed:
                self._missed[owner].append(applied)
            index = self._ready.get(owner)
            if index is None:
                continue
            try:
                if len(applied.change.purges) > MOST_ERASED:
                    del self._ready[owner]
                    continue
                self._bring(index, owner, applied)
                if index.nbytes > self._budget:
                    index.reader.forget()  # what can be read again goes before what has to be loaded again
                if index.wasteful or index.nbytes > self._budget:
                    del self._ready[owner]
            except Exception as error:  # noqa: BLE001  what is committed is acknowledged, whatever happens here
                self.faults += 1
                self._ready.pop(owner, None)
                self._on_fault(type(error).__name__)
        self._unchecked += len(applied.change.inserts)
        if self._unchecked >= CHECK_EVERY and self._ready:
            self._unchecked = 0
            self._evict(keep=next(reversed(self._ready)))

    @staticmethod
    def _bring(index: ScopeIndex, owner: Owner, applied: Applied) -> None:
        if applied.commit_seq <= index.commit_seq:
            return
        change = applied.change
        for entry in change.inserts:
            if entry.memory.owner == owner:
                index.insert(entry)
        for entry in change.updates:
            if entry.memory.owner == owner:
                index.update(entry)
        index.erase({memory.id for memory in change.purges if memory.owner == owner})
        for entity in change.entities:
            if entity.owner == owner:
                index.people.put(entity)
        index.people.forget(entity.id for entity in change.forget_entities)
        index.tombstones |= {stone.digest for stone in change.tombstones if stone.owner == owner}
        index.tombstones -= {stone.digest for stone in change.lift if stone.owner == owner}

    def holds(self, memory_id: str) -> bool:
        """Whether an index that is in memory holds a memory."""
        return any(index.holds(memory_id) for index in self._ready.values())

    def ready(self, owner: Owner) -> ScopeIndex | None:
        """Return the owner's index if it is in memory."""
        return self._ready.get(owner)

    def note_recalls(self, recalls: Mapping[Owner, Mapping[str, Recalled]]) -> None:
        """Bring the counts of recalls in the indexes up to what was written down."""
        for owner, noted in recalls.items():
            index = self._ready.get(owner)
            if index is not None:
                index.note_recalls(noted)

    async def run(self, indexes: Sequence[ScopeIndex], search: Callable[[], T]) -> T:
        """Run a search of these indexes: small ones on the loop, large ones in the search pool."""
        if sum(index.count for index in indexes) <= ON_LOOP:
            return search()
        return await asyncio.get_running_loop().run_in_executor(self._searchers, search)
