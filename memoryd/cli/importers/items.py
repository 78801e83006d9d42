"""What a file of another system holds, in memoryd's terms, one item after the other."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from memory_client.adapters.texts import clean

from memoryd.errors import MemorydError
from memoryd.model import limits
from memoryd.model.imported import ImportDraft, ImportedNote
from memoryd.model.memory import Draft
from memoryd.model.message_draft import MessageDraft
from memoryd.model.note import NoteDraft

__all__ = [
    "CLAUDE",
    "Item",
    "Kept",
    "Said",
    "Skipped",
    "Statement",
    "digest",
    "guarded",
    "id_of",
    "kept",
    "label",
    "lines_of",
    "metadata_of",
    "objects",
    "of_whom",
    "plain",
    "said",
    "stated",
    "time_of",
    "titled",
    "unreadable",
]

CLAUDE = "memories/"
"""Where Claude's memory tool looks, so that what Claude Code kept is found by it."""
_NO_ONE: Mapping[str, str] = MappingProxyType({})
OWNERS = ("user_id", "agent_id", "chat_id", "group_id")
"""The fields by which files say whose an item is."""
WRONG = (MemorydError, TypeError, ValueError, AttributeError, KeyError, OverflowError, RecursionError)
"""What a field of a file brings about that is not as it should be."""
SECONDS = re.compile(r"\d{9,13}(\.\d{1,9})?")
"""A number of seconds or milliseconds, written as a text."""
LONGEST_TITLE = 500  # characters
LONGEST_TIME = 1e11  # seconds since 1970 from which a number is one of milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item."""

    place: str
    """Where it stands in the file, for people; no content."""
    whose: Mapping[str, str] = field(default_factory=lambda: _NO_ONE)
    """What the file says of whose it is: user_id, agent_id and so on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(Item):
    """A memory."""

    draft: ImportDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Item):
    """A message of a thread."""

    thread_id: str
    draft: MessageDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(Item):
    """A note."""

    note: ImportedNote


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped(Item):
    """What is left out."""

    reason: str


def stated(
    content: object,
    external_id: object,
    place: str,
    *,
    whose: Mapping[str, str] = _NO_ONE,
    create_time: datetime | None = None,
    supersede_time: datetime | None = None,
    superseded_by: str = "",
    **more: Any,
) -> Iterator[Item]:
    """Yield a memory, or why it can be none; further arguments as the fields of Draft."""
    metadata, left_out = metadata_of(more.pop("metadata", {}))
    for name in left_out:
        reason = "its metadata is in part too long, and that part is left out"
        yield Skipped(place=f"{place}, metadata {label(name)}", whose=whose, reason=reason)
    try:
        draft = Draft(content=plain(content), metadata=metadata, **more)
        item = ImportDraft(
            draft=draft,
            external_id=id_of(external_id),
            create_time=create_time,
            supersede_time=supersede_time,
            superseded_by=id_of(superseded_by) if superseded_by else "",
        )
    except WRONG as error:
        yield Skipped(place=place, whose=whose, reason=_reason(error))
        return
    yield Statement(place=place, whose=whose, draft=item)


def guarded(items: Iterator[Item], place: str) -> Iterator[Item]:
    """Yield the items of one record; of what cannot be read of it that it is malformed."""
    try:
        yield from items
    except WRONG:
        yield Skipped(place=place, reason="it is malformed")


def said(
    thread_id: object,
    message_id: object,
    content: object,
    place: str,
    *,
    whose: Mapping[str, str] = _NO_ONE,
    **more: Any,
) -> Iterator[Item]:
    """Yield a message, or why it can be none; further arguments as the fields of MessageDraft."""
    try:
        draft = MessageDraft(id=id_of(message_id), content=plain(content), **more)
    except WRONG as error:
        yield Skipped(place=place, whose=whose, reason=_reason(error))
        return
    yield Said(place=place, whose=whose, thread_id=id_of(thread_id), draft=draft)


def kept(
    path: str,
    content: object,
    place: str,
    *,
    whose: Mapping[str, str] = _NO_ONE,
    create_time: datetime | None = None,
    update_time: datetime | None = None,
) -> Iterator[Item]:
    """Yield a note that searches find, or why it can be none."""
    try:
        draft = NoteDraft.of(path, plain(content) if isinstance(content, str) else content, is_searched=True)
        note = ImportedNote(draft=draft, create_time=create_time, update_time=update_time)
    except WRONG as error:
        yield Skipped(place=place, whose=whose, reason=_reason(error))
        return
    yield Kept(place=place, whose=whose, note=note)


def _reason(error: Exception) -> str:
    """Return why an item is none, in words that are the same for all items and hold nothing of theirs."""
    if not isinstance(error, MemorydError):
        return "one of its fields has a value of a wrong type"
    if error.reason == "LIMIT_EXCEEDED":
        return f"its {error.field or 'content'} is larger than memoryd takes"
    return f"its {error.field or 'content'} is not valid"


def plain(value: object) -> str:
    """Return a text as it can be stored; of what is none its JSON."""
    text = (
        value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    )
    return clean(text, limits.MAX_MESSAGE_BYTES)


def label(value: object, most: int = 60) -> str:
    """Return a name of the file's as it can be shown: one short line of what can be seen."""
    text = "".join(letter if letter.isprintable() else " " for letter in plain(value))
    return text if len(text) <= most else f"{text[:most]}…"


def id_of(value: object) -> str:
    """Return an id as memoryd takes it: the same, or the hash of one that is too long or not printable."""
    text = plain(value)
    if text and text.isprintable() and text == text.strip() and len(text.encode()) <= limits.MAX_ID_BYTES:
        return text
    return f"sha256-{digest(text)}"


def digest(*parts: object) -> str:
    """Return a hash of some values, as 32 hexadecimal digits."""
    return hashlib.sha256("\0".join(map(plain, parts)).encode()).hexdigest()[:32]


def time_of(value: object, *, may_come: bool = False) -> datetime | None:
    """Return a time of ISO 8601, or of seconds or milliseconds since 1970; None for none, or one to come."""
    try:
        if isinstance(value, bool) or value is None:
            return None
        if isinstance(value, str) and SECONDS.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, int | float):
            time = datetime.fromtimestamp(value / 1000 if abs(value) > LONGEST_TIME else value, UTC)
        else:
            time = datetime.fromisoformat(str(value).strip())
            time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return time if may_come or time <= datetime.now(UTC) - timedelta(seconds=1) else None


def unreadable(record: Mapping[str, Any], *names: str) -> str:
    """Return why a record cannot be placed in time: one of its times is given, and cannot be read; "" where none is."""
    given = ((name, record.get(name)) for name in names)
    wrong = (name for name, value in given if value not in (None, "") and time_of(value, may_come=True) is None)
    return next((f"its {name} is no time" for name in wrong), "")


def of_whom(record: Mapping[str, Any]) -> dict[str, str]:
    """Return what a record says of whose it is."""
    return {name: plain(record[name]) for name in OWNERS if record.get(name)}


def metadata_of(values: object) -> tuple[dict[str, Any], list[str]]:
    """Return metadata as memoryd keeps it, and the names of what is too long for it."""
    kept_values: dict[str, Any] = {}
    left_out: list[str] = []
    for name, value in values.items() if isinstance(values, Mapping) else ():
        key, text = plain(name), plain(value)
        if value is None or not text:
            continue
        is_short = 0 < len(key.encode()) <= limits.MAX_METADATA_KEY_BYTES
        if (
            is_short
            and len(text.encode()) <= limits.MAX_METADATA_VALUE_BYTES
            and len(kept_values) < limits.MAX_METADATA_KEYS
        ):
            kept_values[key] = text if isinstance(value, str) else json.loads(text)
        else:
            left_out.append(key)
    return kept_values, left_out


def objects(value: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list that stands in a field; none where it is none."""
    found = value.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def titled(title: object) -> dict[str, str] | str:
    """Return the metadata of a message that a conversation's title stands with; "" where there is none."""
    return {"title": label(title, LONGEST_TITLE)} if isinstance(title, str) and title.strip() else ""


def lines_of(texts: Iterable[str]) -> str:
    """Return texts, each on a line of its own, without those that are empty."""
    return "\n".join(filter(None, texts))
