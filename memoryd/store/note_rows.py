"""Notes as rows, with what is told of their versions; their texts lie apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC
from typing import Any

from memoryd.model.note import Note, NoteVersion
from memoryd.model.note_change import NoteChange
from memoryd.model.scope import Owner, Scope
from memoryd.model.times import from_us, to_us
from memoryd.model.trust import Trust

__all__ = ["NOTE_COLUMNS", "has_new_terms", "note_details", "note_name", "note_of"]

NOTE_COLUMNS = "id, agent_id, user_id, chat_id, path, create_time, expire_time, details, is_searched"


def note_name(owner: Owner, path: str) -> str:
    """Return the key of a note: a digest, as a short key keeps an index small."""
    named = json.dumps([owner.agent_id, owner.scope.user_id, owner.scope.chat_id, path])
    return hashlib.blake2b(named.encode(), digest_size=16).hexdigest()


def note_details(note: Note) -> str:
    """Return what no query compares of a note, as its column holds it."""
    versions = [
        [v.revision, to_us(v.update_time), v.text_bytes, v.is_json, v.trust.value, v.grant_id, v.author, v.id]
        for v in note.versions
    ]
    told = {
        "expire_after_access_s": note.expire_after_access_s,
        "end_time": None if note.end_time is None else to_us(note.end_time),
        "terms_length": note.terms_length,
    }
    return json.dumps({**told, "versions": versions}, ensure_ascii=False)


def note_of(row: Sequence[Any]) -> Note:
    """Return the note of a row of NOTE_COLUMNS, without its text."""
    note_id, agent_id, user_id, chat_id, path, created, expires, details, is_searched = row
    held = json.loads(details)
    return Note(
        id=note_id,
        agent_id=agent_id,
        scope=Scope(user_id=user_id, chat_id=chat_id),
        path=path,
        create_time=created.replace(tzinfo=UTC),
        expire_time=None if expires is None else expires.replace(tzinfo=UTC),
        expire_after_access_s=held["expire_after_access_s"],
        end_time=None if held["end_time"] is None else from_us(held["end_time"]),
        is_searched=is_searched,
        terms_length=held["terms_length"],
        versions=tuple(
            NoteVersion(revision, from_us(updated), size, is_json, Trust(trust), *rest)
            for revision, updated, size, is_json, trust, *rest in held["versions"]
        ),
    )


def has_new_terms(note: NoteChange) -> bool:
    """Whether a change gives a note other words to be found by, or none."""
    before, after = note.before, note.after
    if before is None or after is None or not (before.is_searched and after.is_searched):
        return True
    return note.entry is not None and (bool(note.texts) or before.path != after.path)
