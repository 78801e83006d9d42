"""
What is known of a call for the audit log, wherever the call has got to.

The service begins a trail; the store finds it when the call commits, so that the line of a write goes with the write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from memoryd.change import ChangeSet

__all__ = ["Journal", "Trail", "current_trail", "following"]


@dataclass(slots=True, kw_only=True)
class Trail:
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
    ids: list[str] = field(default_factory=list)
    recorded: bool = False
    """Whether the log has it already as done."""


_current: ContextVar[Trail | None] = ContextVar("trail", default=None)


def current_trail() -> Trail | None:
    """Return the trail of the call that this code serves, if it serves one."""
    return _current.get()


@contextmanager
def following(trail: Trail) -> Iterator[Trail]:
    """Make it the trail of all that is done within, also of the tasks that are begun there."""
    token = _current.set(trail)
    try:
        yield trail
    finally:
        _current.reset(token)


class Journal(Protocol):
    """What the store tells of each change set before it commits it."""

    def record(self, work: Sequence[tuple[ChangeSet, Trail | None]]) -> Callable[[], None]:
        """
        Write down what is about to be committed, and return what waits until that is on disk.

        Raises Unavailable where it cannot be written; then nothing is committed.
        """
        ...
