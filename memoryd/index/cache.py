"""
Which scopes are in memory: loaded once for all who wait, kept true by every commit, evicted by bytes.

A commit is pushed (`apply`). One that takes long is brought in by turns, in which others are served; who asks for the
index meanwhile waits for it, so that no one decides on half a commit. What an index has missed, as it was being loaded
or others made the commit, is fetched when it is asked for next. All of this happens on the event loop's thread, but
for the reading of snapshots.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from memoryd.index.feed import Feed
from memoryd.index.filling import Filling
from memoryd.index.scope import ScopeIndex
from memoryd.model.batch import VectorBatch, VectorsWanted
from memoryd.model.change import ChangeSet
from memoryd.model.commits import Applied, Snapshot
from memoryd.model.scope import Owner
from memoryd.turns import Turn, started

__all__ = ["ScopeIndexes"]

ON_LOOP = 2000  # documents and windows that are searched on the loop itself (1–2.5 ms); above, in the search pool …
ON_LOOP_TOKEN_BYTES = 8 * 1024 * 1024  # … as with more vectors of tokens
MOST_ERASED = 256  # purges of one commit that are erased in place (36 ms of 100,000); with more an index is rebuilt
MOST_LOADS = 4  # of one index in one call: where others purge all the time, the store is asked instead
AT_ONCE = 4096  # characters of terms, or as much work, that are brought in at once: about 1 ms
ROW_COST = 100  # of a memory, besides its terms, as characters
LARGE = 50_000  # memories of a scope: from here on it is searched before its vectors are there
BYTES_A_DOCUMENT = 250  # besides its texts and vectors, measured
T = TypeVar("T")
Built = tuple[ScopeIndex, Iterator[VectorBatch] | None]
"""An index, and the vectors that are still to come."""


@dataclass(slots=True)
class _Pending:
    """Commits that an index has not followed yet, and who brings it up to them."""

    commits: deque[Applied]
    task: asyncio.Task[None] = field(init=False)


class ScopeIndexes:
    """The indexes of the owners in use."""

    def __init__(
        self, feed: Feed, *, budget_bytes: int, dimensions: int, fingerprint: str, on_fault: Callable[[str], None]
    ) -> None:
        """Hold at most budget_bytes of indexes; an owner that alone would take more gets none."""
        self._feed = feed
        self._budget = budget_bytes
        self._dimensions = dimensions
        self._fingerprint = fingerprint
        self._on_fault = on_fault
        self._ready: OrderedDict[Owner, ScopeIndex] = OrderedDict()
        self._loading: dict[Owner, asyncio.Task[ScopeIndex | None]] = {}
        self._missed: dict[Owner, list[Applied]] = {}  # while an index is loaded
        self._pending: dict[Owner, _Pending] = {}
        self._when_fetched: list[Callable[[Applied], None]] = []
        self._when_lost: list[Callable[[], None]] = []
        self._filling: dict[Owner, Filling] = {}
        self._loader = started(ThreadPoolExecutor(2, "index-load"), 2)  # so that others need not wait for a large scope
        self._searchers = started(ThreadPoolExecutor(2, "index-search"), 2)
        self._oversized: dict[Owner, int] = {}  # by owner: its last purge by then
        self._sizes: dict[Owner, int] = {}
        self._total = 0  # of the sizes
        self._closed = False
        self.faults = self.loads = self.evictions = 0

    @property
    def scopes(self) -> int:
        """How many owners are in memory."""
        return len(self._ready)

    @property
    def nbytes(self) -> int:
        """Bytes that they take, estimated; of each as of its last use or change."""
        return self._total

    def close(self) -> None:
        """Stop the threads, and what is being brought in."""
        for pending in self._pending.values():
            pending.task.cancel()
        for filling in self._filling.values():
            filling.task.cancel()
        self._closed = True
        self._loader.shutdown(cancel_futures=True)
        self._searchers.shutdown(cancel_futures=True)

    def on_fetched(self, callback: Callable[[Applied], None]) -> None:
        """Call back with what was fetched rather than pushed, after the index has followed it."""
        self._when_fetched.append(callback)

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call back when commits were missed that no one can tell any more: others may have purged something."""
        self._when_lost.append(callback)

    async def get(self, owner: Owner, *, partial: bool = False) -> ScopeIndex | None:
        """
        Return the owner's index as of the last commit, loading it if need be.

        With `partial` one will do to which the vectors of a large scope are still coming. None: it would exceed the
        budget, or others purge faster than it can be loaded. Ask the store then.
        """
        loads = 0
        while True:
            index = self._ready.get(owner)
            if index is None:
                if loads >= MOST_LOADS or await self._is_oversized(owner):
                    return None
                loads += 1
                index = await self._loaded(owner)
                if index is None:
                    return None
            if not (partial or index.is_whole or await self._is_filled(owner, index)):
                continue
            if owner in self._pending:
                await asyncio.shield(self._pending[owner].task)
                continue
            seen, head = index.commit_seq, await self._feed.head(owner)
            if head.is_exact and seen > head.commit_seq:  # the store was brought back to an earlier state
                self._drop(owner)
            elif index.commit_seq >= head.commit_seq:
                if owner in self._ready:
                    self._ready.move_to_end(owner)
                    self._measure(owner, index)
                return index
            await self._fetch(owner, index)

    async def forget_purged(self) -> int:
        """
        Drop the indexes of owners where others have purged something, and return how many.

        Who asked to be told of what is lost is told in any case: what was purged may be kept elsewhere too.
        """
        dropped = 0
        for owner, index in list(self._ready.items()):
            seen, head = index.commit_seq, await self._feed.head(owner)
            is_behind = head.purge_seq > index.commit_seq
            if (is_behind or (head.is_exact and seen > head.commit_seq)) and self._ready.get(owner) is index:
                self._drop(owner)
                dropped += 1
        for callback in self._when_lost:
            callback()
        return dropped

    async def _is_filled(self, owner: Owner, index: ScopeIndex) -> bool:
        """Wait for the vectors of an index, also if it is evicted meanwhile; return whether it has got them."""
        filling = self._filling.get(owner)
        if filling is not None and filling.index is index:
            await filling.end()
        elif self._ready.get(owner) is index:  # the daemon stops, and no one brings it any
            self._drop(owner)
        return index.is_whole

    async def _is_oversized(self, owner: Owner) -> bool:
        """Whether an owner was too large for memory, and nothing was purged since."""
        seen = self._oversized.get(owner)
        if seen is None:
            return False
        if (await self._feed.head(owner)).purge_seq == seen:
            return True
        self._oversized.pop(owner, None)
        return False

    async def _loaded(self, owner: Owner) -> ScopeIndex | None:
        """Return an index that was loaded now, once for all who wait."""
        task = self._loading.get(owner)
        if task is None:
            self._missed[owner] = []
            task = self._loading[owner] = asyncio.create_task(self._load(owner))
        return await asyncio.shield(task)

    async def _load(self, owner: Owner) -> ScopeIndex | None:
        try:
            loop = asyncio.get_running_loop()
            seen = (await self._feed.head(owner)).purge_seq
            self.loads += 1
            built = await loop.run_in_executor(self._loader, self._read, owner)
            if built is None:
                self._oversized[owner] = seen
                return None
            index, pieces = built
            self._ready[owner] = index
            self._measure(owner, index)
            for applied in self._missed[owner]:
                self._take(owner, applied)
            self._evict(keep=owner)
            if pieces is not None and self._ready.get(owner) is index and not self._closed:
                self._begin_filling(owner, index, pieces, seen)
            return index
        finally:
            del self._missed[owner], self._loading[owner]

    def _read(self, owner: Owner) -> Built | None:
        return self._feed.snapshot(owner, self._build)

    def _begin_filling(self, owner: Owner, index: ScopeIndex, pieces: Iterator[VectorBatch], seen: int) -> None:
        filling = Filling(index, pieces, self._loader, lambda: self._ready.get(owner) is index)
        self._filling[owner] = filling
        filling.task.add_done_callback(lambda _: self._filled(owner, filling, seen))

    def _filled(self, owner: Owner, filling: Filling, seen: int) -> None:
        """
        Count what an index has got; one without its vectors is loaded again when it is asked for next.

        One that is too large with them, as of windows, is not loaded again until something of it is purged.
        """
        if self._filling.get(owner) is filling:
            del self._filling[owner]
        if self._ready.get(owner) is not filling.index:
            return
        if filling.error is not None:
            self.faults += 1
            self._drop(owner)
            self._on_fault(type(filling.error).__name__)
        else:
            self._measure(owner, filling.index)
            if filling.index.nbytes > self._budget:
                self._oversized[owner] = seen
                self._drop(owner)
            self._evict(keep=owner)

    async def _fetch(self, owner: Owner, index: ScopeIndex) -> None:
        """Bring an index up to the commits that it has missed, or drop it where not all of them are known."""
        missed = await self._feed.changes(owner, index.commit_seq)
        if self._ready.get(owner) is not index:
            return
        if missed is None:
            self._drop(owner)
            for callback in self._when_lost:
                callback()
            return
        self._take(owner, missed)
        for follow in self._when_fetched:
            follow(missed)

    def _build(self, snapshot: Snapshot) -> Built | None:
        large = snapshot.count >= LARGE and bool(self._dimensions)
        bare = snapshot.count * ((2 if large else 5) * self._dimensions + BYTES_A_DOCUMENT) + snapshot.text_bytes
        if bare > self._budget:
            return None
        with_tokens = bare + snapshot.token_bytes <= self._budget // 2  # no scope drives all others out with them
        later = snapshot.read_vectors if large else None
        wanted = VectorsWanted(self._dimensions, self._fingerprint, tokens=with_tokens)
        index = ScopeIndex(
            snapshot.read(wanted if later is None else wanted._replace(texts=False, tokens=False)),
            dimensions=self._dimensions,
            fingerprint=self._fingerprint,
            entities=snapshot.entities,
            tombstones=snapshot.tombstones,
            with_tokens=with_tokens,
            is_large=large,
        )
        index.commit_seq = snapshot.commit_seq
        if index.nbytes > self._budget:
            return None
        return index, None if later is None else later(wanted)

    def _measure(self, owner: Owner, index: ScopeIndex) -> None:
        """Bring the sum of the sizes up to what an index takes now."""
        size = index.nbytes
        self._total += size - self._sizes.get(owner, 0)
        self._sizes[owner] = size

    def _drop(self, owner: Owner) -> None:
        if self._ready.pop(owner, None) is not None:
            self._total -= self._sizes.pop(owner)
        self._pending.pop(owner, None)  # its task sees that the index is gone
        self._filling.pop(owner, None)  # so does this one, unless someone waits for it

    def _evict(self, keep: Owner) -> None:
        """Drop those least used until the others fit."""
        while self._total > self._budget:
            oldest = next((owner for owner in self._ready if owner != keep), None)
            if oldest is None:
                return
            self.evictions += 1
            self._drop(oldest)

    def apply(self, applied: Applied) -> None:
        """Bring the index of an owner up to a commit, at once or by turns; what is purged is gone at once."""
        owner = applied.change.decided_of
        if owner is None:
            return
        if owner in self._missed:
            self._missed[owner].append(applied)
        self._take(owner, applied)

    def _take(self, owner: Owner, applied: Applied) -> None:
        index = self._ready.get(owner)
        if index is None:
            return
        pending = self._pending.get(owner)
        erases = applied.change.erases
        if pending is None and (erases or _cost(applied.change) <= AT_ONCE):
            for _ in self._follow(owner, index, applied):
                pass
        elif pending is None:
            pending = self._pending[owner] = _Pending(deque([applied]))
            pending.task = asyncio.get_running_loop().create_task(self._by_turns(owner, index, pending))
        elif erases:
            self._drop(owner)
        else:
            pending.commits.append(applied)

    async def _by_turns(self, owner: Owner, index: ScopeIndex, pending: _Pending) -> None:
        """Bring an index up to what is pending, unless it is dropped meanwhile."""
        try:
            while pending.commits and self._ready.get(owner) is index:
                turn = Turn()
                for _ in self._follow(owner, index, pending.commits[0]):
                    if turn.is_over:
                        await turn.next()
                        if self._ready.get(owner) is not index:
                            return
                pending.commits.popleft()
        finally:
            if self._pending.get(owner) is pending:
                del self._pending[owner]

    def _follow(self, owner: Owner, index: ScopeIndex, applied: Applied) -> Iterator[None]:
        """Bring an index up to the next commit, step by step; one that fails is dropped and rebuilt at its next use."""
        if applied.commit_seq <= index.commit_seq:
            return
        change = applied.change
        if applied.after > index.commit_seq:  # it has missed one before, which is fetched with this one …
            if change.erases:
                self._drop(owner)  # … but what is purged is gone at once
            return
        try:
            if change.rebuild or change.purge_owner or len(change.purges) > MOST_ERASED:
                self._drop(owner)
                return
            yield from self._bring(index, applied)
            if index.nbytes > self._budget:
                index.reader.forget()  # what can be read again goes before what has to be loaded again
            self._measure(owner, index)
            if index.wasteful or self._sizes[owner] > self._budget:
                self._drop(owner)
        except Exception as error:  # noqa: BLE001  what is committed is acknowledged, whatever happens here
            self.faults += 1
            self._drop(owner)
            self._on_fault(type(error).__name__)
        self._evict(keep=owner)

    @staticmethod
    def _bring(index: ScopeIndex, applied: Applied) -> Iterator[None]:
        change = applied.change
        for entry in change.inserts:
            index.insert(entry)
            yield
        for entry in change.updates:
            index.update(entry)
            yield
        for embedding in change.embeddings:
            index.embed(embedding)
            yield
        index.erase({memory.id for memory in change.purges})
        for entity in change.entities:
            index.people.put(entity)
        index.people.forget(entity.id for entity in change.forget_entities)
        index.tombstones |= {stone.digest for stone in change.tombstones}
        index.tombstones -= {stone.digest for stone in change.lift}
        index.commit_seq = applied.commit_seq

    def holds(self, memory_id: str) -> bool:
        """Whether an index that is in memory holds a memory."""
        return any(index.holds(memory_id) for index in self._ready.values())

    def ready(self, owner: Owner) -> ScopeIndex | None:
        """Return the owner's index if it is in memory."""
        return self._ready.get(owner)

    @staticmethod
    def are_large(indexes: Sequence[ScopeIndex]) -> bool:
        """Whether a search of these indexes takes so long that others would feel it on the event loop."""
        tokens = sum(index.tokens.nbytes for index in indexes)
        looked_at = sum(index.count + len(index.window_vectors) + len(index.windows) for index in indexes)
        return looked_at > ON_LOOP or tokens > ON_LOOP_TOKEN_BYTES

    async def run(self, indexes: Sequence[ScopeIndex], search: Callable[[], T]) -> T:
        """Run a search of these indexes: small ones on the loop, large ones in the search pool."""
        if not self.are_large(indexes):
            return search()
        return await asyncio.get_running_loop().run_in_executor(self._searchers, search)


def _cost(change: ChangeSet) -> int:
    """Return how much work it is to bring a change in, in characters of terms."""
    entries = (*change.inserts, *change.updates)
    return sum(ROW_COST + len(entry.terms) for entry in entries) + len(change.embeddings) * ROW_COST
