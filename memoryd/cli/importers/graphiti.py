"""Graphiti and Zep: edges of the graph as statements, episodes as messages; JSON lists of either."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memoryd.cli.importers.items import (
    Item,
    Skipped,
    digest,
    guarded,
    id_of,
    label,
    of_whom,
    said,
    stated,
    time_of,
    unreadable,
)
from memoryd.cli.importers.source import Source

__all__ = ["read"]

SPEAKER = re.compile(r"^\s*(?P<name>[^\W\d_][^:\n]{0,60}?)\s*(?:\((?P<role>user|assistant|system)\))?:\s+")
ROLES = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool", "function": "tool"}
"""What Zep calls the role of a message."""
LONGEST_NAME = 100  # characters of a line in which a speaker is named
ASSISTANTS = frozenset({"assistant", "ai", "bot", "agent"})


def read(source: Source) -> Iterator[Item]:
    """Yield each edge as a statement, each episode as messages, and what is left out."""
    with source.opened("*.json") as files:
        for _, file in files:
            for number, record in source.records(file, "edges", "facts", "episodes"):
                yield from guarded(_record(record, number), f"item {number}")


def _record(record: object, number: int) -> Iterator[Item]:
    if isinstance(record, Mapping) and isinstance(record.get("fact"), str):
        yield from _edge(record)
    elif isinstance(record, Mapping) and isinstance(record.get("content"), str) and record.get("uuid"):
        yield from _episode(record)
    else:
        yield Skipped(place=f"item {number}", reason="it is neither edge nor episode")


def _edge(record: Mapping[str, Any]) -> Iterator[Item]:
    held, made = time_of(record.get("valid_at"), may_come=True), time_of(record.get("created_at"))
    ended = time_of(record.get("invalid_at")) or time_of(record.get("expired_at"))
    if made is not None and ended is not None:
        made = min(made, ended, *((held,) if held is not None else ()))  # it was taken in after it had ended
    wrong = unreadable(record, "valid_at", "created_at", "invalid_at", "expired_at")
    if wrong:
        yield Skipped(place=f"edge {label(record.get('uuid'))}", whose=of_whom(record), reason=wrong)
        return
    name = record.get("uuid") or f"fact:{digest(record['fact'], record.get('valid_at'))}"
    yield from stated(
        record["fact"],
        name,
        f"edge {label(name)}",
        whose=of_whom(record),
        create_time=made,
        event_time=held or made,
        supersede_time=ended,
        metadata={"relation": record.get("name")},
    )


def _episode(record: Mapping[str, Any]) -> Iterator[Item]:
    whose = of_whom(record)
    place = f"episode {label(record['uuid'])}"
    if record.get("source") == "json":
        yield Skipped(place=place, whose=whose, reason="it is data, and not said by anyone")
        return
    time = time_of(record.get("valid_at")) or time_of(record.get("created_at"))
    thread = f"graphiti:{id_of(record.get('group_id') or 'episodes')}"
    given = ROLES.get(str(record.get("role_type")))
    turns = _turns(record["content"]) if given is None else [(str(record.get("role") or ""), given, record["content"])]
    for n, (name, role, text) in enumerate(turns):
        speaker = name if role == "user" else ""
        yield from said(
            thread, f"{record['uuid']}:{n}", text, place, whose=whose, role=role, name=label(speaker), create_time=time
        )


def _turns(content: str) -> Iterator[tuple[str, str, str]]:
    """Yield who says what, with the role, of a text with a name and a colon before each turn."""
    name, role, lines = "", "user", list[str]()
    for line in content.splitlines():
        found = SPEAKER.match(line[:LONGEST_NAME])
        if found is None:
            lines.append(line)
            continue
        if "".join(lines).strip():
            yield name, role, "\n".join(lines)
        name, given = found["name"], found["role"]
        role = given or ("assistant" if name.casefold() in ASSISTANTS else "user")
        lines = [line[found.end() :]]
    if "".join(lines).strip():
        yield name, role, "\n".join(lines)
