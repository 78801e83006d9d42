"""Changes that go on to their end even if the caller hangs up: whole, or not begun."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["settle"]

T = TypeVar("T")
_unfinished: set[asyncio.Task[Any]] = set()


async def settle(work: Coroutine[Any, Any, T]) -> T:
    """Await a change in a task of its own, which a cancelled caller does not take along."""
    task = asyncio.create_task(work)
    _unfinished.add(task)
    task.add_done_callback(_done)
    return await asyncio.shield(task)


def _done(task: asyncio.Task[Any]) -> None:
    _unfinished.discard(task)
    if not task.cancelled():
        task.exception()  # marked as seen: a caller who hung up does not read it
