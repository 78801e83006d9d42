"""
Who reads messages for what is worth knowing: extractors by name, also those that other packages add.

A package adds one by an entry point of the group `memoryd.extractors`: a callable without arguments that returns an
Extractor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.metadata import entry_points
from typing import Protocol

from memoryd.errors import StartupError
from memoryd.model.conversation import Message
from memoryd.model.memory import Kind

__all__ = ["ENTRY_POINTS", "Exchange", "Extractor", "ExtractorRefused", "Learnt", "NotNow", "load_extractor"]

ENTRY_POINTS = "memoryd.extractors"
NOBODY = frozenset(["none", "host"])
"""With these the daemon learns nothing by itself; with "host" an agent of the host's does."""


class ExtractorRefused(StartupError):
    """The configuration names an extractor that there is not."""


class NotNow(Exception):
    """Raised by an extractor that can read nothing for a while, whatever the messages are; nothing is parked for it."""

    def __init__(self, reason: str, *, for_s: float = 0.0) -> None:
        """Say why, without content, and for how long (0: the caller decides)."""
        super().__init__(reason)
        self.reason, self.for_s = reason, for_s


@dataclass(frozen=True, slots=True)
class Learnt:
    """One thing that a message says."""

    content: str
    message: Message
    """Whose words it is: its speaker, trust and time hold for it."""
    kind: Kind = Kind.FACT
    category: str = "other"
    confidence: float = 1.0
    event_time: datetime | None = None
    """When it happens; None: when it was said."""
    lasts: timedelta | None = None
    """For how long after it was said it is so; None: for good."""
    subjects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    also: tuple[Message, ...] = ()
    """Other messages that it follows from: the question of an answer."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Messages of one thread in order; all from `first` on were not read before."""

    messages: Sequence[Message]
    first: int = 0

    @property
    def new(self) -> Sequence[Message]:
        """Those that were not read before."""
        return self.messages[self.first :]


class Extractor(Protocol):
    """Reads messages. It keeps nothing between two calls, and raises whatever keeps it from reading."""

    name: str

    async def extract(self, exchange: Exchange) -> list[Learnt]:
        """Return what the new messages of an exchange say, in their order; nothing that others than users say."""
        ...


def load_extractor(name: str, known: dict[str, Callable[[], Extractor]]) -> Extractor | None:
    """Return the extractor of a name; None where the daemon learns nothing by itself. ExtractorRefused."""
    if name in NOBODY:
        return None
    if name in known:
        return known[name]()
    installed = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in installed:
        there = ", ".join(sorted({*NOBODY, *known, *installed}))
        raise ExtractorRefused(f"learning.extractor is {name!r}; there are: {there}")
    made: Extractor = installed[name].load()()
    return made
