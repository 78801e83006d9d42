"""The notes of one owner that are searched, read in one transaction: what an index of them is built from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import duckdb
import numpy as np

from memoryd.model import limits
from memoryd.model.change import Entry
from memoryd.model.commits import Snapshot
from memoryd.model.scope import Owner
from memoryd.store.duckdb.note_writes import VECTORS, pieces_of, terms_of
from memoryd.store.duckdb.pieces import bytes_of, reading
from memoryd.store.duckdb.queries import of_owner
from memoryd.store.note_rows import NOTE_COLUMNS, note_of

__all__ = ["read_notes"]

T = TypeVar("T")
AT_ONCE = 256  # notes whose texts are read together: some 30 MiB at the most


def read_notes(cursor: duckdb.DuckDBPyConnection, owner: Owner, build: Callable[[Snapshot], T]) -> T:
    """Call build with a snapshot of an owner's notes, and return its result."""
    where, params = of_owner(owner)
    with reading(cursor) as seq:
        found = cursor.execute(
            f"SELECT {NOTE_COLUMNS}, {VECTORS} FROM notes WHERE {where} AND is_searched ORDER BY commit_seq", params
        ).fetchall()
        entries: list[Entry] = []
        for n in range(0, len(found), AT_ONCE):
            entries += _entries(cursor, found[n : n + AT_ONCE])
        size = sum(len(entry.memory.content) + len(entry.terms) for entry in entries)
        return build(Snapshot(seq, len(entries), size, lambda _: [entries]))


def _entries(cursor: duckdb.DuckDBPyConnection, rows: Sequence[Sequence[Any]]) -> list[Entry]:
    notes = [note_of(row[:-4]) for row in rows]
    heads = [pieces_of(note.now, most=limits.MAX_CONTENT_BYTES) for note in notes]
    words = [terms_of(note) for note in notes]
    select = "SELECT key, text FROM note_texts WHERE key IN (SELECT unnest(?::VARCHAR[]))"
    held = dict(cursor.execute(select, [[key for some in (*heads, *words) for key in some]]).fetchall())
    entries = []
    for note, head, terms, row in zip(notes, heads, words, rows, strict=True):
        fingerprint, vector, tokens, windows = row[-4:]
        memory = note.as_memory("".join(held.get(key, "") for key in head))
        made = None if vector is None else np.frombuffer(bytes_of(vector), dtype=np.float32)
        words_of = "".join(held.get(key, "") for key in terms)
        entries.append(Entry(memory, words_of, made, fingerprint, bytes_of(tokens), bytes_of(windows)))
    return entries
