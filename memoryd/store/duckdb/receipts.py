"""
Requests that were carried out, as rows: what was answered in `requests`, the ids that it names in `request_ids`.

So a purge finds by a join what names what goes, and touches rows of its own owner alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import duckdb

from memoryd.errors import Contended
from memoryd.model.change import ChangeSet
from memoryd.model.scope import Owner
from memoryd.store import rows
from memoryd.store.duckdb.queries import of_owner
from memoryd.store.receipt_rows import name_row, receipt_row

__all__ = ["NAMES", "forget_names", "forget_old_requests", "write_requests"]

NAMES = (
    "SELECT place, rank, agent_id, user_id, chat_id, thread_id, id FROM request_ids WHERE request = ?"
    " ORDER BY place, rank"
)
Insert = Callable[[duckdb.DuckDBPyConnection, str, Sequence[dict[str, Any]]], None]


def write_requests(con: duckdb.DuckDBPyConnection, changes: Sequence[ChangeSet], insert: Insert) -> None:
    """Write the receipts of change sets in the open transaction; Contended where a request id is taken."""
    requests = [change.request for change in changes if change.request is not None]
    if not requests:
        return
    made = [receipt_row(request) for request in requests]
    try:
        insert(con, "requests", made)
    except duckdb.ConstraintException:
        raise Contended("a request_id is taken; nothing was written: try again") from None
    named = [
        name_row(row["name"], name)
        for row, request in zip(made, requests, strict=True)
        for name in request.receipt.names
    ]
    if named:
        insert(con, "request_ids", named)


def forget_names(con: duckdb.DuckDBPyConnection, owner: Owner, condition: str, params: Sequence[Any]) -> None:
    """Forget the ids of an owner that meet a condition, and the requests that are about nothing else."""
    where, values = of_owner(owner)
    gone = con.execute(
        f"DELETE FROM request_ids WHERE {where} AND {condition} RETURNING request", [*values, *params]
    ).fetchall()
    if not gone:
        return
    requests = list({name for (name,) in gone})
    over = con.execute(
        "DELETE FROM requests WHERE name IN (SELECT unnest(?::VARCHAR[]))"
        " AND name NOT IN (SELECT request FROM request_ids WHERE rank = 0) RETURNING name",
        [requests],
    ).fetchall()
    if over:
        _forget_names_of(con, [name for (name,) in over])


def forget_old_requests(con: duckdb.DuckDBPyConnection, before: datetime) -> None:
    """Forget the requests of before a time."""
    over = con.execute("DELETE FROM requests WHERE create_time < ? RETURNING name", [rows.naive(before)]).fetchall()
    if over:
        _forget_names_of(con, [name for (name,) in over])


def _forget_names_of(con: duckdb.DuckDBPyConnection, requests: Sequence[str]) -> None:
    con.execute("DELETE FROM request_ids WHERE request IN (SELECT unnest(?::VARCHAR[]))", [list(requests)])
