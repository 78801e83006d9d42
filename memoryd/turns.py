"""Long work on the event loop, in turns between which others are served first; and threads that are there in time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["Turn", "are_exhausted", "in_turns", "let_others", "started"]

T = TypeVar("T")
TURN_S = 0.001  # after so long others are served
MOST_ROUNDS = 8  # of the event loop in which others go on, before it is this work's turn again
IDLE_S = 0.00005  # a round that is over sooner has served no one
PATIENCE_S = 30.0  # for threads that start


async def let_others() -> None:
    """
    Let others go on as long as they have something to do at once, for a few rounds of the event loop.

    A short call takes many small steps. If long work went on after each of them, the call would wait for a turn a step.
    """
    for _ in range(MOST_ROUNDS):
        began = time.perf_counter()
        await asyncio.sleep(0)
        if time.perf_counter() - began < IDLE_S:
            return


class Turn:
    """A turn of long work: how long it has lasted."""

    def __init__(self) -> None:
        """Begin."""
        self._began = time.perf_counter()

    @property
    def is_over(self) -> bool:
        """Whether others are to be served now."""
        return time.perf_counter() - self._began >= TURN_S

    async def next(self) -> None:
        """Let others go on, and begin the next turn."""
        await let_others()
        self._began = time.perf_counter()


async def in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield items, and pause after each turn's time, however long an item takes."""
    turn = Turn()
    for item in items:
        yield item
        if turn.is_over:
            await turn.next()


def started(pool: ThreadPoolExecutor, count: int) -> ThreadPoolExecutor:
    """Start so many threads of a pool, and return it. RuntimeError where there are none left."""
    met = threading.Barrier(count + 1)
    for _ in range(count):
        pool.submit(met.wait, PATIENCE_S)  # each waits for all, so that each takes a thread of its own
    met.wait(PATIENCE_S)
    return pool


def are_exhausted(error: BaseException) -> bool:
    """Whether something failed as the process has no memory, or no thread, left for it."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "can't start new thread" in str(error)
    )
