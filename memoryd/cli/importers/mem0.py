"""mem0: what `get_all()` returns, as JSON, and its database of history."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from urllib.parse import parse_qsl

from memoryd.cli.importers.items import Item, Skipped, guarded, label, of_whom, plain, said, stated, time_of, unreadable
from memoryd.cli.importers.source import Source

__all__ = ["read"]

TOLD = ("run_id", "agent_id", "app_id")
"""What says of a memory where it is from, and becomes its metadata."""


def read(source: Source) -> Iterator[Item]:
    """Yield the memories, or from the database what they were before; and what is left out."""
    if source.is_database:
        with source.database() as con:
            yield from _history(source, con)
            yield from _messages(source, con)
        return
    with source.opened("*.json") as files:
        for _, file in files:
            for number, record in source.records(file, "results", "memories"):
                yield from guarded(_memory(record, number), f"item {number}")


def _memory(record: object, number: int) -> Iterator[Item]:
    text = record.get("memory") or record.get("text") if isinstance(record, Mapping) else None
    if not isinstance(record, Mapping) or not isinstance(text, str) or not record.get("id"):
        yield Skipped(place=f"item {number}", reason="it is no memory of mem0")
        return
    place, whose = f"memory {label(record['id'])}", of_whom(record)
    wrong = unreadable(record, "created_at", "updated_at")
    if wrong:
        yield Skipped(place=place, whose=whose, reason=wrong)
        return
    made, changed = time_of(record.get("created_at")), time_of(record.get("updated_at"))
    told = record.get("metadata")
    metadata = {**(told if isinstance(told, Mapping) else {}), **{n: record[n] for n in TOLD if record.get(n)}}
    category = metadata.pop("category", "")
    named = record.get("categories")
    yield from stated(
        text,
        record["id"],
        place,
        whose=whose,
        create_time=made or changed,
        event_time=changed or made,  # since then it says this
        expire_time=_end_of(record.get("expiration_date")),
        category=category if isinstance(category, str) else plain(category),
        tags=tuple(dict.fromkeys(map(plain, named))) if isinstance(named, list) else (),
        metadata=metadata,
    )


def _end_of(day: object) -> datetime | None:
    """Return when a day is over; None for what is none."""
    try:
        last = date.fromisoformat(str(day)[:10])
        return datetime.combine(last, time(), UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        return None


# --- the database ---


def _history(source: Source, con: sqlite3.Connection) -> Iterator[Item]:
    """Yield each memory as it is at the end, and each former text as superseded by the next."""
    chains: dict[str, list[dict[str, Any]]] = {}
    for row in source.rows(con, "history"):
        chains.setdefault(plain(row["memory_id"]), []).append(row)
    for memory_id, rows in sorted(chains.items()):
        rows.sort(key=lambda row: plain(row["updated_at"] or row["created_at"]))
        yield from guarded(_chain(memory_id, rows), f"memory {label(memory_id)}")


def _chain(memory_id: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[Item]:
    place = f"memory {label(memory_id)}"
    if rows[-1]["event"] == "DELETE" or rows[-1]["is_deleted"]:
        yield Skipped(place=place, reason="it was deleted there")
        return
    texts = [(row["new_memory"], time_of(row["updated_at"]) or time_of(row["created_at"])) for row in rows]
    texts = [(text, since) for text, since in texts if isinstance(text, str) and text.strip()]
    for n, (text, since) in reversed(list(enumerate(texts))):  # the heir before what it has replaced
        is_last = n + 1 == len(texts)
        ended = None if is_last else texts[n + 1][1]
        if not is_last and ended is None:
            yield Skipped(place=place, reason="it was replaced there, and the time of that is missing")
            continue
        yield from stated(
            text,
            memory_id if is_last else f"{memory_id}#{n}",
            place,
            create_time=texts[0][1] if is_last else since,
            event_time=since,
            supersede_time=ended,
            superseded_by="" if is_last else memory_id if n + 2 == len(texts) else f"{memory_id}#{n + 1}",
        )


def _messages(source: Source, con: sqlite3.Connection) -> Iterator[Item]:
    if "messages" not in source.tables():
        return
    rows = sorted(source.rows(con, "messages"), key=lambda row: plain(row["created_at"]))
    for row in rows:
        yield from guarded(_message(row), f"message {label(row['id'])}")


def _message(row: Mapping[str, Any]) -> Iterator[Item]:
    scope: dict[str, Any] = dict(parse_qsl(plain(row["session_scope"])))
    yield from said(
        f"mem0:{row['session_scope'] or 'messages'}",
        row["id"],
        row["content"],
        f"message {label(row['id'])}",
        whose=of_whom(scope),
        role=row["role"] or "user",
        create_time=time_of(row["created_at"]),
    )
