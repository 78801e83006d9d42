"""What was learnt and waits to be approved, as rows, and how they are written inside an open transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from memoryd.model.change import ChangeSet
from memoryd.model.learnt import Proposal
from memoryd.model.memory import Kind
from memoryd.model.scope import Scope
from memoryd.model.times import from_us, to_us
from memoryd.model.trust import Trust
from memoryd.store.duckdb import rows
from memoryd.store.duckdb.conversation_rows import owner_columns
from memoryd.store.duckdb.queries import of_owner

__all__ = ["COLUMNS", "proposal_of", "write_proposals"]

COLUMNS = "id, agent_id, user_id, chat_id, thread_id, message_ids, content, create_time, details"
_TIMES = ("event_time", "expire_time")
_TEXTS = ("session_id", "category", "confidence", "speaker")
_DOORS = ("grant_id", "author")


def proposal_of(row: Sequence[Any]) -> Proposal:
    """Return the proposal of a row: COLUMNS."""
    one_id, agent_id, user_id, chat_id, thread_id, message_ids, content, create_time, details = row
    values = json.loads(details)
    return Proposal(
        id=one_id,
        agent_id=agent_id,
        scope=Scope(user_id=user_id, chat_id=chat_id),
        thread_id=thread_id,
        message_ids=tuple(json.loads(message_ids)),
        content=content,
        create_time=rows.aware(create_time),
        kind=Kind(values["kind"]),
        trust=Trust(values["trust"]),
        subjects=tuple(values["subjects"]),
        tags=tuple(values["tags"]),
        metadata=values["metadata"],
        **_values(values),
    )


def _values(values: Mapping[str, Any]) -> dict[str, Any]:
    times = {name: None if values[name] is None else from_us(values[name]) for name in _TIMES}
    doors = {name: values.get(name, "") for name in _DOORS}  # those of before did not say
    return {**{name: values[name] for name in _TEXTS}, **times, **doors}


def _row_of(proposal: Proposal) -> list[Any]:
    details: dict[str, Any] = {name: getattr(proposal, name) for name in (*_TEXTS, *_DOORS)}
    details |= {name: None if (time := getattr(proposal, name)) is None else to_us(time) for name in _TIMES}
    details |= {"kind": proposal.kind.value, "trust": proposal.trust.value, "metadata": dict(proposal.metadata)}
    details |= {"subjects": list(proposal.subjects), "tags": list(proposal.tags)}
    owner = owner_columns(proposal.agent_id, proposal.scope)
    return [
        proposal.id, owner["agent_id"], owner["user_id"], owner["chat_id"], proposal.thread_id,
        json.dumps(proposal.message_ids), proposal.content, rows.naive(proposal.create_time),
        json.dumps(details, ensure_ascii=False),
    ]  # fmt: skip


def write_proposals(con: duckdb.DuckDBPyConnection, change: ChangeSet) -> None:
    """Write proposals, and drop those that were decided, or whose messages are purged."""
    for proposal in change.proposals:
        con.execute(f"INSERT INTO proposals ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _row_of(proposal))
    if change.decided:
        ids = [proposal.id for proposal in change.decided]
        con.execute("DELETE FROM proposals WHERE id IN (SELECT unnest(?::VARCHAR[]))", [ids])
    talk = change.conversation
    if talk is None or not (talk.purge_threads or talk.purge_messages):
        return
    where, params = of_owner(talk.owner)
    threads = [thread.id for thread in talk.purge_threads]
    con.execute(
        f"DELETE FROM proposals WHERE {where} AND thread_id IN (SELECT unnest(?::VARCHAR[]))", [*params, threads]
    )
    messages: dict[str, list[str]] = {}
    for message in talk.purge_messages:
        messages.setdefault(message.thread_id, []).append(message.id)
    for thread_id, ids in messages.items():  # an id is of its thread alone
        con.execute(
            f"DELETE FROM proposals WHERE {where} AND thread_id = ?"
            " AND list_has_any(message_ids->>'$[*]', ?::VARCHAR[])",
            [*params, thread_id, ids],
        )
