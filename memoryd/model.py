"""
The values of memoryd: plain, immutable, and checked once, where they are made.

Times are aware datetimes in UTC. Nothing here does I/O, reads a clock or knows a wire format.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType

from memoryd import limits
from memoryd.checks import (
    check_count,
    check_id,
    check_metadata,
    check_share,
    check_subjects,
    check_tags,
    check_text,
    check_time,
    fold,
)
from memoryd.entity import EntityRef, Mention
from memoryd.errors import IdentityMissing, InvalidArgument, LimitExceeded
from memoryd.grant import NO_LIMITS, Quota

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
]

DEFAULT_AGENT = "default"
UNKNOWN = "unknown"  # who said something in a chat for which nobody is named
VOUCHED = ", as "  # between a speaker and who says that it was they
USER_WORDS = frozenset({"user", "the user", "me"})  # what a speaker may be called who is the user
AT_ONCE = timedelta(seconds=1)  # an event_time so near to the create_time is that of the storing
_OWN = {"internal": True}  # a field that the daemon keeps for itself
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

    @property
    def weight(self) -> int:
        """What it weighs: the host before imports before sandboxes."""
        return _WEIGHTS[self.value]

    def outranks(self, other: Trust) -> bool:
        """Whether it weighs more."""
        return self.weight > other.weight


_WEIGHTS = {"host": 2, "imported": 1, "sandbox": 0}


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
    quota: Quota = NO_LIMITS

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

    def reads_as(self, owner: Owner) -> str:
        """Who reads what an owner has: the user in a chat; in their own memory nobody else is there."""
        return self.user_id or "" if owner.scope.user_id is None else ""

    @property
    def turn(self) -> Hashable:
        """What takes turns at what is scarce: its grant, else itself."""
        return self.grant_id or self

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
    delete_trust: Trust | None = field(default=None, metadata=_OWN)
    """With which trust it was deleted: with less it is not restored."""
    supersede_trust: Trust | None = field(default=None, metadata=_OWN)
    """With which trust it was superseded: with less that is not undone."""
    delete_reason: str = ""
    """Why it went: "deleted", "decayed", "evicted" or "forgotten"; empty while it is there."""
    trusted_recall_time: datetime | None = field(default=None, metadata=_OWN)
    """When the host last recalled it; what a sandbox recalls does not keep a memory from fading."""
    claims: tuple[str, ...] = field(default=(), metadata=_OWN)
    """The attributes that it speaks of, as `knowledge.claims` reads them: what it is found by when judged."""
    mentions: tuple[Mention, ...] = field(default=(), metadata=_OWN)
    """The entities that it names."""
    enrich_time: datetime | None = field(default=None, metadata=_OWN)
    """When every finder last looked at it."""
    author: str = field(default="", metadata=_OWN)
    """Of a chat's memory the user for whom it was stored, who says "I" in it where no speaker is named."""
    entities: tuple[EntityRef, ...] = ()
    """Its mentions as an answer shows them; never stored."""
    said_by: str = ""
    """Who says "I" in it, where that is not the asking user; never stored."""
    said_time: datetime | None = None
    """Its event_time, where a reader needs it to understand the statement; never stored."""

    @property
    def text_bytes(self) -> int:
        """Bytes of all that was said: content, labels, metadata, key and source."""
        source = self.source
        texts = (
            self.content, *self.subjects, *self.tags, self.category, *self.metadata, *self.metadata.values(), self.key,
            source.speaker, source.channel, source.thread_id, source.session_id, *source.message_ids,
        )  # fmt: skip
        return len("".join(texts).encode())

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

    @property
    def links(self) -> frozenset[str]:
        """The ids of other memories that it names."""
        evidence = "" if self.judgement is None else self.judgement.evidence
        return frozenset((*self.contested_with, *self.supersedes, self.superseded_by, evidence)) - {""}

    @property
    def narrator(self) -> str:
        """
        Who says "I" in it; empty: the user of a personal memory, or nobody who is known.

        Whom a sandbox of another names is not them, but somebody of its own.
        """
        speaker, author = self.source.speaker, self.author
        if not speaker or fold(speaker) in {*USER_WORDS, fold(self.scope.user_id or "")}:
            return author
        vouched = fold(speaker) == fold(author) or self.scope.user_id is not None or self.trust is Trust.HOST
        return speaker if vouched else f"{speaker}{VOUCHED}{author or UNKNOWN} says"

    @property
    def own_event_time(self) -> datetime | None:
        """The event_time if it is another than that of the storing."""
        return self.event_time if abs(self.event_time - self.create_time) >= AT_ONCE else None

    def as_of(self, now: datetime) -> Memory:
        """Return it with the state that it has now."""
        state = self.state_at(now)
        return self if state is self.state else replace(self, state=state)


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
    entity_ids: frozenset[str] = frozenset()
    """Whom the subjects mean, as far as they are known; a memory that names one of them passes too."""
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

    def is_about(self, memory: Memory) -> bool:
        """Whether a memory is about one of the subjects, if there are any, and does not merely mention one."""
        return (
            not self.subjects
            or bool({*map(fold, self.subjects)} & {*map(fold, memory.subjects)})
            or any(mention.about and mention.entity_id in self.entity_ids for mention in memory.mentions)
        )

    def admits(self, memory: Memory, now: datetime) -> bool:
        """Whether a memory passes: the definition that every store and index must agree with."""
        state = memory.state_at(now)
        expired = memory.expire_time is not None and memory.expire_time <= now
        return (
            state is not State.DELETED
            and (self.include_superseded or memory.supersede_time is None)
            and (self.include_expired or not expired)
            and memory.kind in self.wanted_kinds
            and (
                not self.subjects
                or bool({*map(fold, self.subjects)} & {*map(fold, memory.subjects)})
                or any(mention.entity_id in self.entity_ids for mention in memory.mentions)
            )
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
