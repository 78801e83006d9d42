"""What an agent of the host's learns from sessions, and what it decides between memories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from memoryd.model.conversation import Message
from memoryd.model.memory import Kind, ShownMemory
from memoryd.model.open_enum import OpenEnum
from memoryd.model.scope import Owner, Scope
from memoryd.model.trust import Trust

__all__ = ["MemoryConflict", "Proposal", "Resolution", "SaidFact", "SessionKey", "SessionMessages", "Stands"]


@dataclass(frozen=True, slots=True)
class SessionKey:
    """One session of one thread."""

    owner: Owner
    thread_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class SaidFact:
    """One thing that an agent has learnt from messages."""

    content: str
    message_ids: tuple[str, ...]
    kind: Kind = Kind.FACT
    category: str = ""
    confidence: float = 1.0
    event_time: datetime | None = None
    expire_time: datetime | None = None
    subjects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What was learnt, and waits for someone to approve it; fields as in `consolidation_service.proto`."""

    id: str
    agent_id: str
    scope: Scope
    thread_id: str
    session_id: str = ""
    message_ids: tuple[str, ...]
    """The message whose trust and speaker hold for it, then the others that it follows from."""
    content: str
    kind: Kind = Kind.FACT
    category: str = ""
    confidence: float = 1.0
    event_time: datetime | None = None
    expire_time: datetime | None = None
    subjects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    speaker: str = ""
    trust: Trust = Trust.HOST
    create_time: datetime
    grant_id: str = field(default="", metadata={"internal": True})
    """The grant through which its message came."""
    author: str = field(default="", metadata={"internal": True})
    """The user in whose name its message came."""

    @property
    def owner(self) -> Owner:
        """Whose it would be."""
        return Owner(self.agent_id, self.scope)


@dataclass(frozen=True, slots=True)
class SessionMessages:
    """A page of the messages of a session; an empty token: that was all."""

    messages: tuple[Message, ...]
    next_page_token: str = ""
    lease_time: datetime | None = None
    """Until when no one else works on the session."""


class Stands(OpenEnum):
    """How a memory stands to one that it may contradict."""

    CHANGED = "changed"
    DOUBTFUL = "doubtful"
    CONTESTED = "contested"
    NEAR = "near"


class Resolution(OpenEnum):
    """What is decided of two memories."""

    SUPERSEDE = "supersede"
    KEEP_BOTH = "keep_both"


@dataclass(frozen=True, slots=True)
class MemoryConflict:
    """A memory that may contradict another; fields as in `consolidation_service.proto`."""

    memory: ShownMemory
    relation: Stands
    similarity: float = 0.0
    rule: str = ""
    reason: str = ""
