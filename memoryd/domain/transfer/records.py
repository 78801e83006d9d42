"""
What a line of an export holds: one thing of the store as a JSON object, with its type, without what has its default.

A thread has its summary, its working memory, and how far work has come in it; its sessions and messages follow. No
vector, no secret and no digest is in it: vectors are made again where it is brought in, and a digest counts in its own
store alone.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from memoryd.errors import InvalidArgument
from memoryd.model.conversation import Message, Session, Thread, WorkingMemory
from memoryd.model.entity import Entity
from memoryd.model.grant import Grant
from memoryd.model.memory import Memory
from memoryd.model.note import Note, NoteVersion
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.model.validation import metadata_text

__all__ = [
    "RECORDS",
    "NoteRecord",
    "OwnedText",
    "Record",
    "ThreadRecord",
    "WorkDone",
    "kind_name",
    "read_record",
    "record_line",
]

T = TypeVar("T")
MOST_NUMBER = 1 << 53  # what every reader of JSON takes as it is
_LATER = {"Owner": Owner, "Trust": Trust}  # that a module of the model names only for the types
_LEFT_OUT = {
    (Thread, "revision"),
    (NoteVersion, "id"),
    (Note, "text"),
    (Note, "terms_length"),
    (Session, "lease_by"),
    (Session, "lease_time"),
}
"""What counts in its own store alone."""


@dataclass(frozen=True, slots=True)
class WorkDone:
    """How far a kind of work has come in a thread: what is learnt already is not learnt again elsewhere."""

    kind: str
    seq: int = 0
    """The last message that it is done with."""


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """A thread, without its sessions and messages."""

    thread: Thread
    work: tuple[WorkDone, ...] = ()

    @property
    def id(self) -> str:
        """The thread's."""
        return self.thread.id

    @property
    def owner(self) -> Owner:
        """Whose it is."""
        return self.thread.owner

    @property
    def create_time(self) -> datetime:
        """When the thread was made."""
        return self.thread.create_time


@dataclass(frozen=True, slots=True)
class OwnedText:
    """The working memory of a user or a chat."""

    owner: Owner
    working_memory: WorkingMemory


@dataclass(frozen=True, slots=True)
class NoteRecord:
    """A version of a note: each has a line of its own, as no line may be longer than a message."""

    note: Note
    """Without its versions."""
    version: NoteVersion
    text: str = ""

    @property
    def id(self) -> str:
        """The note's."""
        return self.note.id

    @property
    def key(self) -> tuple[str, int]:
        """The note's id, and the revision."""
        return self.note.id, self.version.revision

    @property
    def owner(self) -> Owner:
        """Whose it is."""
        return self.note.owner

    @property
    def create_time(self) -> datetime:
        """When the note was first put."""
        return self.note.create_time


Record = Grant | ThreadRecord | Session | Message | Memory | Entity | OwnedText | NoteRecord
RECORDS: Mapping[str, type[Any]] = {
    "grant": Grant,
    "thread": ThreadRecord,
    "session": Session,
    "message": Message,
    "memory": Memory,
    "entity": Entity,
    "working_memory": OwnedText,
    "note_version": NoteRecord,
}
"""By the name of the type; an export has them in this order, for each owner all but the first."""
_NAMES = {kind: name for name, kind in RECORDS.items()}


def kind_name(record: Record) -> str:
    """Return the name of its type."""
    return _NAMES[type(record)]


def record_line(record: Record) -> str:
    """Return a line without its end."""
    return json.dumps({"type": _NAMES[type(record)], **_plain(record)}, ensure_ascii=False, separators=(",", ":"))


def read_record(line: str) -> Record:
    """Return what a line holds; InvalidArgument names what is wrong with it."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidArgument("it is no JSON") from None
    if not isinstance(data, dict):
        raise InvalidArgument("it is no JSON object")
    kind = RECORDS.get(data.pop("type", "")) if isinstance(data.get("type", ""), str) else None
    if kind is None:
        raise InvalidArgument(f"its type is none of {', '.join(RECORDS)}", field="type")
    record: Record = _value(kind, data, "")
    return record


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {
            item.name: _plain(getattr(value, item.name))
            for item in fields(value)
            if (type(value), item.name) not in _LEFT_OUT and getattr(value, item.name) != _default(item)
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, frozenset):
        return sorted(map(_plain, value))
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: value[name] for name in sorted(value)}
    return value


def _default(item: Any) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind, localns=_LATER)


def _value(kind: Any, data: Any, name: str) -> Any:
    """Return data as a value of a type; `name` says where it stands. InvalidArgument."""
    if is_dataclass(kind):
        return _object(kind, data, name)  # type: ignore[arg-type]  # it is a type
    origin, args = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        return None if data is None else _value(args[0], data, name)
    if origin in {tuple, frozenset}:
        if not isinstance(data, list):
            raise InvalidArgument(f"{name} must be a list", field=name)
        return origin(_value(args[0], item, f"{name}[{n}]") for n, item in enumerate(data))
    if origin is not None:  # a mapping of texts, or of values of JSON
        texts = args[1] is str
        if not isinstance(data, dict) or not all(
            (isinstance(item, str) or not texts) and _is_storable(name + metadata_text(item))
            for name, item in data.items()
        ):
            raise InvalidArgument(f"{name} must be an object{' of texts' if texts else ''}", field=name)
        return types.MappingProxyType(data)
    return _atom(kind, data, name)


def _atom(kind: Any, data: Any, name: str) -> Any:
    try:
        if kind is datetime:
            time = datetime.fromisoformat(data)
            if time.tzinfo is None:
                raise InvalidArgument(f"{name} has no time zone", field=name)
            return time.astimezone(UTC)
        if issubclass(kind, Enum):
            return kind(data)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{name} is no {kind.__name__} that this memoryd knows", field=name) from None
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        data = float(data)
    if type(data) is not kind or (isinstance(data, str) and not _is_storable(data)):
        raise InvalidArgument(f"{name} must be {kind.__name__}", field=name)
    if isinstance(data, int | float) and not 0 <= data <= MOST_NUMBER:
        raise InvalidArgument(f"{name} is out of range", field=name)
    return data


def _is_storable(text: str) -> bool:
    """Whether a text has neither a null nor a lone half of a character."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _object(kind: type[T], data: Any, name: str) -> T:
    if not isinstance(data, dict):
        raise InvalidArgument(f"{name} must be an object", field=name)
    hints, at = _hints(kind), f"{name}." if name else ""  # type: ignore[arg-type]  # a type is hashable
    unknown = sorted(set(data) - set(hints))
    if unknown:
        raise InvalidArgument(f"{at}{unknown[0]} is not known to this memoryd", field=f"{at}{unknown[0]}")
    values = {field: _value(hints[field], item, f"{at}{field}") for field, item in data.items()}
    try:
        return kind(**values)
    except TypeError:
        missing = [item.name for item in fields(kind) if item.name not in values and _default(item) is MISSING]  # type: ignore[arg-type]
        raise InvalidArgument(f"{at}{missing[0]} is missing", field=f"{at}{missing[0]}") from None
