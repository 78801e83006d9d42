"""A memory, and the draft that becomes one. Times are aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.model import limits
from memoryd.model.entity import EntityRef, Mention
from memoryd.model.open_enum import OpenEnum
from memoryd.model.scope import Owner, Scope
from memoryd.model.short_repr import ShortRepr
from memoryd.model.trust import Trust
from memoryd.model.validation import (
    check_id,
    check_metadata,
    check_share,
    check_subjects,
    check_tags,
    check_text,
    check_time,
    fold,
    metadata_text,
)

__all__ = [
    "AT_ONCE",
    "AT_ONCE_US",
    "DECAYED",
    "HAPPENED",
    "KEPT",
    "NO_STATEMENTS",
    "UNKNOWN",
    "USER_WORDS",
    "VOUCHED",
    "Draft",
    "Judgement",
    "Kind",
    "Memory",
    "Outcome",
    "ShownMemory",
    "Source",
    "State",
]

UNKNOWN = "unknown"  # who said something in a chat for which no one is named
VOUCHED = ", as "  # between a speaker and who says that it was they
DECAYED = "decayed"  # delete_reason of what faded
USER_WORDS = frozenset({"user", "the user", "me"})  # what a speaker may be called who is the user
AT_ONCE = timedelta(seconds=1)  # an event_time so near to the create_time is that of the storing
AT_ONCE_US = AT_ONCE // timedelta(microseconds=1)
_OWN = {"internal": True}  # a field that the daemon keeps for itself
_EMPTY: Mapping[str, Any] = MappingProxyType({})


class Kind(OpenEnum):
    """What sort of statement a memory is."""

    FACT = "fact"
    PREFERENCE = "preference"
    EVENT = "event"
    PROCEDURE = "procedure"
    REFLECTION = "reflection"
    EPISODE = "episode"
    NOTE = "note"
    """No statement, but a note that a search has found."""


NO_STATEMENTS = frozenset({Kind.EPISODE, Kind.REFLECTION, Kind.NOTE})  # kinds that are not judged


HAPPENED = frozenset({Kind.EPISODE, Kind.EVENT})
"""The kinds of what happens at a time, and is no lasting statement."""


KEPT = "kept"
"""The rule of a judgement where someone decided that two statements both hold."""


class State(OpenEnum):
    """Where a memory stands in its life."""

    LIVE = "live"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    DELETED = "deleted"


class Outcome(OpenEnum):
    """What became of a statement that was offered."""

    INSERTED = "inserted"
    REINFORCED = "reinforced"  # we knew; now we know it better
    SUPERSEDED = "superseded"  # we believed otherwise until now
    REJECTED = "rejected"


_SOURCE_NAMES = ("speaker", "channel", "thread_id", "session_id")


@dataclass(frozen=True, slots=True)
class Source:
    """Who stated a memory and where: a claim of the caller."""

    speaker: str = ""
    channel: str = ""
    thread_id: str = ""
    session_id: str = ""
    message_ids: tuple[str, ...] = ()

    def checked(self) -> Source:
        """Return it with every part checked as an id; InvalidArgument or LimitExceeded names what is wrong."""
        named = {name: check_id(getattr(self, name), f"source.{name}") for name in _SOURCE_NAMES}
        if len(self.message_ids) > limits.MAX_SOURCE_MESSAGES:
            raise LimitExceeded(
                f"source.message_ids has {len(self.message_ids)} entries; the limit is {limits.MAX_SOURCE_MESSAGES}",
                field="source.message_ids",
                limit="source.message_ids",
            )
        ids = tuple(check_id(item, f"source.message_ids[{n}]") for n, item in enumerate(self.message_ids))
        return Source(**named, message_ids=ids)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Why a memory was superseded or contested."""

    rule: str
    reason: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Memory(ShortRepr):
    """One durable statement that can be recalled; fields as in `memory.proto`."""

    id: str
    agent_id: str
    scope: Scope
    content: str
    create_time: datetime
    event_time: datetime
    kind: Kind = Kind.FACT
    subjects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: str = ""
    metadata: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
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
    """The attributes that it speaks of, as `knowledge.statement` reads them: what it is found by when judged."""
    mentions: tuple[Mention, ...] = field(default=(), metadata=_OWN)
    """The entities that it names."""
    enrich_time: datetime | None = field(default=None, metadata=_OWN)
    """When every finder last looked at it."""
    author: str = field(default="", metadata=_OWN)
    """The user in whose name a memory of a chat was stored; "I" in it is this user where no speaker is named."""
    import_id: str = ""
    """The import that it came by; empty: none."""
    external_id: str = ""
    """What the import called it."""
    judged: bool = field(default=True, metadata=_OWN)
    """Whether it was judged: what is imported waits for a job, which goes by the times of what was said."""

    @property
    def text_bytes(self) -> int:
        """Bytes of all that was said: content, labels, metadata, key and source."""
        source = self.source
        texts = (
            self.content, *self.subjects, *self.tags, self.category, *self.metadata,
            *map(metadata_text, self.metadata.values()), self.key, source.speaker, source.channel, source.thread_id,
            source.session_id, *source.message_ids,
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
        Who says "I" in it; empty: the user of a personal memory, or no one who is known.

        A speaker that another user's sandbox names is an identity of its own, not that user.
        """
        speaker, author = self.source.speaker, self.author
        if not speaker or fold(speaker) in {*USER_WORDS, fold(self.scope.user_id or "")}:
            return author
        vouched = fold(speaker) == fold(author) or self.scope.user_id is not None or self.trust is Trust.HOST
        return speaker if vouched else f"{speaker}{VOUCHED}{author or UNKNOWN} says"

    def is_told_as(self, other: Memory) -> bool:
        """Whether one and the same says "I" in both: names in any case, ids of users as they are written."""
        if self.narrator == other.narrator:
            return True
        are_ids = self.narrator == self.author and other.narrator == other.author
        return not are_ids and fold(self.narrator) == fold(other.narrator)

    @property
    def own_event_time(self) -> datetime | None:
        """The event_time if it is another than that of the storing."""
        return self.event_time if abs(self.event_time - self.create_time) >= AT_ONCE else None

    def shown(self, now: datetime, **more: Any) -> ShownMemory:
        """Return it as an answer shows it: with the state that it has now, and more fields of ShownMemory."""
        values = dict(zip(_NAMES, _values_of(self), strict=True))
        return ShownMemory(**{**values, "state": self.state_at(now), **more})


_NAMES = tuple(item.name for item in fields(Memory))
_values_of = attrgetter(*_NAMES)


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ShownMemory(Memory):
    """A memory as an answer shows it, with what is never stored; subjects are by their present names."""

    state: State
    """As of the answer; what is stored are the times."""
    entities: tuple[EntityRef, ...] = ()
    """Its mentions."""
    said_by: str = ""
    """Who says "I" in it, where that is not the asking user."""
    said_time: datetime | None = None
    """Its event_time, where a reader needs it to understand the statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A statement that is offered: what the caller may say of a memory, checked and in NFC."""

    content: str
    kind: Kind = Kind.FACT
    shared: bool = False
    subjects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: str = ""
    metadata: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    key: str = ""
    source: Source = Source()
    event_time: datetime | None = None
    confidence: float = 1.0
    decay_rate: float | None = None
    expires_days: float | None = None
    expire_time: datetime | None = None
    """When it expires; a timedelta from now on is taken too, and becomes `expires_days`."""

    def __post_init__(self) -> None:
        """Check every field; InvalidArgument or LimitExceeded names the first that is wrong."""
        put = object.__setattr__
        put(self, "source", self.source.checked())
        if isinstance(self.content, list | tuple):
            raise InvalidArgument(
                f"content must be text, not {type(self.content).__name__}; messages go to append(thread_id, messages),"
                " several statements to add_batch",
                field="content",
            )
        put(self, "content", check_text(self.content, "content", limit=limits.MAX_CONTENT_BYTES, required=True))
        try:
            put(self, "kind", Kind[Kind(self.kind).name])
        except (ValueError, KeyError):
            raise InvalidArgument(
                f"kind is {self.kind!r}; it must be one of {', '.join(kind.value for kind in Kind)}", field="kind"
            ) from None
        if self.kind is Kind.NOTE:
            raise InvalidArgument("kind is note; a note is put by its path: put_note(path, text)", field="kind")
        put(self, "subjects", check_subjects(self.subjects))
        put(self, "tags", check_tags(self.tags))
        put(self, "category", check_text(self.category, "category", limit=limits.MAX_CATEGORY_BYTES).strip())
        put(self, "metadata", check_metadata(self.metadata))
        put(self, "key", check_id(self.key, "key"))
        put(self, "event_time", check_time(self.event_time, "event_time"))
        how_long: object = self.expire_time
        if isinstance(how_long, timedelta) and self.expires_days is None:
            put(self, "expires_days", how_long / timedelta(days=1))
            put(self, "expire_time", None)
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
