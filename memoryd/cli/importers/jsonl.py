"""
Lines of JSON of memoryd's own, for what no other format fits; docs/import.md has the fields.

{"type": "memory", "content": "I keep bees"}, {"type": "message", "thread": "t", "role": "user", "content": "hello"},
{"type": "note", "path": "plans/summer", "text": "by train"}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from memoryd.cli.importers.items import (
    Item,
    Skipped,
    digest,
    guarded,
    kept,
    of_whom,
    plain,
    said,
    stated,
    time_of,
    unreadable,
)
from memoryd.cli.importers.source import Source
from memoryd.model.memory import Source as Told

__all__ = ["read"]

TYPES = ("memory", "message", "note")
ROLES = ("user", "assistant")
TIMES = ("create_time", "update_time", "event_time", "expire_time", "supersede_time")


def read(source: Source) -> Iterator[Item]:
    """Yield what each line holds."""
    seen: Counter[str] = Counter()
    for number, value in source.lines():
        yield from guarded(_line(value, f"line {number}", seen), f"line {number}")


def _line(value: object, place: str, seen: Counter[str]) -> Iterator[Item]:
    record = {"content": value} if isinstance(value, str) else value
    if not isinstance(record, Mapping):
        yield Skipped(place=place, reason="it is no object of JSON, and no text in quotes")
        return
    wrong = unreadable(record, *TIMES)
    kind = record.get("type", "memory")
    if wrong:
        yield Skipped(place=place, whose=of_whom(record), reason=wrong)
    elif kind == "memory":
        yield from _memory(record, place)
    elif kind == "message":
        yield from _message(record, place, seen)
    elif kind == "note":
        yield from _note(record, place)
    else:
        yield Skipped(place=place, reason=f"its type is none of {', '.join(TYPES)}")


def _memory(record: Mapping[str, Any], place: str) -> Iterator[Item]:
    content = record.get("content")
    if not isinstance(content, str):
        yield Skipped(place=place, reason="its content is missing")
        return
    more: dict[str, Any] = {name: record[name] for name in ("kind", "confidence", "category", "key") if name in record}
    for name in ("subjects", "tags"):
        given = record.get(name) or ()
        more[name] = (given,) if isinstance(given, str) else tuple(map(plain, given))
    made = time_of(record.get("create_time"))
    yield from stated(
        content,
        record.get("id") or f"content:{digest(content)}",
        place,
        whose=of_whom(record),
        create_time=made,
        event_time=time_of(record.get("event_time"), may_come=True) or made,
        supersede_time=time_of(record.get("supersede_time")),
        expire_time=time_of(record.get("expire_time"), may_come=True),
        source=Told(speaker=plain(record.get("speaker"))),
        metadata=record.get("metadata", {}),
        **more,
    )


def _message(record: Mapping[str, Any], place: str, seen: Counter[str]) -> Iterator[Item]:
    thread, content = record.get("thread"), record.get("content")
    if not isinstance(thread, str) or not thread or not isinstance(content, str):
        yield Skipped(place=place, reason="its thread or its content is missing")
        return
    if record.get("role", "user") not in ROLES:
        yield Skipped(place=place, reason="its role is neither user nor assistant")
        return
    named = digest(thread, record.get("role"), content, record.get("create_time"))
    seen[named] += 1  # what is said twice is said twice, wherever it stands
    yield from said(
        f"jsonl:{thread}",  # a thread of its own: no file speaks in a conversation that is under way
        record.get("id") or f"{named}:{seen[named]}",
        content,
        place,
        whose=of_whom(record),
        role=record.get("role", "user"),
        name=plain(record.get("name")),
        create_time=time_of(record.get("create_time")),
    )


def _note(record: Mapping[str, Any], place: str) -> Iterator[Item]:
    content = record.get("text", record.get("value"))
    if not isinstance(record.get("path"), str) or content is None:
        yield Skipped(place=place, reason="its path, or its text or value, is missing")
        return
    yield from kept(
        record["path"],
        content,
        place,
        whose=of_whom(record),
        create_time=time_of(record.get("create_time")),
        update_time=time_of(record.get("update_time")),
    )
