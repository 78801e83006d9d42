"""Graphiti and Zep: edges of the graph as statements, episodes as messages; JSON lists of either."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memoryd.cli.importers.items import Item, Skipped, id_of, label, of_whom, said, stated, time_of
from memoryd.cli.importers.source import Source

__all__ = ["read"]

SPEAKER = re.compile(r"^\s*(?P<name>[^\W\d_][^:\n]{0,60}?)\s*(?:\((?P<role>user|assistant|system)\))?:\s+")
ASSISTANTS = frozenset({"assistant", "ai", "bot", "agent"})


def read(source: Source) -> Iterator[Item]:
    """Yield each edge as a statement, each episode as messages, and what is left out."""
    with source.opened("*.json") as files:
        for _, file in files:
            for number, record in source.records(file, "edges", "facts", "episodes"):
                yield from _record(record, number)


def _record(record: object, number: int) -> Iterator[Item]:
    if isinstance(record, Mapping) and isinstance(record.get("fact"), str):
        yield from _edge(record)
    elif isinstance(record, Mapping) and isinstance(record.get("content"), str) and record.get("uuid"):
        yield from _episode(record)
    else:
        yield Skipped(place=f"item {number}", reason="it is neither edge nor episode")


def _edge(record: Mapping[str, Any]) -> Iterator[Item]:
    held, made = time_of(record.get("valid_at")), time_of(record.get("created_at"))
    ended = time_of(record.get("invalid_at")) or time_of(record.get("expired_at"))
    yield from stated(
        record["fact"],
        record.get("uuid"),
        f"edge {label(record.get('uuid'))}",
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
    for n, (name, role, text) in enumerate(_turns(record["content"])):
        speaker = name if role == "user" else ""
        yield from said(
            thread, f"{record['uuid']}:{n}", text, place, whose=whose, role=role, name=label(speaker), create_time=time
        )


def _turns(content: str) -> Iterator[tuple[str, str, str]]:
    """Yield who says what, with the role, of a text with a name and a colon before each turn."""
    name, role, lines = "", "user", list[str]()
    for line in content.splitlines():
        found = SPEAKER.match(line)
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
