"""
Notes as rows: one of `notes` each, with what is told of its versions, and pieces of their texts in `note_texts`.

DuckDB reads 2,048 rows at once, however long they are, so no row has a long text (see `long_texts`). A note is found by
a digest of its owner and path, a piece by the id of its version and its number: both are primary keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np

from memoryd.errors import Contended
from memoryd.model import limits
from memoryd.model.change import ChangeSet
from memoryd.model.grant import GrantText
from memoryd.model.note import Note, NoteVersion
from memoryd.model.note_change import NoteChange
from memoryd.model.scope import Owner
from memoryd.store.duckdb.long_texts import PIECE_CHARACTERS, in_pieces
from memoryd.store.note_rows import NOTE_COLUMNS, has_new_terms, note_details, note_name, note_of
from memoryd.store.notes import CHANGED
from memoryd.store.rows import naive

__all__ = ["VECTORS", "granted_notes", "pieces_of", "terms_of", "write_notes"]

VECTORS = "fingerprint, vector, token_vectors, window_vectors"


def write_notes(con: duckdb.DuckDBPyConnection, change: ChangeSet, commit_seq: int) -> None:
    """Write what changes of notes in the open transaction; Contended where one is not as it was."""
    for note in change.notes:
        before, after = note.before, note.after
        _check(con, before, after)
        gone = [key for version in note.gone_versions for key in pieces_of(version)]
        if before is not None and (after is None or has_new_terms(note)):
            gone += terms_of(before)
        if gone:
            con.execute("DELETE FROM note_texts WHERE key IN (SELECT unnest(?::VARCHAR[]))", [gone])
        if after is None:
            if before is not None:
                con.execute("DELETE FROM notes WHERE name = ?", [note_name(before.owner, before.path)])
            continue
        owner = after.owner
        row = [
            after.id, owner.agent_id, owner.scope.user_id, owner.scope.chat_id, after.path, naive(after.create_time),
            naive(after.expire_time), note_details(after), after.now.text_bytes, after.is_searched,
        ]  # fmt: skip
        vectors = _vectors(con, note)
        if before is None or before.path != after.path:
            if before is not None:
                con.execute("DELETE FROM notes WHERE name = ?", [note_name(before.owner, before.path)])
            marks = ", ".join("?" * (len(row) + len(vectors) + 2))
            con.execute(
                f"INSERT INTO notes VALUES ({marks})", [note_name(owner, after.path), *row, *vectors, commit_seq]
            )
        else:
            con.execute(
                "UPDATE notes SET id = ?, create_time = ?, expire_time = ?, details = ?, text_bytes = ?,"
                " is_searched = ?, fingerprint = ?, vector = ?, token_vectors = ?, window_vectors = ?, commit_seq = ?"
                " WHERE name = ?",
                [row[0], *row[5:], *vectors, commit_seq, note_name(owner, after.path)],
            )
        for version_id, text in note.texts.items():
            _write_text(con, after, f"{version_id}:", text, commit_seq)
        if note.entry is not None and has_new_terms(note):
            _write_text(con, after, f"{after.id}:w", note.entry.terms, commit_seq)


def _vectors(con: duckdb.DuckDBPyConnection, note: NoteChange) -> list[Any]:
    """Return the fingerprint of a note and its vectors: new ones, those that it has, or none."""
    entry, before = note.entry, note.before
    if note.after is None or not note.after.is_searched:
        return ["", None, None, None]
    if entry is not None and entry.vector is not None:
        vector = np.asarray(entry.vector, dtype=np.float32).tobytes()
        return [entry.fingerprint, vector, entry.tokens or None, entry.windows or None]
    if before is None or note.loses_vector:
        return ["", None, None, None]
    select = f"SELECT {VECTORS} FROM notes WHERE name = ?"
    return [*con.execute(select, [note_name(before.owner, before.path)]).fetchall()[0]]


def _check(con: duckdb.DuckDBPyConnection, before: Note | None, after: Note | None) -> None:
    if before is not None and _found(con, before.owner, before.path) != before:
        raise Contended(CHANGED)
    is_new = after is not None and (before is None or before.path != after.path)
    if after is not None and is_new and _found(con, after.owner, after.path) is not None:
        raise Contended(CHANGED)


def _found(con: duckdb.DuckDBPyConnection, owner: Owner, path: str) -> Note | None:
    rows = con.execute(f"SELECT {NOTE_COLUMNS} FROM notes WHERE name = ?", [note_name(owner, path)]).fetchall()
    return note_of(rows[0]) if rows else None


def _write_text(con: duckdb.DuckDBPyConnection, note: Note, name: str, text: str, commit_seq: int) -> None:
    owner = note.owner
    pieces = in_pieces(text)
    con.execute(
        "INSERT INTO note_texts SELECT ? || unnest(range(len(?::VARCHAR[]))), ?, ?, ?, unnest(?::VARCHAR[]), ?",
        [name, pieces, owner.agent_id, owner.scope.user_id, owner.scope.chat_id, pieces, commit_seq],
    )


def terms_of(note: Note) -> list[str]:
    """Return the keys of the pieces of a note's words."""
    return [f"{note.id}:w{n}" for n in range(math.ceil(note.terms_length / PIECE_CHARACTERS))]


def pieces_of(version: NoteVersion, *, most: int = limits.MAX_NOTE_BYTES) -> list[str]:
    """Return the keys of the pieces of so many characters, and of more that it has not: each has at least a byte."""
    return [f"{version.id}:{n}" for n in range(math.ceil(min(most, version.text_bytes) / PIECE_CHARACTERS))]


def granted_notes(con: duckdb.DuckDBPyConnection, where: str, params: Sequence[object]) -> list[GrantText]:
    """Return what of some notes counts to the quotas of grants."""
    rows = con.execute(f"SELECT {NOTE_COLUMNS} FROM notes WHERE {where}", params).fetchall()
    return [text for row in rows for text in note_of(row).grant_texts]
