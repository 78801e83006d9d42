"""Notes on their way out of a store and into another: a record of each version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.notes.finding import entry_of
from memoryd.domain.notes.keep import check_room
from memoryd.domain.notes.reading import with_texts
from memoryd.domain.ports import Ports
from memoryd.domain.transfer.records import NoteRecord
from memoryd.errors import InvalidArgument
from memoryd.model import limits
from memoryd.model.note import Note, NoteDraft, NoteVersion
from memoryd.model.note_change import NoteChange
from memoryd.model.scope import Owner
from memoryd.store.base import Store

__all__ = ["check_note", "known_versions", "note_changes", "records_of"]


async def records_of(note: Note, store: Store) -> list[tuple[str, NoteRecord]]:
    """Return a record of each version of a note, the newest first, with its place; one changed meanwhile as it is."""
    found = await with_texts(note, lambda note: note.versions, store.notes)
    if found is None:
        return []
    whole, texts = found
    bare = replace(whole, versions=())
    return [(f"{whole.path}\0{v.revision}", NoteRecord(bare, v, texts[v.id])) for v in whole.versions]


def check_note(record: NoteRecord) -> None:
    """Raise InvalidArgument or LimitExceeded where a version is not as a call could have stored it."""
    note, version = record.note, record.version
    if note.versions:
        raise InvalidArgument("note.versions must be lines of their own", field="note.versions")
    draft = NoteDraft(
        path=note.path,
        text=record.text,
        is_json=version.is_json,
        expire_after_access_s=note.expire_after_access_s,
    )
    if draft.path != note.path:
        raise InvalidArgument("note.path is not as it would be stored", field="note.path")
    if draft.text != record.text or version.text_bytes != len(record.text.encode()):
        raise InvalidArgument("text is not as it would be stored", field="text")
    if version.revision < 1:
        raise InvalidArgument(f"version.revision is {version.revision}; the first is 1", field="version.revision")


async def known_versions(
    owner: Owner, records: Sequence[NoteRecord], store: Store
) -> tuple[dict[tuple[str, int], NoteRecord], dict[str, Note]]:
    """
    Return the versions that are there, by note and revision, and the notes that are, by id.

    Where a version cannot be added, as it is one between others or another note has its path, it counts as one that is
    there and says something else.
    """
    notes = {note.id: note for note in await store.notes.with_ids(owner, {record.id for record in records})}
    known: dict[tuple[str, int], NoteRecord] = {}
    versions = [v for r in records if r.id in notes and (v := notes[r.id].version(r.version.revision)) is not None]
    texts = await store.notes.texts(owner, versions)
    for record in records:
        note = notes.get(record.id)
        if note is None:
            other = await store.notes.get(owner, record.note.path)
            if other is not None:
                known[record.key] = NoteRecord(replace(other, versions=()), other.now)
            continue
        version = note.version(record.version.revision)
        is_next = record.version.revision < note.versions[-1].revision
        if version is not None:
            known[record.key] = NoteRecord(replace(note, versions=()), version, texts.get(version.id, ""))
        elif not is_next or note.create_time != record.create_time or len(note.versions) >= limits.MAX_NOTE_VERSIONS:
            known[record.key] = NoteRecord(replace(note, versions=()), note.now)
    return known, notes


async def note_changes(
    records: Iterable[NoteRecord], notes: dict[str, Note], ports: Ports, now: datetime
) -> tuple[NoteChange, ...]:
    """
    Return notes as new, or with versions that were before those that they have.

    Ids of versions are of this store; vectors are made in the background. Raises InvalidArgument where the versions of
    a note are none that one note could have, LimitExceeded where there would be too many notes.
    """
    by_note: dict[str, list[NoteRecord]] = {}
    for record in records:
        by_note.setdefault(record.id, []).append(record)
    changes = [await _change(each, notes.get(note_id), ports.new_id) for note_id, each in by_note.items()]
    paths = [change.after.path for change in changes if change.after is not None and change.before is None]
    if len(set(paths)) < len(paths):
        raise InvalidArgument("two notes of one scope have one path", field="note.path")
    if paths:
        await check_room(len(paths), changes[0].owner, ports, now)
    return tuple(changes)


async def _change(records: list[NoteRecord], before: Note | None, new_id: Callable[[], str]) -> NoteChange:
    found: list[NoteVersion] = [*before.versions] if before is not None else []
    texts = {}
    for record in sorted(records, key=lambda record: -record.version.revision):
        version = replace(record.version, id=new_id())
        found.append(version)
        texts[version.id] = record.text
    if len(found) > limits.MAX_NOTE_VERSIONS:
        raise InvalidArgument(f"a note has more than {limits.MAX_NOTE_VERSIONS} versions", field="version.revision")
    note = replace(records[0].note if before is None else before, versions=tuple(found))
    if before is not None or not note.is_searched:
        return NoteChange(before, note, texts)
    entry = await entry_of(note, texts[note.now.id], None, "")
    return NoteChange(None, replace(note, terms_length=len(entry.terms)), texts, entry)
