"""Changes that go on to their end even if the caller hangs up: whole, or not begun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from memoryd.model.call_context import current_trail

__all__ = ["settle"]

T = TypeVar("T")
_unfinished: set[asyncio.Task[Any]] = set()


async def settle(work: Coroutine[Any, Any, T], *, left: Callable[[], object] | None = None) -> T:
    """
    Await a change in a task of its own, which a cancelled caller does not take along.

    `left` is called if the caller goes: what is not begun yet can still be given up.
    """
    task = asyncio.create_task(work)
    _unfinished.add(task)
    trail = current_trail()
    if trail is not None:
        trail.changes.append(task)  # it counts as under way until it has ended
    task.add_done_callback(_done)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if left is not None:
            left()
        raise


def _done(task: asyncio.Task[Any]) -> None:
    _unfinished.discard(task)
    if not task.cancelled():
        task.exception()  # marked as seen: a caller who hung up does not read it
