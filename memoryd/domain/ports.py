"""What the use cases are handed: the store, the index, the embedder, and the little state they share."""

from __future__ import annotations

import asyncio
import contextlib
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from cachetools import LRUCache

from memoryd.domain.clock import ClockWatch
from memoryd.domain.faults import Faults
from memoryd.domain.policy import Policy
from memoryd.domain.tokens import Measure, no_tokenizer
from memoryd.embedding.base import AnswerReader, Embedder, PairReader, Reranker
from memoryd.entities.finders import Finder, RegexFinder
from memoryd.index.cache import ScopeIndexes
from memoryd.index.scope import ScopeIndex
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.commits import Applied, Recalled
from memoryd.model.conversation import Message, Session, Thread
from memoryd.model.grant import NO_LIMITS, Quota
from memoryd.model.memory import Memory
from memoryd.model.message_draft import Masker
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.store.base import Store
from memoryd.store.conversations import MessageSelector
from memoryd.store.memories import MemorySelector, Order, Vectors

__all__ = [
    "EmbeddingLag",
    "GrantCheck",
    "LastThreads",
    "Locks",
    "NoGrants",
    "Ports",
    "Recalls",
    "SeenRequests",
    "thread_lock",
]

SHARES_OF_A_LINE = 10  # an owner with less than a tenth of the messages that may wait is never slowed
LONGEST_PAUSE_S = 5.0  # of an append while too many messages wait to be embedded
PREPARING = 2  # threads that look through long messages
MAX_NOTED_RECALLS = 20_000  # memories whose recall waits to be written down; beyond it recalls go uncounted


class Locks:
    """One lock a key, first come first served; a lock that nobody holds or awaits is forgotten."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Any, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, keys: Iterable[Any]) -> AsyncIterator[None]:
        """Hold the locks of all keys, taken in one order so that nobody waits in a circle."""
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


class GrantCheck(Protocol):
    """Knows which grants count."""

    def check(self, grant_id: str, now: datetime) -> None:
        """Raise Unauthenticated if the grant of this id counts no longer; "" is no grant, and always counts."""
        ...

    def quota(self, grant_id: str) -> Quota:
        """Return what a grant may store, also one that has ended; without limits where there is none."""
        ...


class NothingMasked:
    """Where nobody looks for credentials."""

    def mask(self, text: str) -> str:
        """Return it as it is."""
        return text

    mask_json = mask


class NoGrants:
    """Where everybody is the host."""

    def check(self, grant_id: str, now: datetime) -> None:
        """Let everything pass."""

    def quota(self, grant_id: str) -> Quota:  # noqa: ARG002  it knows none
        """Return no limits."""
        return NO_LIMITS


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that a use case may reach. It is handed in whole; nothing is put into it later."""

    store: Store
    indexes: ScopeIndexes
    episodes: ScopeIndexes
    """Those of messages."""
    embedder: Embedder
    new_id: Callable[[], str]
    secret: bytes
    policy: Policy = field(default_factory=Policy)
    locks: Locks = field(default_factory=Locks)
    """By owner, and by grant where its quota counts several owners together."""
    request_locks: Locks = field(default_factory=Locks)
    recalls: Recalls = field(default_factory=Recalls)
    reranker: Reranker | None = None
    """What reads the best hits with the question; None: their order stands."""
    answer_reader: AnswerReader | None = None
    """What reads a question and a memory together, for contexts; None: relevance alone tells what answers."""
    reads_searches: bool = False
    """Whether it reads for searches too."""
    change_reader: PairReader | None = None
    """What reads two statements together, in the background; None: the rules alone notice a change."""
    finders: Sequence[Finder] = (RegexFinder(),)
    """What finds names in a statement before its answer."""
    accurate_finders: Sequence[Finder] = ()
    """What finds them in the background."""
    secrets: Callable[[Iterable[str]], bool] = lambda _texts: False
    """Whether one of some texts holds a credential."""
    is_token: Callable[[str], bool] = lambda _name: False
    """Whether a name or an id is a credential."""
    masker: Callable[[int, Callable[[], bool]], Masker] = lambda _characters, _is_gone: NothingMasked()
    """What takes credentials out of the texts of a call, by how many characters they have and whether it is over."""
    tokenizer: Callable[[str], Measure] = field(default=no_tokenizer)
    """What counts tokens, by the name of a tokenizer that is installed; it reads a file."""
    preparing: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(PREPARING, "prepare"))
    """Where long messages are looked through: threads of their own, so that they keep nobody else's work waiting."""
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
    grants: GrantCheck = field(default_factory=NoGrants)
    """Asked just before a change is committed."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the daemon ends: who waits for something to happen ends too."""

    def close(self) -> None:
        """End the threads that are its own; what waits for them is dropped."""
        self.preparing.shutdown(wait=False, cancel_futures=True)
        for reader in (self.reranker, self.answer_reader, self.change_reader):
            if reader is not None:
                reader.close()

    def follow(self, applied: Applied) -> None:
        """Drop the ids of what a commit has purged, and bring the queue of victims up to it."""
        change = applied.change
        self.recalls.forget(change.purges)
        if change.purge_owner is not None:
            self.recalls.forget_owner(change.purge_owner)
        owner = change.decided_of
        index = None if owner is None else self.indexes.ready(owner)
        queue = self.victims.get(index, []) if index is not None else []
        if index is None or not queue:
            return
        lower = [entry.memory for entry in change.inserts if Trust.HOST.outranks(entry.memory.trust)]
        queue[:] = _queue_after(queue, lower, _ended_by(change), index)

    def doubt(self, now: datetime) -> str:
        """Return why nothing may be erased by its age now; "" where the clock is not in doubt, or not watched."""
        return "" if self.clock is None else self.clock.doubt(now)

    def is_behind(self, now: datetime) -> bool:
        """Whether the clock is implausibly far behind, so that no date is put right by it."""
        return self.clock is not None and self.clock.is_behind(now)

    def purge_time(self, now: datetime) -> datetime:
        """Return the end of the grace of what is deleted now."""
        begin = now if self.clock is None else self.clock.never_behind(now)
        return begin + timedelta(days=self.policy.delete_grace_days)

    def copies(self) -> tuple[str, ...]:
        """Return the files that hold an earlier state of the store."""
        return () if self.store.files is None else tuple(self.store.files.copies())

    async def entry_of(self, memory: Memory) -> Entry | None:
        """Return a memory as it is stored now, with its vectors; None if it is gone."""
        return next(iter(await self.store.memories.entries(memory.owner, [memory.id], Vectors.ALL)), None)

    async def messages_at(self, owner: Owner, places: Collection[tuple[str, int]]) -> list[Message]:
        """Return an owner's messages at some places (thread and seq), in their order."""
        return await self.store.conversations.messages(MessageSelector(owner=owner, places=places))

    async def naming(self, owner: Owner, entity_ids: Iterable[str]) -> list[Memory]:
        """Return an owner's memories that name one of some entities, in every state, newest first."""
        selector = MemorySelector(owner=owner, naming=frozenset(entity_ids))
        return await self.store.memories.scan(selector, limit=0, order=Order.NEWEST)

    async def entries_of(self, memories: Sequence[Memory]) -> list[Entry]:
        """Return memories as they are stored now, with their terms; those that are gone are left out."""
        ids: dict[Owner, list[str]] = {}
        for memory in memories:
            ids.setdefault(memory.owner, []).append(memory.id)
        return [entry for owner, known in ids.items() for entry in await self.store.memories.entries(owner, known)]


def _ended_by(change: ChangeSet) -> set[str]:
    """Return the ids of what a change purges, deletes or supersedes."""
    updated = (entry.memory for entry in change.updates)
    gone = (memory for memory in updated if memory.delete_time or memory.supersede_time)
    return {memory.id for memory in (*change.purges, *gone)}


def _queue_after(queue: list[str], lower: Sequence[Memory], ended: Collection[str], index: ScopeIndex) -> list[str]:
    """Return a queue of victims without those that ended, and with new ones before what is of higher trust."""
    left = [one for one in queue if one not in ended]
    queued = set(left)
    new = [memory for memory in lower if memory.id not in queued]
    if not new:
        return left
    known = [memory for one in left if (memory := index.memory(one)) is not None]
    ids, weights = [memory.id for memory in known], [memory.trust.weight for memory in known]
    for memory in new:
        place = bisect_right(weights, memory.trust.weight)
        ids.insert(place, memory.id)
        weights.insert(place, memory.trust.weight)
    return ids
