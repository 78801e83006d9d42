"""What was learnt and waits to be approved, as rows, and how they are written inside an open transaction."""

from __future__ import annotations

import duckdb

from memoryd.model.change import ChangeSet
from memoryd.store.duckdb.queries import of_owner
from memoryd.store.work_rows import PROPOSAL_COLUMNS, proposal_row

__all__ = ["write_proposals"]


def write_proposals(con: duckdb.DuckDBPyConnection, change: ChangeSet) -> None:
    """Write proposals, and drop those that were decided, or whose messages are purged."""
    for proposal in change.proposals:
        con.execute(
            f"INSERT INTO proposals ({PROPOSAL_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", proposal_row(proposal)
        )
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
