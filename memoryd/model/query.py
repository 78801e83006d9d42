"""What a search or a list asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

from memoryd.errors import InvalidArgument
from memoryd.model import limits
from memoryd.model.memory import NO_STATEMENTS, Kind, Memory
from memoryd.model.validation import (
    check_count,
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
from memoryd.model.where import Where, parse_where

__all__ = ["STATEMENTS", "Filter", "Query"]

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Narrows a search or a list: every field that is set must match. Ranges are half-open [from, to)."""

    kinds: frozenset[Kind] = frozenset()
    subjects: tuple[str, ...] = ()
    entity_ids: frozenset[str] = frozenset()
    """The known entities that the subjects mean; a memory that names one of them passes too."""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    where: str = ""
    """A condition on metadata, as `model.where` reads it; empty: none."""
    category: str = ""
    event_time_from: datetime | None = None
    event_time_to: datetime | None = None
    create_time_from: datetime | None = None
    create_time_to: datetime | None = None
    thread_id: str = ""
    """Of messages: only those of this thread."""
    exclude_thread_ids: tuple[str, ...] = ()
    exclude_session_ids: tuple[str, ...] = ()
    path_prefix: str = ""
    """Of notes: only that of this path, and those below it; nothing else passes."""
    import_id: str = ""
    """Only what came by this import."""
    contested: bool = False
    """Only what another memory contests."""
    source_thread_id: str = ""
    """Only statements that were learnt from this thread."""
    include_expired: bool = False
    include_superseded: bool = False
    as_of: datetime | None = None
    """As things were at a time: without what came later, with what was superseded, corrected or expired later."""

    def __post_init__(self) -> None:
        """Check every field as the memory's own."""
        put = object.__setattr__
        put(self, "subjects", check_subjects(self.subjects, "filter.subjects"))
        put(self, "tags", check_tags(self.tags, "filter.tags"))
        put(self, "metadata", check_metadata(self.metadata, "filter.metadata"))
        put(self, "where", check_text(self.where, "filter.where", limit=limits.MAX_QUERY_BYTES).strip())
        if self.where:
            parse_where(self.where, "filter.where")
        put(self, "category", check_text(self.category, "filter.category", limit=limits.MAX_CATEGORY_BYTES).strip())
        path = check_text(self.path_prefix, "filter.path_prefix", limit=limits.MAX_PATH_BYTES)
        put(self, "path_prefix", path.removesuffix("/"))
        put(self, "source_thread_id", check_id(self.source_thread_id, "filter.source_thread_id"))
        put(self, "import_id", check_id(self.import_id, "filter.import_id"))
        for name in ("event_time", "create_time"):
            start = check_time(getattr(self, f"{name}_from"), f"filter.{name}_from")
            end = check_time(getattr(self, f"{name}_to"), f"filter.{name}_to")
            if start is not None and end is not None and end <= start:
                raise InvalidArgument(f"filter.{name}_to must be later than {name}_from", field=f"filter.{name}_to")
            put(self, f"{name}_from", start)
            put(self, f"{name}_to", end)
        put(self, "as_of", check_time(self.as_of, "as_of"))

    @property
    def wanted_kinds(self) -> frozenset[Kind]:
        """The kinds it lets through: those named, or all statements and reflections."""
        return self.kinds or frozenset(Kind) - {Kind.EPISODE, Kind.NOTE}

    def is_about(self, memory: Memory) -> bool:
        """Whether a memory is about one of the subjects, if there are any, and does not merely mention one."""
        return (
            not self.subjects
            or bool({*map(fold, self.subjects)} & {*map(fold, memory.subjects)})
            or any(mention.about and mention.entity_id in self.entity_ids for mention in memory.mentions)
        )

    def refusals(self, memory: Memory, now: datetime) -> tuple[str, ...]:
        """
        Return what of this filter a memory that is not deleted does not pass, in the words of `Miss.reasons`.

        This is the definition that every store and index must agree with.
        """
        replaced, expires = memory.supersede_time, memory.expire_time
        expired = expires is not None and expires <= (self.as_of or now)
        superseded = replaced is not None and (self.as_of is None or replaced <= self.as_of)
        is_said = memory.kind is Kind.EPISODE  # a statement is in no thread, whatever it was learnt from
        thread_id = memory.source.thread_id if is_said else ""
        happened, created = memory.event_time, memory.create_time
        checks = {
            "superseded": superseded and not self.include_superseded,
            "expired": expired and not self.include_expired,
            "as_of": self.as_of is not None and created > self.as_of,
            "kind": memory.kind not in self.wanted_kinds,
            "subject": not self._names(memory),
            "tag": not set(self.tags) <= set(memory.tags),
            "metadata": not self._has_metadata(memory),
            "where": self.condition is not None and not self.condition.holds(memory.metadata),
            "category": bool(self.category) and self.category != memory.category,
            "event_time": not _within(happened, self.event_time_from, self.event_time_to),
            "create_time": not _within(created, self.create_time_from, self.create_time_to),
            "path": not self._is_below(memory),
            "import": self.import_id not in {"", memory.import_id},
            "contested": self.contested and not memory.contested_with,
            "source": not self._is_learnt(memory),
            "thread": self.thread_id not in {"", thread_id} or (is_said and thread_id in self.exclude_thread_ids),
            "session": is_said and memory.source.session_id in self.exclude_session_ids,
        }
        return tuple(name for name, refused in checks.items() if refused)

    def admits(self, memory: Memory, now: datetime) -> bool:
        """Whether a memory passes."""
        return memory.delete_time is None and not self.refusals(memory, now)

    @property
    def condition(self) -> Where | None:
        """What `where` says; None where it says nothing."""
        return parse_where(self.where, "filter.where") if self.where else None

    def _has_metadata(self, memory: Memory) -> bool:
        """Whether a memory has every key of metadata with exactly the value."""
        known = memory.metadata
        return all(
            key in known and isinstance(known[key], str) is isinstance(value, str)
            and metadata_text(known[key]) == metadata_text(value)
            for key, value in self.metadata.items()
        )  # fmt: skip

    def _is_learnt(self, memory: Memory) -> bool:
        """Whether a memory is a statement that was learnt from the wanted thread; any is where none is wanted."""
        is_statement = memory.kind is not Kind.EPISODE
        return not self.source_thread_id or (is_statement and self.source_thread_id == memory.source.thread_id)

    def _is_below(self, memory: Memory) -> bool:
        """Whether a memory is a note of the wanted path, or below it; any memory is where none is wanted."""
        below = f"{memory.key}/".startswith(f"{self.path_prefix}/")
        return not self.path_prefix or (memory.kind is Kind.NOTE and below)

    def _names(self, memory: Memory) -> bool:
        """Whether a memory is about one of the subjects, or mentions one; any memory does where there are none."""
        return (
            not self.subjects
            or bool({*map(fold, self.subjects)} & {*map(fold, memory.subjects)})
            or any(mention.entity_id in self.entity_ids for mention in memory.mentions)
        )


STATEMENTS = Filter(kinds=frozenset(Kind) - NO_STATEMENTS)


def _within(time: datetime, start: datetime | None, end: datetime | None) -> bool:
    return (start is None or start <= time) and (end is None or time < end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question to the memory, checked."""

    text: str
    limit: int = limits.DEFAULT_SEARCH_LIMIT
    filter: Filter = Filter()
    min_score: float | None = None
    """None: what is below the floor, and so no answer, is left out."""
    explain: bool = False
    strict: bool = False
    """Whether the floor is that of a context, which no one looks through: higher."""
    why_not: str = ""
    """The id, or a prefix, of a memory that should have been found."""
    without_recall: bool = False
    """Whether the hits are not counted as recalled."""

    @property
    def asks_for_messages(self) -> bool:
        """Whether messages are searched besides memories."""
        return Kind.EPISODE in self.filter.kinds

    @property
    def asks_for_notes(self) -> bool:
        """Whether notes are searched besides memories."""
        return Kind.NOTE in self.filter.kinds

    def __post_init__(self) -> None:
        """Check every field; the limit of zero becomes the default."""
        put = object.__setattr__
        put(self, "text", check_text(self.text, "query", limit=limits.MAX_QUERY_BYTES, required=True))
        count = check_count(self.limit, "limit", default=limits.DEFAULT_SEARCH_LIMIT, limit=limits.MAX_SEARCH_LIMIT)
        put(self, "limit", count)
        if self.min_score is not None:
            check_share(self.min_score, "min_score")
