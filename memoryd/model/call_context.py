"""
What is known of a call for the audit log and for traces, wherever the call has got to.

The service begins one for each call. The store finds it when the call commits, so that the audit line of a write
is written with the write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from memoryd.model.change import ChangeSet
from memoryd.model.traces import TraceParent

__all__ = [
    "NO_TRACES",
    "CallContext",
    "Journal",
    "NoTraces",
    "Traces",
    "current_call",
    "in_call",
    "when_completed",
]


@dataclass(slots=True, kw_only=True)
class CallContext:
    """Who does what; `ids` are the memories and grants that it touched, never what they say."""

    time: datetime
    call: str
    """The id of the call, as in the log."""
    rpc: str
    door: str
    """`admin`, `sandbox`, `shared`, `tcp`, or `daemon` for what it does by itself."""
    listener: str = ""
    """The grant whose socket it came through."""
    grant_id: str = ""
    token_id: str = ""
    agent_id: str = ""
    user_id: str = ""
    chat_id: str = ""
    peer: str = ""
    """Where a call over TCP came from."""
    dry_run: bool = False
    """Whether it only asked what would go."""
    purge: bool = False
    """Whether it asked to erase for good."""
    ids: list[str] = field(default_factory=list)
    began_s: float = 0.0
    """By a clock that only goes on, in seconds."""
    changes: list[asyncio.Future[Any]] = field(default_factory=list)
    """What it began and goes on with even if its caller hangs up."""
    trace: TraceParent | None = None
    """What the caller says of the trace that the call belongs to."""
    recorded: frozenset[str] | None = None
    """The ids that the log has already as done, by commits of this call; None: it has nothing."""


def when_completed(changes: Sequence[asyncio.Future[Any]], done: Callable[[], object]) -> None:
    """Call back once all of these changes have come to their end: at once if they have."""
    pending = [change for change in changes if not change.done()]
    if not pending:
        done()
        return
    left = len(pending)

    def one(_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            done()

    for change in pending:
        change.add_done_callback(one)


_current: ContextVar[CallContext | None] = ContextVar("call_context", default=None)


def current_call() -> CallContext | None:
    """Return the call_context of the call that this code serves, if it serves one."""
    return _current.get()


@contextmanager
def in_call(call_context: CallContext) -> Iterator[CallContext]:
    """Make it the call_context of all that is done within, also of the tasks that are begun there."""
    token = _current.set(call_context)
    try:
        yield call_context
    finally:
        _current.reset(token)


class Journal(Protocol):
    """What the store tells of each commit before it is carried out."""

    def record(self, work: Sequence[tuple[Sequence[ChangeSet], CallContext | None]]) -> Callable[[], None]:
        """
        Write down what is about to be committed, and return what waits until that is on disk.

        Raises Unavailable where it cannot be written; then nothing is committed.
        """
        ...


class Traces(Protocol):
    """Where spans go."""

    def record(self, call_context: CallContext, outcome: str, took_s: float) -> None:
        """Note that a call has ended, just now."""

    def close(self) -> None:
        """Hand over what is left."""


class NoTraces:
    """Nothing is noted."""

    def record(self, call_context: CallContext, outcome: str, took_s: float) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


NO_TRACES = NoTraces()
