"""The memory file of the Model Context Protocol's reference server: a graph as lines of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from memoryd.cli.importers.items import Item, Skipped, digest, guarded, label, plain, stated
from memoryd.cli.importers.source import Source

__all__ = ["read"]

A_WHILE = timedelta(minutes=1)  # before the file was written: in it each item has a microsecond of its own


def read(source: Source) -> Iterator[Item]:
    """Yield a statement for each observation, and for each relation."""
    made = datetime.fromtimestamp(int(source.path.stat().st_mtime), UTC)
    count = 0
    for number, value in source.lines():
        entry = _entry(value, f"line {number}", min(made, datetime.now(UTC)), count)
        for item in guarded(entry, f"line {number}"):
            count += 1
            yield item


def _entry(value: object, place: str, made: datetime, count: int) -> Iterator[Item]:
    """Yield what a line says; the file has no times, so what stands later in it was said later."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    if isinstance(value, Mapping) and kind == "entity" and isinstance(value.get("observations"), list):
        name = _name(value.get("name"))
        if not value["observations"]:
            yield Skipped(place=place, reason="the entity has no observation")
        for n, text in enumerate(value["observations"]):
            yield from stated(
                text,
                f"observation:{digest(name, text)}",
                place,
                create_time=made - A_WHILE + timedelta(microseconds=count + n),
                subjects=(name,) if name else (),
                metadata={"entity_type": value.get("entityType")},
            )
    elif isinstance(value, Mapping) and kind == "relation":
        one, other, how = _name(value.get("from")), _name(value.get("to")), _name(value.get("relationType"))
        yield from stated(
            f"{one} {how} {other}".strip(),
            f"relation:{digest(one, how, other)}",
            place,
            create_time=made - A_WHILE + timedelta(microseconds=count),
            subjects=tuple(dict.fromkeys(filter(None, (one, other)))),
        )
    else:
        yield Skipped(place=place, reason="it is damaged" if value is None else "it is neither entity nor relation")


def _name(value: object) -> str:
    """Return a name as people write it: Ilse_Marten is Ilse Marten."""
    return label(plain(value).replace("_", " "), 100).strip() if isinstance(value, str) else ""
