"""What is read from the tables, as SQL. What serves callers names its owner first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from memoryd.model.filter_terms import entity_terms, excluded_terms, required_terms, subject_terms
from memoryd.model.memory import DECAYED, NO_STATEMENTS, Kind
from memoryd.model.query import Filter
from memoryd.model.scope import Owner, Visibility
from memoryd.model.where import All, Exists, Not, OneOf, Where, kind_of
from memoryd.store.duckdb.columns import MEMORY_COLUMNS
from memoryd.store.memories import Cursor, MemorySelector, Order, read_cursor, read_owner_place
from memoryd.store.rows import filter_term_pattern, naive

__all__ = [
    "admitted",
    "of_owner",
    "paged",
    "scanned",
    "select_memories",
    "selected",
    "union_of_owners",
]

Clause = tuple[str, list[Any]]
UNJUDGED = '"judged": false'
_OWNERS = "agent_id, coalesce(user_id, ''), coalesce(chat_id, ''), id"
_ORDERS = {
    Order.OWNERS: _OWNERS,
    Order.NEWEST: "create_time DESC, id DESC",
    Order.OLDEST: "create_time, id",
    Order.HAPPENED: "event_time, id",
    # those of sandboxes last, and of each owner one at a time, so that no one's flood keeps the others waiting
    Order.IN_TURNS: (
        'contains(details, \'"trust": "sandbox"\'),'
        " row_number() OVER (PARTITION BY agent_id, user_id, chat_id ORDER BY create_time), create_time"
    ),
}


def select_memories(source: str, *more: str) -> str:
    """Return the select of memories from `memories`, or from a select in parentheses, and of more columns of m."""
    return f"SELECT {', '.join((*MEMORY_COLUMNS, *more))} FROM {source} AS m LEFT JOIN uses AS u ON u.memory_id = m.id"


def of_owner(owner: Owner) -> Clause:
    """Return the condition that a row belongs to an owner; the columns are the same in every table."""
    if owner.scope.user_id:
        return "agent_id = ? AND user_id = ?", [owner.agent_id, owner.scope.user_id]
    return "agent_id = ? AND chat_id = ?", [owner.agent_id, owner.scope.chat_id]


def union_of_owners(visible: Visibility, condition: Clause, tail: str = "") -> Clause:
    """
    Return a select of the memories that are visible and meet a condition.

    A union of one select an owner: `user_id = ? OR chat_id = ?` would scan the whole table.
    """
    parts, params = [], []
    for owner in visible.owners:
        where, values = of_owner(owner)
        parts.append(f"(SELECT * FROM memories WHERE {where} AND {condition[0]}{tail})")
        params += values + condition[1]
    return f"({' UNION ALL '.join(parts)})", params


def admitted(wanted: Filter, now: datetime) -> Clause:
    """Return the condition that a memory passes a filter: Filter.admits in SQL."""
    conditions = ["delete_time IS NULL"]
    params: list[Any] = []
    if not wanted.include_superseded:
        later = "" if wanted.as_of is None else " OR supersede_time > ?"
        conditions.append(f"(supersede_time IS NULL{later})")
        params += [] if wanted.as_of is None else [naive(wanted.as_of)]
    if not wanted.include_expired:
        conditions.append("(expire_time IS NULL OR expire_time > ?)")
        params.append(naive(wanted.as_of or now))
    if wanted.as_of is not None:
        conditions.append("create_time <= ?")
        params.append(naive(wanted.as_of))
    kinds = wanted.wanted_kinds
    if len(kinds) < len(Kind):
        conditions.append("kind IN (SELECT unnest(?::VARCHAR[]))")
        params.append(sorted(kind.value for kind in kinds))
    if wanted.subjects:
        patterns = [filter_term_pattern(term) for term in subject_terms(wanted)]
        conditions.append(f"({' OR '.join('contains(facets, ?)' for _ in patterns)})")
        params += patterns
    for term in required_terms(wanted):
        conditions.append("contains(facets, ?)")
        params.append(filter_term_pattern(term))
    if wanted.condition is not None:
        meets, values = _meeting(wanted.condition)
        conditions.append(meets)
        params += values
    for term in excluded_terms(wanted):
        conditions.append("NOT contains(facets, ?)")
        params.append(filter_term_pattern(term))
    for column in ("event_time", "create_time"):
        start, end = getattr(wanted, f"{column}_from"), getattr(wanted, f"{column}_to")
        if start is not None:
            conditions.append(f"{column} >= ?")
            params.append(naive(start))
        if end is not None:
            conditions.append(f"{column} < ?")
            params.append(naive(end))
    return " AND ".join(conditions), params


def _meeting(condition: Where) -> Clause:
    """Return the condition on metadata that a filter has, in SQL: never NULL, so that NOT turns it."""
    if isinstance(condition, Not):
        where, params = _meeting(condition.part)
        return f"NOT {where}", params
    if isinstance(condition, All | OneOf):
        parts = [_meeting(part) for part in condition.parts]
        joined = (" AND " if isinstance(condition, All) else " OR ").join(where for where, _ in parts)
        return f"({joined})", [value for _, values in parts for value in values]
    pointer = "/metadata/" + condition.key.replace("~", "~0").replace("/", "~1")
    if isinstance(condition, Exists):
        return "coalesce(json_type(details, ?) IS NOT NULL, false)", [pointer]
    kind = kind_of(condition.value)
    types = ", ".join(f"'{name}'" for name in _JSON_TYPES[kind])
    if kind == "null":
        return f"coalesce(json_type(details, ?) IN ({types}), false)", [pointer]
    value = "json_extract_string(details, ?)"
    compared = f"TRY_CAST({value} AS DOUBLE)" if kind == "number" else value
    wanted = str(condition.value).lower() if kind == "boolean" else condition.value
    where = f"coalesce(json_type(details, ?) IN ({types}) AND {compared} {condition.op} ?, false)"
    return where, [pointer, pointer, wanted]


_JSON_TYPES = {
    "text": ("VARCHAR",),
    "number": ("UBIGINT", "BIGINT", "DOUBLE", "HUGEINT"),
    "boolean": ("BOOLEAN",),
    "null": ("NULL",),
}
"""What DuckDB calls the types of values, by what they are compared as."""


def paged(visible: Visibility, wanted: Filter, now: datetime, limit: int, after: Cursor | None) -> Clause:
    """Return the select of one page, newest first."""
    where, params = past(admitted(wanted, now), after)
    tail = f" ORDER BY create_time DESC, id DESC LIMIT {int(limit)}"
    source, values = union_of_owners(visible, (where, params), tail)
    return select_memories(source) + f" ORDER BY m.create_time DESC, m.id DESC LIMIT {int(limit)}", values


def selected(selector: MemorySelector) -> Clause:
    """Return the condition that a selector takes a memory: MemorySelector.admits in SQL."""
    clauses = [*_named(selector), *_in_state(selector), *_in_time(selector)]
    if selector.not_fingerprint is not None:
        clauses.append(("fingerprint <> ?", [selector.not_fingerprint]))
    return " AND ".join(["true", *(where for where, _ in clauses)]), [
        param for _, params in clauses for param in params
    ]


def _named(selector: MemorySelector) -> Iterator[Clause]:
    if selector.owner is not None:
        yield of_owner(selector.owner)
    if selector.ids is not None and len(selector.ids) == 1:
        yield "id = ?", [*selector.ids]
    elif selector.ids is not None:
        yield "id IN (SELECT unnest(?::VARCHAR[]))", [list(selector.ids)]
    if selector.grant_id:
        yield "grant_id = ?", [selector.grant_id]
    if selector.naming is not None:
        facets = [filter_term_pattern(term) for term in entity_terms(selector.naming)]
        yield f"({' OR '.join('contains(facets, ?)' for _ in facets) or 'false'})", [*facets]
    if selector.kinds is not None:
        yield "kind IN (SELECT unnest(?::VARCHAR[]))", [sorted(kind.value for kind in selector.kinds)]
    if selector.learnt_from:  # few rows name the thread: of those alone the JSON is read
        told = f'"thread_id": {json.dumps(selector.learnt_from, ensure_ascii=False)}'
        yield "contains(details, ?) AND details->>'$.source.thread_id' = ?", [told, selector.learnt_from]


def _in_state(selector: MemorySelector) -> Iterator[Clause]:
    for wanted, column in ((selector.is_deleted, "delete_time"), (selector.is_superseded, "supersede_time")):
        if wanted is not None:
            yield f"{column} IS {'NOT ' if wanted else ''}NULL", []
    if selector.is_enriched is not None:
        yield f"{'' if selector.is_enriched else 'NOT '}contains(details, '\"enrich_time\"')", []
    if selector.is_judged is not None:  # a quote in a text is escaped: none poses as the field
        told = f"COALESCE(contains(details, '{UNJUDGED}'), false)"
        yield f"{'NOT ' if selector.is_judged else ''}{told}", []
    if selector.is_statement:
        yield "kind NOT IN (SELECT unnest(?::VARCHAR[]))", [sorted(kind.value for kind in NO_STATEMENTS)]
        if selector.created_until is not None:
            yield "(expire_time IS NULL OR expire_time > ?)", [naive(selector.created_until)]


def _in_time(selector: MemorySelector) -> Iterator[Clause]:
    if selector.created_after is not None:
        yield "create_time > ?", [naive(selector.created_after)]
    if selector.created_until is not None:
        yield "create_time <= ?", [naive(selector.created_until)]
    if selector.ended_after is not None:
        yield "(delete_time > ? OR supersede_time > ?)", [naive(selector.ended_after)] * 2
    if selector.faded_at is not None:
        as_of = naive(selector.faded_at)
        yield "create_time <= ? AND delete_time > ? AND details->>'$.delete_reason' = ?", [as_of, as_of, DECAYED]


def scanned(selector: MemorySelector, limit: int, after: str, order: Order) -> Clause:
    """Return the select of a scan; see MemoryStore.scan."""
    where, params = selected(selector)
    if after and order is Order.OWNERS:
        where, params = f"{where} AND ({_OWNERS}) > (?, ?, ?, ?)", [*params, *read_owner_place(after)]
    elif after:
        where, params = past((where, params), read_cursor(after), sign="<" if order is Order.NEWEST else ">")
    most = f" LIMIT {int(limit)}" if limit else ""
    source = f"(SELECT * FROM memories WHERE {where} ORDER BY {_ORDERS[order]}{most})"
    told = Order.OLDEST if order is Order.IN_TURNS else order
    return f"{select_memories(source)} ORDER BY {_ORDERS[told]}", params


def past(condition: Clause, after: Cursor | None, *, sign: str = "<") -> Clause:
    """Return the condition narrowed to what comes after a cursor: newest first, with the sign ">" oldest first."""
    where, params = condition
    if after is None:
        return condition
    time = naive(after.create_time)
    place = f"(create_time {sign} ? OR (create_time = ? AND id {sign} ?))"
    return f"{where} AND {place}", [*params, time, time, after.id]
