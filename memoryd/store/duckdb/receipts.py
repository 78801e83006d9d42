"""
Requests that were carried out, as rows: what was answered in `requests`, the ids that it names in `request_ids`.

So a purge finds by a join what names what goes, and touches rows of its own owner alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb

from memoryd.errors import Contended
from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.memory import Outcome
from memoryd.model.receipt import (
    AddReceipt,
    AppendReceipt,
    MemoriesReceipt,
    MemoryRef,
    Name,
    Receipt,
    Rejection,
    StatementOutcome,
)
from memoryd.model.scope import Owner, Scope
from memoryd.model.talk import AppendedMessage
from memoryd.model.times import from_us, to_us
from memoryd.store.duckdb import rows
from memoryd.store.duckdb.conversation_rows import owner_columns
from memoryd.store.duckdb.queries import of_owner

__all__ = ["NAMES", "forget_names", "forget_old_requests", "recorded_of", "write_requests"]

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
    made = [_row_of(request) for request in requests]
    try:
        insert(con, "requests", made)
    except duckdb.ConstraintException:
        raise Contended("a request_id is taken; nothing was written: try again") from None
    named = [
        _name_row(row["name"], name)
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


def _row_of(request: RecordedRequest) -> dict[str, Any]:
    return {
        "name": rows.request_name(request.owner, request.method, request.request_id),
        "answer": json.dumps({"payload_hash": request.payload_hash, **_body_of(request.receipt)}),
        "create_time": rows.naive(request.create_time),
    }


def _name_row(request: str, name: Name) -> dict[str, Any]:
    return {
        "request": request,
        "place": name.place,
        "rank": name.rank,
        **owner_columns(name.owner.agent_id, name.owner.scope),
        "thread_id": name.thread_id,
        "id": name.id,
    }


def _body_of(receipt: Receipt) -> dict[str, Any]:
    """Return what a receipt holds besides ids."""
    if isinstance(receipt, AddReceipt):
        told = [
            [
                outcome.outcome.value,
                outcome.untaken_fields,
                None if outcome.rejection is None else outcome.rejection.value,
            ]
            for outcome in receipt.statements
        ]
        return {"kind": "add", "statements": told}
    if isinstance(receipt, AppendReceipt):
        messages = [[message.seq, to_us(message.create_time), message.masked] for message in receipt.messages]
        return {"kind": "append", "session_id": receipt.session_id, "messages": messages}
    return {"kind": "memories"}


def recorded_of(
    owner: Owner,
    method: str,
    request_id: str,
    answer: str,
    create_time: datetime,
    *,
    named: Sequence[Sequence[Any]],
) -> RecordedRequest:
    """Return the request of a row, with the rows of the ids that it names: NAMES."""
    values = json.loads(answer)
    names = [
        Name(place, rank, Owner(agent, Scope(user, chat)), *rest) for place, rank, agent, user, chat, *rest in named
    ]
    receipt = _READ[values["kind"]](values, names)
    return RecordedRequest(owner, method, request_id, values["payload_hash"], receipt, create_time.replace(tzinfo=UTC))


def _added(values: dict[str, Any], names: Sequence[Name]) -> AddReceipt:
    of: dict[int, list[Name]] = {}
    for name in names:
        of.setdefault(name.place, []).append(name)
    return AddReceipt(
        tuple(
            StatementOutcome(
                Outcome(outcome),
                next((name.owner for name in of.get(place, ())), None),
                next((name.id for name in of.get(place, ()) if name.rank == 0), ""),
                tuple(name.id for name in of.get(place, ()) if name.rank),
                tuple(untaken),
                None if why is None else Rejection(why),
            )
            for place, (outcome, untaken, why) in enumerate(values["statements"])
        )
    )


def _appended(values: dict[str, Any], names: Sequence[Name]) -> AppendReceipt:
    ids = {name.place: name.id for name in names}
    messages = tuple(
        AppendedMessage(ids.get(place, ""), seq, from_us(created), masked)
        for place, (seq, created, masked) in enumerate(values["messages"])
    )
    return AppendReceipt(names[0].owner, names[0].thread_id, values["session_id"], messages)


def _memories(_: dict[str, Any], names: Sequence[Name]) -> MemoriesReceipt:
    return MemoriesReceipt(tuple(MemoryRef(name.owner, name.id) for name in names))


_READ: dict[str, Callable[[dict[str, Any], Sequence[Name]], Receipt]] = {
    "add": _added,
    "append": _appended,
    "memories": _memories,
}
