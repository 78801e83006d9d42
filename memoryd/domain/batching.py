"""Long work on the event loop, with pauses in which others get their turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

__all__ = ["READ_AT_ONCE", "SLICE", "in_turns", "let_others"]

T = TypeVar("T")
SLICE = 128
"""
Memories that are hidden or erased in one transaction: about 10 ms of the writer.

Each statement scans the ids of all memories, so that larger slices take less time in all, and searches meanwhile wait
longer: with 512 of 10,000 a third less, and the p99 of searches doubles (measured by `make bench`).
"""
READ_AT_ONCE = 1024  # memories: a scan is of the whole table, whatever of it is read
TURN_S = 0.001  # after so long others get their turn


async def let_others() -> None:
    """Let others have their turn between two pieces of work that take a while."""
    await asyncio.sleep(0)


async def in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield items, and pause after each turn's time, however long an item takes."""
    began = time.perf_counter()
    for item in items:
        yield item
        if time.perf_counter() - began >= TURN_S:
            await asyncio.sleep(0)
            began = time.perf_counter()
