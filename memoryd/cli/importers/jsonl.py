"""
Lines of JSON of memoryd's own, for what no other format fits; docs/import.md has the fields.

{"type": "memory", "content": "I keep bees"}, {"type": "message", "thread": "t", "role": "user", "content": "hello"},
{"type": "note", "path": "plans/summer", "text": "by train"}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memoryd.cli.importers.items import Item, Skipped, digest, kept, of_whom, plain, said, stated, time_of
from memoryd.cli.importers.source import Source
from memoryd.model.memory import Source as Told

__all__ = ["read"]

TYPES = ("memory", "message", "note")


def read(source: Source) -> Iterator[Item]:
    """Yield what each line holds."""
    for number, values in source.lines():
        place = f"line {number}"
        for value in (None,) if values is None else values:
            record = {"content": value} if isinstance(value, str) else value
            if not isinstance(record, Mapping):
                yield Skipped(place=place, reason="it is no object of JSON")
                continue
            kind = record.get("type", "memory")
            if kind == "memory":
                yield from _memory(record, place)
            elif kind == "message":
                yield from _message(record, place)
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
        more[name] = tuple(map(plain, record[name])) if isinstance(record.get(name), list) else ()
    made = time_of(record.get("create_time"))
    yield from stated(
        content,
        record.get("id") or f"content:{digest(content)}",
        place,
        whose=of_whom(record),
        create_time=made,
        event_time=time_of(record.get("event_time")) or made,
        supersede_time=time_of(record.get("supersede_time")),
        expire_time=time_of(record.get("expire_time"), may_come=True),
        source=Told(speaker=plain(record.get("speaker"))),
        metadata=record.get("metadata", {}),
        **more,
    )


def _message(record: Mapping[str, Any], place: str) -> Iterator[Item]:
    thread, content = record.get("thread"), record.get("content")
    if not isinstance(thread, str) or not thread or not isinstance(content, str):
        yield Skipped(place=place, reason="its thread or its content is missing")
        return
    yield from said(
        thread,
        record.get("id") or digest(thread, place, record.get("role"), content),
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
