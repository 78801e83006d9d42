"""What calls about conversations ask and answer: one type each, shared by the daemon and the client."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from memoryd.errors import InvalidArgument
from memoryd.model import limits
from memoryd.model.conversation import Message, Session, Thread
from memoryd.model.memory import Kind
from memoryd.model.query import Filter
from memoryd.model.results import Leg, strength_of
from memoryd.model.short_repr import ShortRepr
from memoryd.model.trust import Trust
from memoryd.model.validation import check_count, check_id, check_ids

__all__ = [
    "Appended",
    "AppendedMessage",
    "CompactedThread",
    "ErasedMessages",
    "ErasedThread",
    "FoundMessages",
    "MessageHit",
    "MessagePage",
    "MessageSearch",
    "SessionPage",
    "StartedSession",
    "Summary",
    "ThreadPage",
]

_OWN = {"internal": True}  # a field that the daemon keeps for itself


@dataclass(frozen=True, slots=True)
class AppendedMessage:
    """What a message that was appended is called."""

    id: str
    seq: int
    create_time: datetime
    masked: bool = False
    existed: bool = False
    """Whether the thread had it before."""


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of messages: `stored` is false where the agent is disabled, and all else is empty then."""

    stored: bool
    messages: tuple[AppendedMessage, ...] = ()
    session_id: str = ""
    message_count: int = 0
    turn_count: int = 0
    ended_session_id: str = ""


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Messages in the order of the thread, and the token of those before them."""

    messages: tuple[Message, ...]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """Some threads, and the token of the rest."""

    threads: tuple[Thread, ...]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Some sessions, and the token of the rest."""

    sessions: tuple[Session, ...]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class StartedSession:
    """A session that began, and the one that ended by it (empty: none)."""

    session: Session
    ended_session_id: str = ""


@dataclass(frozen=True, slots=True)
class CompactedThread:
    """A thread, and how many of its messages have left its prompts."""

    thread: Thread
    compacted_count: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What sums up a thread, up to a message; empty: nothing does."""

    summary: str = ""
    summary_seq: int = 0
    summary_time: datetime | None = None
    trust: Trust = Trust.HOST
    summary_by: str = ""
    """Who wrote it: a model, "rules" for an extract; empty: it was set by call."""
    author: str = ""
    """Whose call set it, where the thread is a chat's."""


@dataclass(frozen=True, slots=True)
class ErasedThread:
    """What went with a thread, or would go; of its messages the first thousand."""

    thread: Thread
    message_ids: tuple[str, ...]
    memory_ids: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ErasedMessages:
    """What messages of a thread went, or would go: all are counted, the first thousand are named."""

    thread: Thread
    message_ids: tuple[str, ...]
    deleted_count: int
    memory_ids: tuple[str, ...] = ()
    """What was learnt from them: it went too, or stays."""
    backups: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class MessageHit(ShortRepr):
    """One message that was found, with those around it that no other hit shows; scores as of a Hit."""

    message: Message
    score: float
    similarity: float = 0.0
    lexical: float = 0.0
    before: tuple[Message, ...] = ()
    after: tuple[Message, ...] = ()
    said_by_other: bool = False
    same_ids: tuple[str, ...] = ()
    """Messages that say the same, and are left out for it."""

    @property
    def strength(self) -> str:
        """The score as a word for people: strong, likely, possible or weak."""
        return strength_of(self.score)


@dataclass(frozen=True, slots=True, repr=False)
class FoundMessages(ShortRepr):
    """Hits, best first, the legs that could not take part, and how many hits there was no room for in the answer."""

    hits: tuple[MessageHit, ...]
    unavailable_legs: tuple[Leg, ...] = ()
    omitted_count: int = 0
    embedding_s: float = field(default=0.0, compare=False, metadata=_OWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSearch:
    """What is searched for, checked."""

    text: str
    top_k: int = 0
    min_score: float | None = None
    thread_id: str = ""
    """Only this thread; empty: all that the caller sees."""
    shared: bool | None = None
    """Only the chat's threads, or only the user's; None: both."""
    exclude_thread_ids: tuple[str, ...] = ()
    exclude_session_ids: tuple[str, ...] = ()
    before: int | None = None
    after: int | None = None

    def __post_init__(self) -> None:
        """Check every field; InvalidArgument or LimitExceeded names the first that is wrong."""
        put = object.__setattr__
        put(self, "thread_id", check_id(self.thread_id, "thread_id"))
        for name in ("exclude_thread_ids", "exclude_session_ids"):
            put(self, name, check_ids(getattr(self, name), name))
        for name in ("before", "after"):
            if getattr(self, name) is not None:
                put(self, name, check_count(getattr(self, name), name, default=0, limit=limits.MAX_NEIGHBOURS))
        if self.thread_id and self.thread_id in self.exclude_thread_ids:
            raise InvalidArgument("thread_id is also excluded; nothing could be found", field="exclude_thread_ids")

    @property
    def filter(self) -> Filter:
        """Which messages may be found."""
        return Filter(
            kinds=frozenset({Kind.EPISODE}),
            thread_id=self.thread_id,
            exclude_thread_ids=self.exclude_thread_ids,
            exclude_session_ids=self.exclude_session_ids,
        )
