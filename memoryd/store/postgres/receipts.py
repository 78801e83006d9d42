"""The notes of requests that were carried out, as statements."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from memoryd.model.change import RecordedRequest
from memoryd.model.receipt import Name
from memoryd.store import rows
from memoryd.store.postgres.statements import Statements, owner_key
from memoryd.store.receipt_rows import name_row, receipt_row

__all__ = ["forget_names", "forget_old_requests", "write_request"]

TYPES = {"owner_id": "uuid", "request_owner": "uuid", "place": "int4", "rank": "int4", "create_time": "timestamp"}


def write_request(statements: Statements, request: RecordedRequest) -> None:
    """Write a request that was carried out, and the ids that its receipt names."""
    row = receipt_row(request)
    key = owner_key(request.owner)
    statements.put("requests", [{"owner_id": key, **row}], TYPES)
    named = [_named(key, row["name"], name) for name in request.receipt.names]
    if named:
        statements.put("request_ids", named, TYPES)


def _named(key: uuid.UUID, request: str, name: Name) -> dict[str, Any]:
    row = name_row(request, name)
    return {"owner_id": owner_key(name.owner), "request_owner": key, **row}


def forget_names(statements: Statements, key: uuid.UUID, where: str, *params: Any) -> None:
    """Forget the ids of an owner that meet a condition, and the requests that are about nothing else."""
    named = f"owner_id = %s AND {where}"
    statements.add(
        f"WITH named AS (SELECT request_owner, request, ctid AS place FROM request_ids WHERE {named}), over AS ("
        " DELETE FROM requests AS r USING (SELECT DISTINCT request_owner, request FROM named) AS n"
        " WHERE r.owner_id = n.request_owner AND r.name = n.request AND NOT EXISTS (SELECT 1 FROM request_ids AS i"
        " WHERE i.request_owner = r.owner_id AND i.request = r.name AND i.rank = 0"
        " AND i.ctid NOT IN (SELECT place FROM named)) RETURNING r.owner_id, r.name)"
        " DELETE FROM request_ids AS i USING over WHERE i.request_owner = over.owner_id AND i.request = over.name",
        key, *params,
    )  # fmt: skip
    statements.add(f"DELETE FROM request_ids WHERE {named}", key, *params)


def forget_old_requests(statements: Statements, before: datetime) -> None:
    """Forget the requests of before a time."""
    statements.add(
        "WITH over AS (DELETE FROM requests WHERE create_time < %s RETURNING owner_id, name)"
        " DELETE FROM request_ids AS i USING over WHERE i.request_owner = over.owner_id AND i.request = over.name",
        rows.naive(before),
    )
