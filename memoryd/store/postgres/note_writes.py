"""What changes of notes, as statements."""

from __future__ import annotations

import uuid
from typing import Any

from memoryd.model.change import ChangeSet
from memoryd.model.note import Note
from memoryd.model.note_change import NoteChange
from memoryd.store import rows
from memoryd.store.note_rows import has_new_terms, note_details
from memoryd.store.notes import searched_notes
from memoryd.store.postgres.statements import NOTES, Statements, head_of, owner_columns, packed
from memoryd.store.postgres.usage import count_gone

__all__ = ["purge_notes", "write_notes"]

CHANGED = "others have changed the note at the same time"
_SAME = (
    "owner_id = %s AND path = %s AND id = %s AND create_time = %s AND expire_time IS NOT DISTINCT FROM %s::timestamp"
    " AND details = %s AND is_searched = %s"
)
GRANTED_VERSIONS = (
    "SELECT v->>5 AS grant_id, (to_timestamp((v->>1)::int8 / 1e6) AT TIME ZONE 'UTC')::date AS day, (v->>2)::int8"
    " AS size FROM gone, json_array_elements(details::json->'versions') AS v"
)
"""What of the rows of notes in `gone` counts to the quotas of grants."""


def write_notes(statements: Statements, key: uuid.UUID, change: ChangeSet) -> None:
    """Write what changes of notes; the server raises where one is not as it was."""
    seq = head_of(NOTES) if searched_notes(change) is not None else "(SELECT 0::bigint WHERE %s::uuid IS NOT NULL)"
    for note in change.notes:
        _write(statements, key, note, seq)
        gone = [version.id for version in note.gone_versions]
        if gone:
            statements.add("DELETE FROM note_texts WHERE owner_id = %s AND version_id = ANY(%s)", key, gone)
        for version_id, text in note.texts.items():
            statements.add("INSERT INTO note_texts VALUES (%s, %s, %s)", key, version_id, text)


def _write(statements: Statements, key: uuid.UUID, note: NoteChange, seq: str) -> None:
    before, after = note.before, note.after
    if after is None:
        if before is not None:
            statements.add(*_changing("DELETE FROM notes WHERE", key, before))
        return
    row: dict[str, Any] = {
        "id": after.id, "path": after.path, "create_time": rows.naive(after.create_time),
        "expire_time": rows.naive(after.expire_time), "details": note_details(after),
        "text_bytes": after.now.text_bytes, "is_searched": after.is_searched,
    }  # fmt: skip
    if before is None or has_new_terms(note):
        row["terms"] = note.entry.terms if note.entry is not None else ""
    has_new_vector = note.entry is not None and note.entry.vector is not None
    if before is None or note.loses_vector or has_new_vector or not after.is_searched:
        row |= _vectors(note)
    if before is None:
        columns = {**owner_columns(after.owner), **row}
        statements.add(
            f"INSERT INTO notes ({', '.join(columns)}, insert_seq, vector_seq, commit_seq)"
            f" SELECT {', '.join(['%s'] * len(columns))}, h.seq, h.seq, h.seq FROM {seq} AS h(seq)",
            *columns.values(), key,
        )  # fmt: skip
        return
    assigned = ", ".join(f"{name} = %s" for name in row)
    vector_seq = f", vector_seq = {seq}" if "vector" in row else ""
    insert_seq = "" if before.is_searched else f", insert_seq = {seq}"
    numbers = [key] * (1 + bool(vector_seq) + bool(insert_seq))
    sql, *params = _changing(
        f"UPDATE notes SET {assigned}, commit_seq = {seq}{vector_seq}{insert_seq} WHERE", key, before
    )
    statements.add(sql, *row.values(), *numbers, *params)


def _changing(statement: str, key: uuid.UUID, before: Note) -> list[Any]:
    """Return a statement on a note that is as it was, and its last parameters; the server raises where it is not."""
    sql = (
        f"WITH changed AS ({statement} {_SAME} RETURNING 1)"
        f" SELECT coalesce((SELECT 1 FROM changed), contended('{CHANGED}'))"
    )
    return [
        sql, key, before.path, before.id, rows.naive(before.create_time), rows.naive(before.expire_time),
        note_details(before), before.is_searched,
    ]  # fmt: skip


def _vectors(note: NoteChange) -> dict[str, Any]:
    """Return the fingerprint of a note and its vectors: new ones, or none."""
    entry = note.entry
    if note.after is None or not note.after.is_searched or entry is None or entry.vector is None:
        return {"fingerprint": "", "vector": None, "token_vectors": None, "window_vectors": None}
    return {
        "fingerprint": entry.fingerprint,
        "vector": packed(entry.vector),
        "token_vectors": entry.tokens or None,
        "window_vectors": entry.windows or None,
    }


def purge_notes(statements: Statements, key: uuid.UUID) -> None:
    """Erase all notes of an owner."""
    statements.add(
        "WITH gone AS (DELETE FROM notes WHERE owner_id = %s RETURNING details),"
        f" texts AS ({GRANTED_VERSIONS})" + count_gone("0", "-sum(size)", "texts"),
        key, key,
    )  # fmt: skip
    statements.add("DELETE FROM note_texts WHERE owner_id = %s", key)
