"""What all calls of a daemon share while it runs: locks, what was noticed of late, how much waits."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from cachetools import LRUCache

from memoryd.domain.clock import ClockWatch
from memoryd.domain.faults import Faults
from memoryd.index.scope import ScopeIndex
from memoryd.model.commits import Recalled
from memoryd.model.conversation import Session, Thread
from memoryd.model.memory import Memory
from memoryd.model.scope import Owner
from memoryd.turns import started

__all__ = ["EmbeddingLag", "LastThreads", "Locks", "Recalls", "SeenRequests", "SharedState", "thread_lock"]

SHARES_OF_A_LINE = 10  # an owner with less than a tenth of the messages that may wait is never slowed
LONGEST_PAUSE_S = 5.0  # of an append while too many messages wait to be embedded
PREPARING = 2  # threads that look through long messages
MAX_NOTED_RECALLS = 20_000  # memories whose recall waits to be written down; beyond it recalls go uncounted


class Locks:
    """One lock a key, first come first served; a lock that no one holds or awaits is forgotten."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Any, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, keys: Iterable[Any]) -> AsyncIterator[None]:
        """Hold the locks of all keys, taken in one order so that no one waits in a circle."""
        async with AsyncExitStack() as stack:
            for key in sorted(set(keys), key=repr):
                lock = self._locks.get(key)
                if lock is None:
                    lock = self._locks[key] = asyncio.Lock()
                await stack.enter_async_context(lock)
            yield


def thread_lock(owner: Owner, thread_id: str) -> tuple[str, Owner, str]:
    """Return what is held while a change of a thread is decided."""
    return ("thread", owner, thread_id)


class Recalls:
    """Which memories were recalled since the counts were last written down."""

    def __init__(self) -> None:
        self._noted: dict[Owner, dict[str, Recalled]] = {}
        self._count = 0

    def note(self, memories: Iterable[Memory], now: datetime, *, trusted: bool) -> None:
        """Count one recall each; only trusted ones keep a memory from fading."""
        for memory in memories:
            noted = self._noted.setdefault(memory.owner, {})
            _, count, before = noted.get(memory.id, (now, 0, None))
            if count or self._count < MAX_NOTED_RECALLS:
                self._count += not count
                noted[memory.id] = (now, count + 1, now if trusted else before)

    def forget(self, memories: Iterable[Memory]) -> None:
        """Drop what was noted of memories that are purged."""
        for memory in memories:
            self._count -= self._noted.get(memory.owner, {}).pop(memory.id, None) is not None

    def forget_owner(self, owner: Owner) -> None:
        """Drop what was noted of all that an owner had."""
        self._count -= len(self._noted.pop(owner, {}))

    def take(self) -> dict[Owner, dict[str, Recalled]]:
        """Return what was noted, by owner and memory id, and start over."""
        noted, self._noted, self._count = self._noted, {}, 0
        return noted


class EmbeddingLag:
    """How many messages wait to be embedded, and how fast that goes: what appends are slowed by."""

    def __init__(self) -> None:
        """Begin with none."""
        self.waiting = 0
        self._of: Counter[Owner] = Counter()
        self.rate = 100.0
        """Messages a second, as measured of late."""
        self.is_held = False
        """Whether nothing is embedded now: there is no model, or a fault. What waits is in the store alone."""
        self.appended = asyncio.Event()
        """Set when there is something to embed."""

    def add(self, owner: Owner, count: int) -> None:
        """Note messages that were appended."""
        self.waiting += count
        self._of[owner] += count
        self.appended.set()

    def done(self, owners: Iterable[Owner], waiting: int) -> None:
        """Note messages that have their vectors, by their owners, and how many wait now."""
        self.waiting = waiting
        if not waiting:
            self._of.clear()
            return
        self._of.subtract(owners)
        self._of = +self._of

    def pause_s(self, owner: Owner, count: int, slow_after: int) -> float:
        """
        Return how long an append of so many waits: as long as embedding as many takes, where too many wait.

        Who has few among those that wait is not slowed: it is others who filled the line. Beyond twice as many,
        everybody is.
        """
        is_long = self.waiting + count > 2 * slow_after
        if self._of[owner] + count <= slow_after // SHARES_OF_A_LINE and not is_long:
            return 0.0
        if self.is_held or self.waiting + count <= slow_after:
            return 0.0
        return min(LONGEST_PAUSE_S, count / self.rate)


class LastThreads:
    """
    Threads as they were after the last append, with the open session, so that the next one need not read them.

    Whoever decides takes one out, and puts it back once that is committed; a decision on one that others have changed
    meanwhile is not written (its revision is another), and made again on what the store says.
    """

    def __init__(self, most_bytes: int = 16 << 20) -> None:
        """Hold at most so many bytes of them."""
        self._held: LRUCache[tuple[Owner, str], tuple[Thread, Session | None]] = LRUCache(most_bytes, _thread_bytes)

    def take(self, owner: Owner, thread_id: str) -> tuple[Thread, Session | None] | None:
        """Return a thread with its open session, and forget it; None if it is not known."""
        return self._held.pop((owner, thread_id), None)

    def forget(self) -> None:
        """Forget all, as something is purged: a thread has a summary and a working memory."""
        self._held.clear()

    def put(self, thread: Thread, session: Session | None) -> None:
        """Remember what is committed."""
        with contextlib.suppress(ValueError):  # larger than all that may be held
            self._held[thread.owner, thread.id] = (thread, session)


def _thread_bytes(held: tuple[Thread, Session | None]) -> int:
    thread, _ = held
    return 2048 + 2 * len(thread.summary) + 2 * len(thread.working_memory)


class SeenRequests:
    """Which request ids came of late: what is repeated is looked up before it is carried out."""

    def __init__(self, most: int = 16_384) -> None:
        """Know at most so many."""
        self._seen: LRUCache[int, bool] = LRUCache(most)

    def note(self, name: object) -> bool:
        """Return whether a request was noted before, and note it."""
        key = hash(name)
        if self._seen.get(key):
            return True
        self._seen[key] = True
        return False


@dataclass(frozen=True, slots=True)
class SharedState:
    """All of it."""

    locks: Locks = field(default_factory=Locks)
    """By owner, and by grant where its quota counts several owners together."""
    request_locks: Locks = field(default_factory=Locks)
    recalls: Recalls = field(default_factory=Recalls)
    preparing: ThreadPoolExecutor = field(
        default_factory=lambda: started(ThreadPoolExecutor(PREPARING, "prepare"), PREPARING)
    )
    """Where long messages are looked through: threads of their own, so that they keep no one else's work waiting."""
    lag: EmbeddingLag = field(default_factory=EmbeddingLag)
    """How many messages wait for their vectors."""
    last_threads: LastThreads = field(default_factory=LastThreads)
    seen_requests: SeenRequests = field(default_factory=SeenRequests)
    victims: WeakKeyDictionary[ScopeIndex, list[str]] = field(default_factory=WeakKeyDictionary)
    """Of an index that is full, what goes next."""
    clock: ClockWatch | None = None
    """What holds back all that goes by age while the clock is in doubt."""
    faults: Faults = field(default_factory=Faults)
    """What went wrong in reading statements."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the daemon ends: who waits for something to happen ends too."""
