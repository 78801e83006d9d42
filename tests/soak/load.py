"""Workers that call a daemon, and the account of all that it has acknowledged to them."""

from __future__ import annotations

import functools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from memory_client import (
    ConnectionLost,
    Filter,
    InternalError,
    MemoryClient,
    MemorydError,
    MessageDraft,
    NotFound,
    ThreadNotFound,
    TimedOut,
    Unavailable,
)

from memoryd.model.memory import Outcome

__all__ = ["Account", "Figures", "Worker"]

T = TypeVar("T")
NO_ANSWER = (Unavailable, ConnectionLost, TimedOut)
WORDS = [
    *("amber", "basket", "candle", "drum", "ember", "falcon", "garnet", "harbour", "indigo", "jasmine", "kettle"),
    *("lantern", "marble", "nectar", "orchid", "pepper", "quarry", "ribbon", "saffron", "timber", "umbrella"),
    *("velvet", "willow", "yonder", "zephyr", "café", "naïve", "Ωmega", "東京", "🦊", "crème", "Łódź"),
]
THREADS = 6
EVERY = Filter(include_superseded=True, include_expired=True)
MOST_MEMORIES, MOST_DELETED, MOST_MESSAGES = 120, 20, 200  # of each user
MOST_OTHERS = 40  # of each user: what was learnt from messages, and what was superseded


class Figures:
    """What the calls of all workers took and which errors they met; one lock for all of it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.done: Counter[str] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        self.unexpected: list[str] = []
        self.search_s: list[tuple[float, float]] = []  # when it began (monotonic), and how long it took
        self.unfound = 0
        self.restarts = 0

    def failed(self, call: str, error: MemorydError, *, expected: bool) -> None:
        """Count an error; one that no restart explains is told with its words."""
        with self.lock:
            self.errors[call, type(error).__name__] += 1
            if not expected or isinstance(error, InternalError):
                self.unexpected.append(f"{call}: {type(error).__name__}: {error}"[:300])


class Account:
    """What one user has been told of: memories by id, messages by thread, and what was erased."""

    def __init__(self) -> None:
        self.memories: dict[str, str] = {}
        self.deleted: set[str] = set()
        self.purged: set[str] = set()
        self.threads: dict[str, list[str]] = {}

    def copy(self) -> Account:
        """Return what is acknowledged now."""
        other = Account()
        other.memories, other.deleted, other.purged = dict(self.memories), set(self.deleted), set(self.purged)
        other.threads = {name: list(texts) for name, texts in self.threads.items()}
        return other

    def faults(self, memory: MemoryClient) -> list[str]:
        """Compare it with what a daemon holds: what is lost, what came back, what is out of order."""
        found = []
        for memory_id, text in self.memories.items():
            try:
                if memory.get(memory_id).content != text:
                    found.append(f"memory {memory_id} has other words")
            except NotFound:
                found.append(f"memory {memory_id} is lost")
        for memory_id in self.purged | self.deleted:
            try:
                memory.get(memory_id)
            except NotFound:
                continue
            found.append(f"memory {memory_id} came back")
        for thread, texts in self.threads.items():
            try:
                ordered = sorted(memory.all_messages(thread), key=lambda message: message.seq)
                stored = [message.content for message in ordered]
            except ThreadNotFound:
                stored = []
            if stored != texts:
                found.append(f"thread {thread} has {len(stored)} messages, {len(texts)} were acknowledged")
        return found


class Worker(threading.Thread):
    """One user who adds, says, searches, deletes and erases; each call is made again until it is answered."""

    def __init__(
        self,
        number: int,
        connect: Callable[[str], MemoryClient],
        figures: Figures,
        *,
        ended: threading.Event,
        is_down: threading.Event,
        seed: int,
        pace_s: float,
    ) -> None:
        super().__init__(name=f"worker {number}", daemon=True)
        self.user_id = f"user-{number}"
        self.account, self.lock = Account(), threading.Lock()
        self.fault = ""
        self._connect, self._figures, self._ended, self._is_down = connect, figures, ended, is_down
        self._rng = random.Random(f"{seed}:{number}")
        self._pace_s = pace_s
        self._said = 0

    def run(self) -> None:
        try:
            with self._connect(self.user_id) as memory:
                while not self._ended.is_set():
                    self._turn(memory)
                    time.sleep(self._rng.uniform(0, 2 * self._pace_s))
        except Exception as error:  # noqa: BLE001  told by who started it, as a soak that lost a worker has failed
            self.fault = f"{self.name} ended: {type(error).__name__}: {error}"

    def noted(self) -> Account:
        """Return a copy of the account."""
        with self.lock:
            return self.account.copy()

    def _answered(self, name: str, call: Callable[[], T]) -> T:
        """Make a call until it is answered."""
        while True:
            was_down, began, restarts = self._is_down.is_set(), time.monotonic(), self._figures.restarts
            try:
                result = call()
            except NO_ANSWER as error:
                self._figures.failed(name, error, expected=was_down or self._is_down.is_set())
                time.sleep(0.2)
                continue
            with self._figures.lock:
                self._figures.done[name] += 1
                if name == "search" and restarts == self._figures.restarts and not was_down:
                    self._figures.search_s.append((began, time.monotonic() - began))
            return result

    def _turn(self, memory: MemoryClient) -> None:
        turns = [
            self.do_add,
            self.do_say,
            self.do_search,
            self.do_context,
            self.do_delete,
            self.do_purge,
            self.do_erase_thread,
            self.do_tidy,
        ]
        turn = self._rng.choices(turns, weights=[30, 20, 25, 10, 6, 6, 1, 1])[0]
        turn = self._balanced(turn)
        try:
            turn(memory)
        except MemorydError as error:
            self._figures.failed(turn.__name__.removeprefix("do_"), error, expected=False)
            time.sleep(1)

    def _balanced(self, turn: Callable[[MemoryClient], None]) -> Callable[[MemoryClient], None]:
        """Erase where there is much: from some time on as much goes as comes, so that what grows is a leak."""
        with self.lock:
            memories, deleted = len(self.account.memories), len(self.account.deleted)
            messages = sum(map(len, self.account.threads.values()))
        if turn == self.do_add and memories >= MOST_MEMORIES:
            return self.do_purge
        if turn == self.do_delete and deleted >= MOST_DELETED:
            return self.do_purge
        if turn == self.do_say and messages >= MOST_MESSAGES:
            return self.do_erase_thread
        return turn

    def _text(self) -> str:
        one, two, three = self._rng.sample(WORDS, 3)
        return self._rng.choice([
            f"I like {one} {two} with {three}",
            f"my colleague {one.title()} lives in {two.title()}",
            f"The {one} of the {two} is {three} {self._rng.randrange(10**6)}",
            f"my favorite {one} is {two}",
            f"On Monday we moved the {one} meeting about {two} to {three}",
            f"remind me to buy {one} {self._rng.randrange(10**6)} for {two}",
        ])  # fmt: skip

    def do_add(self, memory: MemoryClient) -> None:
        text, request_id = self._text(), f"{self.user_id}-{self._said}"
        self._said += 1
        added = self._answered("add", lambda: memory.add(text, request_id=request_id))
        if added.memory is not None and added.outcome in {Outcome.INSERTED, Outcome.SUPERSEDED}:
            with self.lock:
                self.account.memories[added.memory.id] = added.memory.content

    def do_say(self, memory: MemoryClient) -> None:
        thread = f"thread-{self._rng.randrange(THREADS)}"
        self._said += 1
        drafts = [
            MessageDraft(content=f"{self._text()} ({self._said})", role=role, id=f"{self.user_id}-{self._said}-{role}")
            for role in ("user", "assistant")
        ]
        self._answered("append", lambda: memory.append(thread, drafts))
        with self.lock:
            self.account.threads.setdefault(thread, []).extend(draft.content for draft in drafts)

    def do_search(self, memory: MemoryClient) -> None:
        """Search for what was added last: a read sees its own write."""
        with self.lock:
            last = next(reversed(self.account.memories.items()), None)
        asked = last[1] if last else self._text()
        hits = self._answered("search", lambda: memory.search(asked)).hits
        if last and last[0] not in {hit.memory.id for hit in hits}:
            with self._figures.lock:
                self._figures.unfound += 1

    def do_context(self, memory: MemoryClient) -> None:
        self._answered("context", lambda: memory.context(self._text()))

    def _gone(self, memory: MemoryClient, *, purge: bool) -> None:
        with self.lock:
            memory_id = self._rng.choice(list(self.account.memories)) if self.account.memories else ""
            self.account.memories.pop(memory_id, None)
        if memory_id:
            name = "purge" if purge else "delete"
            self._answered(name, lambda: memory.delete(memory_id, purge=purge, allow_missing=True))
            with self.lock:
                (self.account.purged if purge else self.account.deleted).add(memory_id)

    def do_delete(self, memory: MemoryClient) -> None:
        self._gone(memory, purge=False)

    def do_purge(self, memory: MemoryClient) -> None:
        self._gone(memory, purge=True)

    def do_tidy(self, memory: MemoryClient) -> None:
        """Purge the oldest of what is not in the account, beyond some, so that it does not grow either."""
        every = self._answered("list", lambda: list(memory.pages(page_size=200, filter=EVERY)))
        with self.lock:
            others = [one.id for one in every if one.id not in self.account.memories]
        for memory_id in others[MOST_OTHERS:]:
            self._answered("purge", functools.partial(memory.delete, memory_id, purge=True, allow_missing=True))
            with self.lock:
                self.account.purged.add(memory_id)

    def do_erase_thread(self, memory: MemoryClient) -> None:
        with self.lock:
            thread = self._rng.choice(list(self.account.threads)) if self.account.threads else ""
            self.account.threads.pop(thread, None)
        if thread:
            try:
                self._answered("delete_thread", lambda: memory.delete_thread(thread))
            except ThreadNotFound:  # what was sent twice, as its first answer was lost
                with self._figures.lock:
                    self._figures.done["delete_thread"] += 1
