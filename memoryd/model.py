"""
The values of memoryd: plain, immutable, and checked once, where they are made.

Times are aware datetimes in UTC. Nothing here does I/O, reads a clock or knows a wire format.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import MappingProxyType

from memoryd import limits
from memoryd.errors import IdentityMissing, InvalidArgument, LimitExceeded

__all__ = [
    "AddResult",
    "Caller",
    "ContextItem",
    "ContextSection",
    "Draft",
    "Filter",
    "GcReport",
    "Hit",
    "Judgement",
    "Kind",
    "Leg",
    "LegScore",
    "Memory",
    "MemoryCount",
    "Outcome",
    "Owner",
    "Query",
    "Scope",
    "Source",
    "State",
    "Stats",
    "Trust",
    "Visibility",
    "check_count",
    "check_id",
    "check_text",
    "fold",
    "text_digest",
]

DEFAULT_AGENT = "default"
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)  # a day inside what a timestamp can hold, so that zones cannot overflow
LATEST = datetime(9999, 12, 30, tzinfo=UTC)
_EMPTY: Mapping[str, str] = MappingProxyType({})


class Kind(Enum):
    """What sort of statement a memory is."""

    FACT = "fact"
    PREFERENCE = "preference"
    EVENT = "event"
    PROCEDURE = "procedure"
    REFLECTION = "reflection"
    EPISODE = "episode"


class State(Enum):
    """Where a memory stands in its life."""

    LIVE = "live"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    DELETED = "deleted"


class Trust(Enum):
    """Which door a memory came through."""

    HOST = "host"
    SANDBOX = "sandbox"
    IMPORTED = "imported"


class Outcome(Enum):
    """What became of a statement that was offered."""

    INSERTED = "inserted"
    REINFORCED = "reinforced"  # we knew; now we know it better
    SUPERSEDED = "superseded"  # we believed otherwise until now
    REJECTED = "rejected"


class Leg(Enum):
    """One way of finding memories."""

    VECTOR = "vector"
    KEYWORD = "keyword"
    ENTITY = "entity"


_VISIBLE = frozenset("LNPS")  # letters, numbers, punctuation, symbols: what is left is spaces, marks and controls


def check_text(value: str, name: str, *, limit: int, required: bool = False) -> str:
    """Return value in NFC; InvalidArgument if it is no storable text, LimitExceeded above `limit` bytes of UTF-8."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be text, not {type(value).__name__}", field=name)
    if len(value) > 2 * limit:  # before any work: NFC never shrinks text below a third of its bytes
        raise LimitExceeded(f"{name} has {len(value)} characters; the limit is {limit} bytes", field=name, limit=name)
    text = value if value.isascii() else unicodedata.normalize("NFC", value)
    if "\0" in text:
        raise InvalidArgument(f"{name} contains a NUL character; remove it", field=name)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"{name} contains a lone surrogate, which is not Unicode text; decode it properly", field=name
        ) from None
    if size > limit:
        raise LimitExceeded(f"{name} is {size} bytes; the limit is {limit}", field=name, limit=name)
    if required and not any(unicodedata.category(letter)[0] in _VISIBLE for letter in text):
        raise InvalidArgument(f"{name} is empty; say something", field=name)
    return text


def check_id(value: str, name: str) -> str:
    """Return an identifier of the caller's: at most 128 bytes, printable, without outer spaces; empty is fine."""
    text = check_text(value, name, limit=limits.MAX_ID_BYTES)
    if text and (not text.isprintable() or text != text.strip()):
        raise InvalidArgument(f"{name} must be printable and must not begin or end with a space", field=name)
    return text


def check_count(value: int, name: str, *, default: int, limit: int) -> int:
    """Return value, or default for zero; InvalidArgument below zero, LimitExceeded above limit."""
    if value < 0:
        raise InvalidArgument(f"{name} is {value}; it must be at least 1, or 0 for {default}", field=name)
    if value > limit:
        raise LimitExceeded(f"{name} is {value}; the limit is {limit}", field=name, limit=name)
    return value or default


def check_share(value: float, name: str) -> float:
    """Return value if it lies in 0–1; InvalidArgument otherwise, NaN included."""
    if not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InvalidArgument(f"{name} is {value}; it must lie between 0 and 1", field=name)
    return value


def check_time(value: datetime | None, name: str) -> datetime | None:
    """Return value in UTC; InvalidArgument without a zone or outside of the years 1–9999."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise InvalidArgument(f"{name} must be a datetime, not {type(value).__name__}", field=name)
    if value.tzinfo is None:
        raise InvalidArgument(f"{name} has no time zone; give one, for example UTC", field=name)
    if not EARLIEST <= value <= LATEST:
        raise InvalidArgument(f"{name} is out of range", field=name)
    return value.astimezone(UTC)


def fold(text: str) -> str:
    """Return text as it is compared where case and spacing do not matter."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(plain.casefold().split())


def text_digest(text: str) -> bytes:
    """Return 16 bytes that are equal for statements equal but for case, spacing, width and a final full stop."""
    folded = fold(text)
    return hashlib.blake2b((folded.rstrip(" .!…。！") or folded).encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Scope:
    """Who may recall a memory: one user, or everyone in one chat."""

    user_id: str | None = None
    chat_id: str | None = None

    def __post_init__(self) -> None:
        """Refuse a scope of both and a scope of neither."""
        if (not self.user_id) == (not self.chat_id):
            raise InvalidArgument("a scope names exactly one of user_id and chat_id")


@dataclass(frozen=True, slots=True)
class Owner:
    """An agent and a scope: the unit of duplicates, of supersession and of the index."""

    agent_id: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class Visibility:
    """What a caller may see: the personal memories of user_id and the group memories of chat_id, of one agent."""

    agent_id: str
    user_id: str | None
    chat_id: str | None

    @property
    def owners(self) -> tuple[Owner, ...]:
        """One or two owners; the user's first."""
        scopes = []
        if self.user_id:
            scopes.append(Scope(user_id=self.user_id))
        if self.chat_id:
            scopes.append(Scope(chat_id=self.chat_id))
        return tuple(Owner(self.agent_id, scope) for scope in scopes)


@dataclass(frozen=True, slots=True)
class Caller:
    """The verified identity behind a call."""

    agent_id: str = DEFAULT_AGENT
    user_id: str | None = None
    chat_id: str | None = None
    trust: Trust = Trust.HOST
    grant_id: str = ""

    def __post_init__(self) -> None:
        """Check the ids; IdentityMissing if neither says who asks."""
        for name in ("agent_id", "user_id", "chat_id"):
            value = getattr(self, name)
            object.__setattr__(self, name, check_id(value, name) or None if value else None)
        if self.agent_id is None:
            object.__setattr__(self, "agent_id", DEFAULT_AGENT)
        if self.user_id is None and self.chat_id is None:
            raise IdentityMissing("neither user_id nor chat_id is set; say who asks", field="user_id")

    @property
    def visibility(self) -> Visibility:
        """What it may see."""
        return Visibility(self.agent_id, self.user_id, self.chat_id)

    def writes_to(self, *, shared: bool) -> Owner:
        """Where its statements go: to the chat if shared, else to the user."""
        if shared:
            if not self.chat_id:
                raise InvalidArgument("shared needs a chat_id: whose group memory shall it become?", field="chat_id")
            return Owner(self.agent_id, Scope(chat_id=self.chat_id))
        if not self.user_id:
            raise IdentityMissing(
                "a personal memory needs a user_id; set shared to store it for the chat", field="user_id"
            )
        return Owner(self.agent_id, Scope(user_id=self.user_id))


@dataclass(frozen=True, slots=True)
class Source:
    """Who stated a memory and where: a claim of the caller."""

    speaker: str = ""
    channel: str = ""
    thread_id: str = ""
    session_id: str = ""
    message_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every part as an id."""
        for name in ("speaker", "channel", "thread_id", "session_id"):
            object.__setattr__(self, name, check_id(getattr(self, name), f"source.{name}"))
        if len(self.message_ids) > limits.MAX_SOURCE_MESSAGES:
            raise LimitExceeded(
                f"source.message_ids has {len(self.message_ids)} entries; the limit is {limits.MAX_SOURCE_MESSAGES}",
                field="source.message_ids",
                limit="source.message_ids",
            )
        ids = tuple(check_id(item, f"source.message_ids[{n}]") for n, item in enumerate(self.message_ids))
        object.__setattr__(self, "message_ids", ids)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Why a memory was superseded or contested."""

    rule: str
    reason: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One durable statement that can be recalled; fields as in `memory.proto`."""

    id: str
    agent_id: str
    scope: Scope
    content: str
    create_time: datetime
    event_time: datetime
    kind: Kind = Kind.FACT
    state: State = State.LIVE  # as of the answer; what is stored are the times
    subjects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: str = ""
    metadata: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    key: str = ""
    source: Source = Source()
    confidence: float = 1.0
    decay_rate: float | None = None
    trust: Trust = Trust.HOST
    grant_id: str = ""
    protected: bool = False
    recall_time: datetime | None = None
    recall_count: int = 0
    reinforce_time: datetime | None = None
    expire_time: datetime | None = None
    supersede_time: datetime | None = None
    delete_time: datetime | None = None
    purge_time: datetime | None = None
    supersedes: tuple[str, ...] = ()
    superseded_by: str = ""
    contested_with: tuple[str, ...] = ()
    judgement: Judgement | None = None

    @property
    def owner(self) -> Owner:
        """Agent and scope."""
        return Owner(self.agent_id, self.scope)

    def state_at(self, now: datetime) -> State:
        """Return the state that its times say; deleted before superseded before expired."""
        if self.delete_time is not None:
            return State.DELETED
        if self.supersede_time is not None:
            return State.SUPERSEDED
        if self.expire_time is not None and self.expire_time <= now:
            return State.EXPIRED
        return State.LIVE

    def as_of(self, now: datetime) -> Memory:
        """Return it with the state that it has now."""
        state = self.state_at(now)
        return self if state is self.state else replace(self, state=state)


def _check_labels(values: Iterable[str], name: str, *, most: int, limit: int) -> tuple[str, ...]:
    """Return the labels, stripped, each once, in order."""
    if isinstance(values, str | bytes):
        raise InvalidArgument(f"{name} must be a list of texts, not one text", field=name)
    values = tuple(values)
    if len(values) > most:
        raise LimitExceeded(f"{name} has {len(values)} entries; the limit is {most}", field=name, limit=name)
    labels = [check_text(value, f"{name}[{n}]", limit=limit, required=True).strip() for n, value in enumerate(values)]
    return tuple(dict.fromkeys(labels))


def check_subjects(values: Iterable[str], name: str = "subjects") -> tuple[str, ...]:
    """Return subjects, each once; LimitExceeded above 16 of 128 bytes."""
    return _check_labels(values, name, most=limits.MAX_SUBJECTS, limit=limits.MAX_SUBJECT_BYTES)


def check_tags(values: Iterable[str], name: str = "tags") -> tuple[str, ...]:
    """Return tags, each once; LimitExceeded above 32 of 64 bytes."""
    return _check_labels(values, name, most=limits.MAX_TAGS, limit=limits.MAX_TAG_BYTES)


def check_metadata(values: Mapping[str, str], name: str = "metadata") -> Mapping[str, str]:
    """Return metadata in NFC, ordered by key; LimitExceeded above 32 keys of 64 / 1,024 bytes or 8 KiB."""
    if not isinstance(values, Mapping):
        raise InvalidArgument(f"{name} must be a mapping of text to text", field=name)
    if len(values) > limits.MAX_METADATA_KEYS:
        raise LimitExceeded(
            f"{name} has {len(values)} keys; the limit is {limits.MAX_METADATA_KEYS}", field=name, limit=name
        )
    checked = {}
    for key, value in sorted(values.items()):
        known = check_text(key, name, limit=limits.MAX_METADATA_KEY_BYTES, required=True)
        if known in checked:
            raise InvalidArgument(f"{name} has two keys that are the same text in Unicode NFC", field=name)
        checked[known] = check_text(value, name, limit=limits.MAX_METADATA_VALUE_BYTES)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in checked.items())
    if size > limits.MAX_METADATA_BYTES:
        raise LimitExceeded(
            f"{name} is {size} bytes in all; the limit is {limits.MAX_METADATA_BYTES}", field=name, limit=name
        )
    return checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A statement that is offered: what the caller may say of a memory, checked and in NFC."""

    content: str
    kind: Kind = Kind.FACT
    shared: bool = False
    subjects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: str = ""
    metadata: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    key: str = ""
    source: Source = Source()
    event_time: datetime | None = None
    confidence: float = 1.0
    decay_rate: float | None = None
    expires_days: float | None = None
    expire_time: datetime | None = None

    def __post_init__(self) -> None:
        """Check every field; InvalidArgument or LimitExceeded names the first that is wrong."""
        put = object.__setattr__
        put(self, "content", check_text(self.content, "content", limit=limits.MAX_CONTENT_BYTES, required=True))
        try:
            put(self, "kind", Kind(self.kind))
        except ValueError:
            raise InvalidArgument(
                f"kind is {self.kind!r}; it must be one of {', '.join(kind.value for kind in Kind)}", field="kind"
            ) from None
        put(self, "subjects", check_subjects(self.subjects))
        put(self, "tags", check_tags(self.tags))
        put(self, "category", check_text(self.category, "category", limit=limits.MAX_CATEGORY_BYTES).strip())
        put(self, "metadata", check_metadata(self.metadata))
        put(self, "key", check_id(self.key, "key"))
        put(self, "event_time", check_time(self.event_time, "event_time"))
        put(self, "expire_time", check_time(self.expire_time, "expire_time"))
        check_share(self.confidence, "confidence")
        for name in ("decay_rate", "expires_days"):
            if not isinstance(getattr(self, name), int | float | None):
                raise InvalidArgument(f"{name} must be a number", field=name)
        if self.decay_rate is not None and not 0.0 <= self.decay_rate <= limits.MAX_DECAY_RATE:
            raise InvalidArgument(
                f"decay_rate is {self.decay_rate}; it must lie between 0 and {limits.MAX_DECAY_RATE:.0f} per day",
                field="decay_rate",
            )
        if self.expires_days is not None:
            if self.expire_time is not None:
                raise InvalidArgument("give expires_days or expire_time, not both", field="expires_days")
            if not 0.0 < self.expires_days <= limits.MAX_EXPIRES_DAYS:
                raise InvalidArgument(
                    f"expires_days is {self.expires_days}; it must be more than 0 and at most"
                    f" {limits.MAX_EXPIRES_DAYS}; leave it out to keep the memory for ever",
                    field="expires_days",
                )

    def expiry(self, now: datetime) -> datetime | None:
        """Return when it expires; InvalidArgument if that is over already."""
        if self.expires_days is not None:
            return now + timedelta(days=self.expires_days)
        if self.expire_time is not None and self.expire_time <= now:
            raise InvalidArgument("expire_time is not in the future", field="expire_time")
        return self.expire_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Narrows a search or a list: every field that is set must match. Ranges are half-open [from, to)."""

    kinds: frozenset[Kind] = frozenset()
    subjects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    category: str = ""
    event_time_from: datetime | None = None
    event_time_to: datetime | None = None
    create_time_from: datetime | None = None
    create_time_to: datetime | None = None
    include_expired: bool = False
    include_superseded: bool = False

    def __post_init__(self) -> None:
        """Check every field as the memory's own."""
        put = object.__setattr__
        put(self, "subjects", check_subjects(self.subjects, "filter.subjects"))
        put(self, "tags", check_tags(self.tags, "filter.tags"))
        put(self, "metadata", check_metadata(self.metadata, "filter.metadata"))
        put(self, "category", check_text(self.category, "filter.category", limit=limits.MAX_CATEGORY_BYTES).strip())
        for name in ("event_time", "create_time"):
            start = check_time(getattr(self, f"{name}_from"), f"filter.{name}_from")
            end = check_time(getattr(self, f"{name}_to"), f"filter.{name}_to")
            if start is not None and end is not None and end <= start:
                raise InvalidArgument(f"filter.{name}_to must be later than {name}_from", field=f"filter.{name}_to")
            put(self, f"{name}_from", start)
            put(self, f"{name}_to", end)

    @property
    def wanted_kinds(self) -> frozenset[Kind]:
        """The kinds it lets through: those named, or all but EPISODE."""
        return self.kinds or frozenset(Kind) - {Kind.EPISODE}

    def admits(self, memory: Memory, now: datetime) -> bool:
        """Whether a memory passes: the definition that every store and index must agree with."""
        state = memory.state_at(now)
        expired = memory.expire_time is not None and memory.expire_time <= now
        return (
            state is not State.DELETED
            and (self.include_superseded or memory.supersede_time is None)
            and (self.include_expired or not expired)
            and memory.kind in self.wanted_kinds
            and (not self.subjects or bool({*map(fold, self.subjects)} & {*map(fold, memory.subjects)}))
            and set(self.tags) <= set(memory.tags)
            and self.metadata.items() <= dict(memory.metadata).items()
            and (not self.category or self.category == memory.category)
            and (self.event_time_from is None or self.event_time_from <= memory.event_time)
            and (self.event_time_to is None or memory.event_time < self.event_time_to)
            and (self.create_time_from is None or self.create_time_from <= memory.create_time)
            and (self.create_time_to is None or memory.create_time < self.create_time_to)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question to the memory, checked."""

    text: str
    limit: int = limits.DEFAULT_SEARCH_LIMIT
    filter: Filter = Filter()
    min_score: float = 0.0
    explain: bool = False

    def __post_init__(self) -> None:
        """Check every field; the limit of zero becomes the default."""
        put = object.__setattr__
        put(self, "text", check_text(self.text, "query", limit=limits.MAX_QUERY_BYTES, required=True))
        count = check_count(self.limit, "limit", default=limits.DEFAULT_SEARCH_LIMIT, limit=limits.MAX_SEARCH_LIMIT)
        put(self, "limit", count)
        check_share(self.min_score, "min_score")


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
