"""Threads that are there before they are needed: a process that is short of memory cannot start one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

__all__ = ["are_exhausted", "started"]

PATIENCE_S = 30.0


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
