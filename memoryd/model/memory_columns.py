"""
The columns of a memory, in one table: a store's rows, an index's records and a snapshot's columns derive from it.

A row holds plain values: text, numbers, booleans, microseconds since 1970, None. A field that is added to `Memory` goes
into the column `details` by itself; with a column of its own it stands in OWN_COLUMNS, and a migration makes that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import datetime
from enum import Enum
from operator import attrgetter
from typing import Any, NamedTuple, get_type_hints

from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.memory import Judgement, Kind, Memory, Source
from memoryd.model.scope import Owner
from memoryd.model.times import from_us, to_us
from memoryd.model.trust import Trust

__all__ = ["COLUMNS", "OWN_COLUMNS", "PLAIN_DETAILS", "RECALL_COLUMNS", "memory_of", "row_of"]

Value = Callable[[Any], Any]
_OWNER = frozenset({"agent_id", "scope"})
OWN_COLUMNS = (
    "id", "content", "kind", "key", "create_time", "event_time", "expire_time", "supersede_time", "delete_time",
    "purge_time", "grant_id",
)  # fmt: skip
"""The fields that have a column of their own, as queries compare them."""
RECALL_COLUMNS = ("recall_time", "recall_count", "trusted_recall_time")
"""The fields that are counted apart, as searches change them."""
COLUMNS = (*OWN_COLUMNS, "details", *RECALL_COLUMNS)
"""The columns of a row, in order; whose the memory is stands apart. `details` is None of what PLAIN_DETAILS says."""


class _Codec(NamedTuple):
    """How a field becomes a plain value, and is made of it again; None is always None."""

    write: Value
    read: Value


def _same(value: Any) -> Any:
    return value


def _enum(members: type[Enum]) -> _Codec:
    known = {member.value: member for member in members}
    return _Codec(lambda member: member.value, known.__getitem__)


def _record(made: type[Any]) -> _Codec:
    names = [item.name for item in fields(made)]

    def read(values: Mapping[str, Any]) -> Any:
        return made(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})

    return _Codec(lambda value: {name: getattr(value, name) for name in names}, read)


def _mentions() -> _Codec:
    forms, types = {form.value: form for form in Form}, {kind.value: kind for kind in EntityType}

    def write(mentions: Sequence[Mention]) -> list[list[Any]]:
        return [
            [mention.entity_id, mention.text, mention.form.value, mention.type.value, mention.about, mention.same_as]
            for mention in mentions
        ]

    def read(held: Sequence[Sequence[Any]]) -> tuple[Mention, ...]:
        return tuple(Mention(one, text, forms[form], types[kind], *rest) for one, text, form, kind, *rest in held)

    return _Codec(write, read)


_PLAIN = _Codec(_same, _same)
_CODECS: Mapping[object, _Codec] = {
    str: _PLAIN,
    bool: _PLAIN,
    int: _PLAIN,
    float: _PLAIN,
    float | None: _PLAIN,
    tuple[str, ...]: _Codec(_same, tuple),
    Mapping[str, Any]: _Codec(dict, _same),
    datetime: _Codec(to_us, from_us),
    datetime | None: _Codec(to_us, from_us),
    Kind: _enum(Kind),
    Trust: _enum(Trust),
    Trust | None: _enum(Trust),
    Source: _record(Source),
    Judgement | None: _record(Judgement),
    tuple[Mention, ...]: _mentions(),
}
"""By the type of a field; one of another type is refused when this is imported (KeyError)."""


def _default(item: Field[Any]) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


_TYPES = get_type_hints(Memory)
_FIELDS = {item.name: _CODECS[_TYPES[item.name]] for item in fields(Memory) if item.name not in _OWNER}
_DETAILS = {item.name: _default(item) for item in fields(Memory) if item.name not in {*_OWNER, *COLUMNS}}
"""What is told in `details`, with its default."""
_ALWAYS = ("confidence", "trust")  # told in `details` also at their defaults, and first
_TOLD = tuple(dict.fromkeys((*_ALWAYS, *_DETAILS)))
_WRITTEN = [(name, _FIELDS[name].write, _DETAILS[name]) for name in _TOLD]
_details_of = attrgetter(*_TOLD)
_READ_DETAILS = {name: _FIELDS[name].read for name in _DETAILS}
_COLUMN_CODECS = [(name, *_FIELDS[name]) for name in COLUMNS if name in _FIELDS and _FIELDS[name] is not _PLAIN]
_PLACES = [(COLUMNS.index(name), write) for name, write, _ in _COLUMN_CODECS]
_own_columns_of, _recalls_of = attrgetter(*OWN_COLUMNS), attrgetter(*RECALL_COLUMNS)


def _details(memory: Memory) -> str | None:
    """Return what no query compares, as JSON without what is at its default; None where nothing is otherwise."""
    told = [
        (name, write(value))
        for (name, write, default), value in zip(_WRITTEN, _details_of(memory), strict=True)
        if value is not default and value != default
    ]
    if not told:
        return None
    always = ((name, _FIELDS[name].write(getattr(memory, name))) for name in _ALWAYS)
    return json.dumps(dict((*always, *told)), ensure_ascii=False)


PLAIN_DETAILS = json.dumps({name: _FIELDS[name].write(_DETAILS[name]) for name in _ALWAYS})
"""What most memories have in `details`."""


def row_of(memory: Memory) -> tuple[Any, ...]:
    """Return a memory as its COLUMNS."""
    row = [*_own_columns_of(memory), _details(memory), *_recalls_of(memory)]
    for place, write in _PLACES:
        if row[place] is not None:
            row[place] = write(row[place])
    return tuple(row)


def memory_of(owner: Owner, row: Sequence[Any]) -> Memory:
    """Return the memory of an owner whose COLUMNS these are."""
    values = dict(zip(COLUMNS, row, strict=True))
    for name, _, read in _COLUMN_CODECS:
        if values[name] is not None:
            values[name] = read(values[name])
    values["recall_count"] = values["recall_count"] or 0
    details = values.pop("details")
    for name, value in () if details is None else json.loads(details).items():
        if name in _READ_DETAILS:
            values[name] = _READ_DETAILS[name](value)
    return Memory(agent_id=owner.agent_id, scope=owner.scope, **values)
