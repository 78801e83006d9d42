"""Requests that were carried out as rows, and the ids that each names as rows of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from memoryd.model.change import RecordedRequest
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
from memoryd.store import rows
from memoryd.store.conversation_rows import owner_columns

__all__ = ["name_row", "receipt_row", "recorded_of"]


def receipt_row(request: RecordedRequest) -> dict[str, Any]:
    """Return a request as a row of `requests`."""
    return {
        "name": rows.request_name(request.owner, request.method, request.request_id),
        "answer": json.dumps({"payload_hash": request.payload_hash, **_body_of(request.receipt)}),
        "create_time": rows.naive(request.create_time),
    }


def name_row(request: str, name: Name) -> dict[str, Any]:
    """Return an id that a request names as a row of `request_ids`."""
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
    """Return the request of a row, with the rows of the ids that it names: place, rank, owner, thread and id."""
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
