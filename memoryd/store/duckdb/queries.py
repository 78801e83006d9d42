"""What is read from the tables, as SQL. Every query names its owner first."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from memoryd.model.filter_terms import excluded_terms, required_terms, subject_terms
from memoryd.model.memory import Kind
from memoryd.model.query import Filter
from memoryd.model.scope import Owner, Visibility
from memoryd.store.base import Cursor
from memoryd.store.duckdb.rows import MEMORY_COLUMNS, filter_term_pattern, naive

__all__ = [
    "UNENRICHED",
    "UNENRICHED_IN_TURNS",
    "admitted",
    "of_owner",
    "paged",
    "past",
    "select_memories",
    "union_of_owners",
]

Clause = tuple[str, list[Any]]
UNENRICHED = (
    "kind = 'fact' AND delete_time IS NULL AND supersede_time IS NULL AND NOT contains(details, '\"enrich_time\"')"
)

UNENRICHED_IN_TURNS = (
    f'(SELECT * FROM memories WHERE {UNENRICHED} ORDER BY contains(details, \'"trust": "sandbox"\'),'
    " row_number() OVER (PARTITION BY agent_id, user_id, chat_id ORDER BY create_time), create_time LIMIT {})"
)
"""Those of sandboxes last, and of each owner one at a time, so that nobody's flood keeps the others waiting."""


def select_memories(source: str, *more: str) -> str:
    """Return the select of memories from `memories`, or from a select in parentheses, and of more columns of m."""
    columns = ", ".join(
        [*(f"m.{name}" for name in MEMORY_COLUMNS), "u.recall_time", "u.recall_count", "u.trusted_recall_time", *more]
    )
    return f"SELECT {columns} FROM {source} AS m LEFT JOIN uses AS u ON u.memory_id = m.id"


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


def paged(visible: Visibility, wanted: Filter, now: datetime, limit: int, after: Cursor | None) -> Clause:
    """Return the select of one page, newest first."""
    where, params = past(admitted(wanted, now), after)
    tail = f" ORDER BY create_time DESC, id DESC LIMIT {int(limit)}"
    source, values = union_of_owners(visible, (where, params), tail)
    return select_memories(source) + f" ORDER BY m.create_time DESC, m.id DESC LIMIT {int(limit)}", values


def past(condition: Clause, after: Cursor | None) -> Clause:
    """Return the condition narrowed to what comes after a cursor, newest first."""
    where, params = condition
    if after is None:
        return condition
    time = naive(after.create_time)
    return f"{where} AND (create_time < ? OR (create_time = ? AND id < ?))", [*params, time, time, after.id]
