"""What is read of memories, as SQL. What serves callers names its owner first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from memoryd.model.change import Entry
from memoryd.model.filter_terms import entity_terms, excluded_terms, required_terms, subject_terms
from memoryd.model.memory import DECAYED, NO_STATEMENTS, Kind
from memoryd.model.memory_columns import COLUMNS, PLAIN_DETAILS, RECALL_COLUMNS
from memoryd.model.query import Filter
from memoryd.model.scope import Owner, Scope
from memoryd.model.where import All, Exists, Not, OneOf, Where, kind_of
from memoryd.store import rows
from memoryd.store.conversation_rows import MESSAGE_COLUMNS
from memoryd.store.memories import Cursor, MemorySelector, Order, read_cursor, read_owner_place
from memoryd.store.postgres.statements import owner_key

__all__ = [
    "ENTRY", "MESSAGE", "SCANNED", "admitted", "entry_of", "microseconds", "past", "scanned", "select_memories",
    "selected",
]  # fmt: skip

Clause = tuple[str, list[Any]]
UNJUDGED = '"judged": false'
MESSAGE = tuple("0" if name == "piece_count" else f"m.{name}" for name in MESSAGE_COLUMNS)
"""What `message_of` reads of `messages` as m: texts are never in pieces here."""


def microseconds(column: str) -> str:
    """Return the SQL of a time as microseconds since 1970."""
    return f"(extract(epoch FROM {column}) * 1000000)::int8"


def _plain(name: str) -> str:
    table = "u" if name in RECALL_COLUMNS else "m"
    if name == "details":
        return f"nullif(m.details, '{PLAIN_DETAILS}')"
    return microseconds(f"{table}.{name}") if name.endswith("_time") else f"{table}.{name}"


MEMORY = ("m.agent_id", "m.user_id", "m.chat_id", *map(_plain, COLUMNS))
"""What `rows.memory_of` reads of `memories` as m and `uses` as u."""
ENTRY = ("m.terms", "m.fingerprint", "m.vector", "m.token_vectors", "m.window_vectors")
"""What `entry_of` reads after a memory."""


def select_memories(source: str, *more: str) -> str:
    """Return the select of memories from `memories`, or from a select in parentheses, and of more columns of m."""
    join = "LEFT JOIN uses AS u ON u.owner_id = m.owner_id AND u.memory_id = m.id"
    return f"SELECT {', '.join((*MEMORY, *more))} FROM {source} AS m {join}"


def entry_of(row: Sequence[Any]) -> Entry:
    """Return the entry of a row: MEMORY, then ENTRY."""
    *memory, terms, fingerprint, vector, tokens, windows = row
    made = None if vector is None else np.frombuffer(vector, dtype="<f4")
    return Entry(rows.memory_of(memory), terms, made, fingerprint, bytes(tokens or b""), bytes(windows or b""))


def admitted(wanted: Filter, now: datetime) -> Clause:
    """Return the condition that a memory m passes a filter: Filter.admits in SQL."""
    clauses = [*_holding(wanted, now), *_labelled(wanted)]
    for column in ("event_time", "create_time"):
        for end, sign in (("from", ">="), ("to", "<")):
            if (time := getattr(wanted, f"{column}_{end}")) is not None:
                clauses.append((f"m.{column} {sign} %s", [rows.naive(time)]))
    return _all_of(clauses)


def _all_of(clauses: Iterable[Clause]) -> Clause:
    held = [*clauses]
    return " AND ".join(["true", *(where for where, _ in held)]), [value for _, values in held for value in values]


def _holding(wanted: Filter, now: datetime) -> Iterator[Clause]:
    """Yield the conditions that a memory holds now, or at the time that is asked about."""
    yield "m.delete_time IS NULL", []
    as_of = None if wanted.as_of is None else rows.naive(wanted.as_of)
    if not wanted.include_superseded and as_of is None:
        yield "m.supersede_time IS NULL", []
    elif not wanted.include_superseded:
        yield "(m.supersede_time IS NULL OR m.supersede_time > %s)", [as_of]
    if not wanted.include_expired:
        yield "(m.expire_time IS NULL OR m.expire_time > %s)", [as_of or rows.naive(now)]
    if as_of is not None:
        yield "m.create_time <= %s", [as_of]


def _labelled(wanted: Filter) -> Iterator[Clause]:
    """Yield the conditions on kinds, subjects, terms and metadata."""
    if len(wanted.wanted_kinds) < len(Kind):
        yield "m.kind = ANY(%s)", [sorted(kind.value for kind in wanted.wanted_kinds)]
    if wanted.subjects:
        patterns = [rows.filter_term_pattern(term) for term in subject_terms(wanted)]
        yield f"({' OR '.join('strpos(m.facets, %s) > 0' for _ in patterns)})", [*patterns]
    for terms, sign in ((required_terms(wanted), ">"), (excluded_terms(wanted), "=")):
        for term in terms:
            yield f"strpos(m.facets, %s) {sign} 0", [rows.filter_term_pattern(term)]
    if wanted.condition is not None:
        yield _meeting(wanted.condition)


def _meeting(condition: Where) -> Clause:
    """Return the condition on metadata that a filter has, in SQL: never NULL, so that NOT turns it."""
    if isinstance(condition, Not):
        where, params = _meeting(condition.part)
        return f"NOT {where}", params
    if isinstance(condition, All | OneOf):
        parts = [_meeting(part) for part in condition.parts]
        joined = (" AND " if isinstance(condition, All) else " OR ").join(where for where, _ in parts)
        return f"({joined})", [value for _, values in parts for value in values]
    value, path = "m.details::json #> %s::text[]", ["metadata", condition.key]
    if isinstance(condition, Exists):
        return f"({value} IS NOT NULL)", [path]
    kind = kind_of(condition.value)
    is_such = f"coalesce(json_typeof({value}) = '{_JSON_TYPES[kind]}', false)"
    if kind == "null":
        return is_such, [path]
    text = "(m.details::json #>> %s::text[])"
    compared = (
        f"{text}::float8 {condition.op} %s::float8" if kind == "number" else f'{text} COLLATE "C" {condition.op} %s'
    )
    wanted = str(condition.value).lower() if kind == "boolean" else condition.value
    return f"(CASE WHEN {is_such} THEN {compared} ELSE false END)", [path, path, wanted]


_JSON_TYPES = {"text": "string", "number": "number", "boolean": "boolean", "null": "null"}
"""What PostgreSQL calls the types of values, by what they are compared as."""


def past(condition: Clause, after: Cursor | None, *, sign: str = "<") -> Clause:
    """Return the condition narrowed to what comes after a cursor: newest first, with the sign ">" oldest first."""
    where, params = condition
    if after is None:
        return condition
    return f"{where} AND (m.create_time, m.id) {sign} (%s, %s)", [*params, rows.naive(after.create_time), after.id]


def selected(selector: MemorySelector) -> Clause:
    """Return the condition that a selector takes a memory m: MemorySelector.admits in SQL."""
    clauses = [*_named(selector), *_in_state(selector), *_in_time(selector)]
    if selector.not_fingerprint is not None:
        clauses.append(("m.fingerprint <> %s", [selector.not_fingerprint]))
    return _all_of(clauses)


def _named(selector: MemorySelector) -> Iterator[Clause]:
    if selector.owner is not None:
        yield "m.owner_id = %s", [owner_key(selector.owner)]
    if selector.ids is not None:
        yield "m.id = ANY(%s)", [list(selector.ids)]
    if selector.grant_id:
        yield "m.grant_id = %s AND m.grant_id <> ''", [selector.grant_id]
    if selector.naming is not None:
        facets = [rows.filter_term_pattern(term) for term in entity_terms(selector.naming)]
        yield f"({' OR '.join('strpos(m.facets, %s) > 0' for _ in facets) or 'false'})", [*facets]
    if selector.kinds is not None:
        yield "m.kind = ANY(%s)", [sorted(kind.value for kind in selector.kinds)]
    if selector.learnt_from:  # few rows name the thread: of those alone the JSON is read
        told = f'"thread_id": {json.dumps(selector.learnt_from, ensure_ascii=False)}'
        where = "CASE WHEN strpos(m.details, %s) > 0 THEN m.details::json #>> '{source,thread_id}' = %s ELSE false END"
        yield where, [told, selector.learnt_from]


def _in_state(selector: MemorySelector) -> Iterator[Clause]:
    for wanted, column in ((selector.is_deleted, "delete_time"), (selector.is_superseded, "supersede_time")):
        if wanted is not None:
            yield f"m.{column} IS {'NOT ' if wanted else ''}NULL", []
    if selector.is_enriched is not None:
        yield f"strpos(m.details, '\"enrich_time\"') {'>' if selector.is_enriched else '='} 0", []
    if selector.is_judged is not None:  # a quote in a text is escaped: none poses as the field
        yield f"strpos(m.details, '{UNJUDGED}') {'=' if selector.is_judged else '>'} 0", []
    if selector.is_statement:
        yield "NOT m.kind = ANY(%s)", [sorted(kind.value for kind in NO_STATEMENTS)]
        if selector.created_until is not None:
            yield "(m.expire_time IS NULL OR m.expire_time > %s)", [rows.naive(selector.created_until)]


def _in_time(selector: MemorySelector) -> Iterator[Clause]:
    if selector.created_after is not None:
        yield "m.create_time > %s", [rows.naive(selector.created_after)]
    if selector.created_until is not None:
        yield "m.create_time <= %s", [rows.naive(selector.created_until)]
    if selector.ended_after is not None:
        yield "(m.delete_time > %s OR m.supersede_time > %s)", [rows.naive(selector.ended_after)] * 2
    if selector.faded_at is not None:
        as_of = rows.naive(selector.faded_at)
        reason = "m.details::json->>'delete_reason' = %s"
        yield f"m.create_time <= %s AND m.delete_time > %s AND {reason}", [as_of, as_of, DECAYED]


SCANNED = {
    Order.OWNERS: "m.owner_id, m.id",
    Order.NEWEST: "m.create_time DESC, m.id DESC",
    Order.OLDEST: "m.create_time, m.id",
    Order.HAPPENED: "m.event_time, m.id",
    # those of sandboxes last, and of each owner one at a time, so that no one's flood keeps the others waiting
    Order.IN_TURNS: (
        'strpos(m.details, \'"trust": "sandbox"\') > 0,'
        " row_number() OVER (PARTITION BY m.owner_id ORDER BY m.create_time), m.create_time"
    ),
}
"""By what each order sorts."""


def scanned(selector: MemorySelector, limit: int, after: str, order: Order) -> Clause:
    """Return the select of a scan; see MemoryStore.scan."""
    where, params = selected(selector)
    if after and order is Order.OWNERS:
        agent_id, user_id, chat_id, memory_id = read_owner_place(after)
        key = owner_key(Owner(agent_id, Scope(user_id or None, chat_id or None)))
        where, params = f"{where} AND (m.owner_id, m.id) > (%s, %s)", [*params, key, memory_id]
    elif after:
        where, params = past((where, params), read_cursor(after), sign="<" if order is Order.NEWEST else ">")
    most = f" LIMIT {int(limit)}" if limit else ""
    source = f"(SELECT * FROM memories AS m WHERE {where} ORDER BY {SCANNED[order]}{most})"
    told = Order.OLDEST if order is Order.IN_TURNS else order
    return f"{select_memories(source)} ORDER BY {SCANNED[told]}", params
