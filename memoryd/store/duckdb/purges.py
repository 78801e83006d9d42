"""What is erased for good: rows, and what other rows say of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import duckdb

from memoryd.model.change import ChangeSet
from memoryd.model.scope import Owner
from memoryd.store.duckdb.granted_texts import texts_of_threads, texts_of_working_memories
from memoryd.store.duckdb.note_writes import granted_notes
from memoryd.store.duckdb.queries import of_owner
from memoryd.store.duckdb.receipts import forget_names
from memoryd.store.duckdb.usage import UsageChanges
from memoryd.store.ledger import PurgeLedger, PurgeMark

__all__ = ["OWNED", "no_purge", "note_purge", "noted_purge", "purge", "purge_owner", "record_purge"]

OWNED = (
    "memories", "entities", "tombstones", "threads", "sessions", "messages", "long_texts", "message_vectors",
    "working_memories", "work", "proposals", "notes", "note_texts",
)  # fmt: skip
"""Every table whose rows belong to an owner."""


def purge(con: duckdb.DuckDBPyConnection, owner: Owner, ids: list[str]) -> None:
    """Erase memories of an owner by id, and what counts of recalls and receipts of requests say of them."""
    con.execute("DELETE FROM memories WHERE id IN (SELECT unnest(?::VARCHAR[]))", [ids])
    con.execute("DELETE FROM uses WHERE memory_id IN (SELECT unnest(?::VARCHAR[]))", [ids])
    forget_names(con, owner, "thread_id = '' AND id IN (SELECT unnest(?::VARCHAR[]))", [ids])


def purge_owner(con: duckdb.DuckDBPyConnection, owner: Owner, usage: UsageChanges) -> None:
    """Erase all that an owner has, and count it off the usage of grants."""
    where, params = of_owner(owner)
    for table, count in (("memories", "count(*)"), ("messages", "0")):
        for grant_id, day, stored, size in con.execute(
            f"SELECT grant_id, create_time::DATE, {count}, sum(text_bytes)::BIGINT FROM {table}"
            f" WHERE {where} AND grant_id <> '' GROUP BY ALL",
            params,
        ).fetchall():
            usage.add_row(owner, grant_id, day, -stored, -size)
    granted = (texts_of_threads, texts_of_working_memories, granted_notes)
    for grant_id, day, size in (text for texts in granted for text in texts(con, where, params)):
        usage.add_row(owner, grant_id, day, 0, -size)
    ids = [one for (one,) in con.execute(f"SELECT id FROM memories WHERE {where}", params).fetchall()]
    purge(con, owner, ids)
    forget_names(con, owner, "true", [])
    for table in OWNED:
        con.execute(f"DELETE FROM {table} WHERE {where}", params)


def noted_purge(con: duckdb.DuckDBPyConnection) -> PurgeMark:
    """Return the last line of the ledger that a database has carried out."""
    noted = con.execute("SELECT value FROM meta WHERE name = 'purge'").fetchall()
    number, _, digest = noted[0][0].partition(":") if noted else ("0", "", "")
    return PurgeMark(int(number), digest)


def note_purge(con: duckdb.DuckDBPyConnection, mark: PurgeMark) -> None:
    """Note in the open transaction that all purges of the ledger up to a line are carried out."""
    con.execute(
        "INSERT INTO meta VALUES ('purge', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [f"{mark.number}:{mark.digest}"],
    )


def record_purge(
    con: duckdb.DuckDBPyConnection, ledger: PurgeLedger | None, changes: Sequence[ChangeSet], commit_seq: int
) -> Callable[[], None]:
    """
    Write down what the open transaction erases: in the ledger what it is, in the database which purge that is.

    Returns what takes the line back, if nothing is committed. Raises Unavailable as of PurgeLedger.record.
    """
    number = 0 if ledger is None else ledger.record(changes, commit_seq)
    if ledger is None or not number:
        return no_purge
    note_purge(con, ledger.mark)
    return partial(ledger.void, number)


def no_purge() -> None:
    """Take nothing back."""
