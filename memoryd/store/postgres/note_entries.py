"""The notes of one owner that are searched, read in one transaction: what an index of them is built from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import psycopg

from memoryd.model.change import Entry
from memoryd.model.commits import Snapshot
from memoryd.model.scope import Owner
from memoryd.store.note_rows import NOTE_COLUMNS, note_of
from memoryd.store.postgres.connect import Row
from memoryd.store.postgres.statements import NOTES, owner_key

__all__ = ["SELECT_ENTRIES", "note_entry", "read_notes"]

T = TypeVar("T")
_COLUMNS = ", ".join(f"n.{name}" for name in NOTE_COLUMNS.split(", "))
SELECT_ENTRIES = (
    f"SELECT {_COLUMNS}, n.terms, n.fingerprint, n.vector, n.token_vectors, n.window_vectors, t.text, n.insert_seq,"
    " n.vector_seq FROM notes AS n LEFT JOIN note_texts AS t ON t.owner_id = n.owner_id"
    " AND t.version_id = n.details::json->'versions'->0->>7 WHERE n.owner_id = %s AND n.is_searched"
)
"""What `note_entry` reads of the notes that are searched, and when each got in and got its vector."""


def note_entry(row: Row) -> Entry:
    """Return the entry of a row of SELECT_ENTRIES."""
    *note, terms, fingerprint, vector, tokens, windows, text, _, _ = row
    made = None if vector is None else np.frombuffer(vector, dtype="<f4")
    memory = note_of(note).as_memory(text or "")
    return Entry(memory, terms, made, fingerprint, bytes(tokens or b""), bytes(windows or b""))


def read_notes(connect: Callable[[], psycopg.Connection[Row]], owner: Owner, build: Callable[[Snapshot], T]) -> T:
    """Call build with a snapshot of an owner's notes, and return its result."""
    con, key = connect(), owner_key(owner)
    with con.transaction():
        head = con.execute("SELECT commit_seq FROM heads WHERE owner_id = %s AND feed = %s", [key, NOTES]).fetchone()
        cursor = con.cursor(binary=True)
        found = cursor.execute(f"{SELECT_ENTRIES} ORDER BY n.commit_seq".encode(), [key]).fetchall()
        entries = [note_entry(row) for row in found]
        size = sum(len(entry.memory.content) + len(entry.terms) for entry in entries)
        return build(Snapshot(head[0] if head else 0, len(entries), size, lambda _: [entries]))
