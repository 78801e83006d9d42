"""What a call answers: one type each, shared by the daemon and the client."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from memoryd.model.memory import Kind, Outcome, ShownMemory, State
from memoryd.model.open_enum import OpenEnum
from memoryd.model.short_repr import ShortRepr

__all__ = [
    "AddResult",
    "Confirmed",
    "Deleted",
    "DeletedMany",
    "History",
    "Hit",
    "Leg",
    "LegScore",
    "MemoryCount",
    "Miss",
    "Page",
    "SearchResult",
    "Stats",
]

WORDS = (
    (0.5, "strong"),
    (0.3, "likely"),
    (0.1, "possible"),
)  # scores from which a hit is called so; docs/benchmarks.md tells how many answered
_OWN = {"internal": True}  # a field that the daemon keeps for itself


class Leg(OpenEnum):
    """One way of finding memories."""

    VECTOR = "vector"
    KEYWORD = "keyword"
    ENTITY = "entity"
    TOKENS = "tokens"
    TIME = "time"
    SPEAKER = "speaker"
    ANSWER = "answer"
    ASSISTANT = "assistant"
    QUESTION = "question"
    EVENT = "event"
    RERANK = "rerank"
    READER = "reader"
    CLASS = "class"


@dataclass(frozen=True, slots=True)
class LegScore:
    """What one leg said of a hit; rank 0 where it did not find it."""

    leg: Leg
    rank: int
    score: float
    weight: float


def strength_of(score: float) -> str:
    """Return a score as a word for people: strong, likely, possible or weak."""
    return next((word for least, word in WORDS if score >= least), "weak")


@dataclass(frozen=True, slots=True, repr=False)
class Hit(ShortRepr):
    """One memory that was found; score and lexical 0–1, similarity −1–1."""

    memory: ShownMemory
    score: float
    similarity: float = 0.0
    lexical: float = 0.0
    explanation: tuple[LegScore, ...] = ()
    same_ids: tuple[str, ...] = ()
    """Of memories that say the same, and are left out for it."""
    said_by_other: bool = False
    """Whether the question names someone who did not say it, and said nothing that answers as well."""
    newer: ShownMemory | None = None
    """The newest statement of equal or higher trust that contests it: what it says may be outdated."""

    @property
    def strength(self) -> str:
        """The score as a word for people: strong, likely, possible or weak."""
        return strength_of(self.score)


@dataclass(frozen=True, slots=True)
class Miss:
    """Why a memory is not among the hits; fields as in `memory.proto`."""

    id: str
    place: int
    score: float
    reasons: tuple[str, ...] = ()
    explanation: tuple[LegScore, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class AddResult(ShortRepr):
    """What became of a statement, and the memory that now says it (None where it was rejected)."""

    outcome: Outcome
    memory: ShownMemory | None
    superseded_ids: tuple[str, ...] = ()
    contested_ids: tuple[str, ...] = ()
    rejection: str = ""
    untaken_fields: tuple[str, ...] = ()
    """Of a REINFORCED one: the fields that came with the repetition and were not taken."""


@dataclass(frozen=True, slots=True)
class ProfileItem:
    """A statement that is always true of the user, or of someone who was named."""

    topic: str
    """name, address, health, instruction, diet, language, home, household, work or dislike."""
    memory: ShownMemory


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


@dataclass(frozen=True, slots=True, repr=False)
class SearchResult(ShortRepr):
    """Hits, best first, the legs that could not take part, and why a memory is missing, if that was asked."""

    hits: tuple[Hit, ...]
    unavailable_legs: tuple[Leg, ...] = ()
    miss: Miss | None = None
    embedding_s: float = field(default=0.0, compare=False, metadata=_OWN)
    """Seconds that the query waited for its embedding."""


@dataclass(frozen=True, slots=True)
class Page:
    """Memories, newest first, and the token of the next page; empty at the end."""

    memories: tuple[ShownMemory, ...]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The ids that went, and until when they can be restored (None: they cannot)."""

    deleted_ids: tuple[str, ...]
    purge_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeletedMany:
    """What went, or would; fields as in DeleteMemoriesResponse."""

    deleted_ids: tuple[str, ...]
    deleted_count: int
    purge_time: datetime | None = None
    memories: tuple[ShownMemory, ...] = ()
    dry_run: bool = False
    backups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """A memory with what it replaced and what replaced it, oldest first, and ids that are no longer there."""

    memories: tuple[ShownMemory, ...]
    missing_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A memory that was confirmed, and what contested it and is superseded now."""

    memory: ShownMemory
    superseded_ids: tuple[str, ...] = ()
