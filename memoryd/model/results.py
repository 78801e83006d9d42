"""What a call answers: one type each, shared by the daemon and the client."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from memoryd.model.memory import Kind, Memory, Outcome, State
from memoryd.model.trust import Trust

__all__ = ["AddResult", "ContextItem", "ContextSection", "GcReport", "Hit", "Leg", "LegScore", "MemoryCount", "Stats"]


class Leg(Enum):
    """One way of finding memories."""

    VECTOR = "vector"
    KEYWORD = "keyword"
    ENTITY = "entity"


@dataclass(frozen=True, slots=True)
class LegScore:
    """What one leg said of a hit; rank 0 where it did not find it."""

    leg: Leg
    rank: int
    score: float
    weight: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory that was found; score and lexical 0–1, similarity −1–1."""

    memory: Memory
    score: float
    similarity: float = 0.0
    lexical: float = 0.0
    explanation: tuple[LegScore, ...] = ()


@dataclass(frozen=True, slots=True)
class AddResult:
    """What became of a statement, and the memory that now says it (None where it was rejected)."""

    outcome: Outcome
    memory: Memory | None
    superseded_ids: tuple[str, ...] = ()
    contested_ids: tuple[str, ...] = ()
    rejection: str = ""


@dataclass(frozen=True, slots=True)
class MemoryCount:
    """How many memories of one kind, state and scope there are."""

    kind: Kind
    state: State
    shared: bool
    count: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What a caller sees, counted."""

    counts: tuple[MemoryCount, ...]
    newest_create_time: datetime | None
    content_bytes: int


@dataclass(frozen=True, slots=True)
class GcReport:
    """What garbage collection erased, or would."""

    expired_count: int = 0
    superseded_count: int = 0
    deleted_count: int = 0
    request_count: int = 0
    dry_run: bool = False
    grant_count: int = 0
    held: str = ""
    """Why nothing was erased, or would be; empty unless the clock is in doubt."""


@dataclass(frozen=True, slots=True)
class ContextItem:
    """Where a line of a context is from."""

    id: str
    kind: Kind
    trust: Trust


@dataclass(frozen=True, slots=True)
class ContextSection:
    """One part of a context with its heading."""

    name: str
    text: str
    items: tuple[ContextItem, ...]
