"""
Writes run to completion: a caller who hangs up leaves a write whole, or not begun.

A write of several commits has begun with the first one.
The gate runs every method that writes this way; below it, only what may be given up says so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from memoryd.errors import Contended
from memoryd.model.call_context import current_call

__all__ = ["abandonable", "committing", "is_abandoned", "raise_if_abandoned", "run_to_completion"]

T = TypeVar("T")


class _Run:
    """One write under way; `abandoned` once its caller has gone, `begun` once it commits."""

    def __init__(self) -> None:
        self.abandoned = False
        self.begun = False
        self.waiting: set[asyncio.Future[Any]] = set()

    def abandon(self) -> None:
        self.abandoned = True
        for future in self.waiting:
            future.cancel()


_unfinished: set[asyncio.Task[Any]] = set()
_current: ContextVar[_Run | None] = ContextVar("run", default=None)


async def run_to_completion(work: Coroutine[Any, Any, T]) -> T:
    """Await a write in a task of its own, which goes on when its caller is cancelled."""
    run = _Run()
    token = _current.set(run)
    try:
        task = asyncio.create_task(work)
    finally:
        _current.reset(token)
    _unfinished.add(task)
    call = current_call()
    if call is not None:
        call.changes.append(task)  # it counts as under way until it has ended
        task.add_done_callback(call.changes.remove)  # else its error and the call would hold each other
    task.add_done_callback(_done)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        run.abandon()
        raise


def _done(task: asyncio.Task[Any]) -> None:
    _unfinished.discard(task)
    if not task.cancelled():
        task.exception()  # marked as seen: a caller who hung up does not read it


def raise_if_abandoned() -> None:
    """Raise CancelledError if the caller of this write has gone and nothing of it is committed yet."""
    if is_abandoned()():
        raise asyncio.CancelledError


def is_abandoned() -> Callable[[], bool]:
    """Return what tells, in any thread, whether the caller of this write has gone and nothing of it is committed."""
    run = _current.get()
    return lambda: run is not None and run.abandoned and not run.begun


@contextlib.contextmanager
def committing() -> Iterator[None]:
    """Note that this write commits now and goes to its end; where others came between, it has not begun by that."""
    run = _current.get()
    if run is None:
        yield
        return
    before, run.begun = run.begun, True
    try:
        yield
    except Contended:  # nothing was written
        run.begun = before
        raise


async def abandonable(work: Awaitable[T]) -> T:
    """Await a part of a write that is given up when its caller goes; CancelledError then."""
    future = asyncio.ensure_future(work)
    run = _current.get()
    if run is None:
        return await future
    if run.abandoned:
        future.cancel()
    run.waiting.add(future)
    try:
        return await future
    finally:
        run.waiting.discard(future)
        future.cancel()
