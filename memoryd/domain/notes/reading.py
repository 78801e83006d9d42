"""Reading notes as they are now, whatever is changed meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime

from memoryd.domain.batching import READ_AT_ONCE
from memoryd.errors import StoreDamaged
from memoryd.model.note import Note, NoteVersion
from memoryd.model.scope import Owner
from memoryd.store.notes import NoteStore

__all__ = ["live", "note_lock", "note_pages", "same_notes", "with_texts"]


def note_lock(owner: Owner) -> tuple[str, Owner]:
    """Return what is held while a change of the notes of an owner is decided."""
    return ("notes", owner)


async def live(owner: Owner, path: str, store: NoteStore, now: datetime) -> Note | None:
    """Return a note that has not expired; None if there is none."""
    note = await store.get(owner, path)
    return None if note is None or note.is_expired(now) else note


async def note_pages(
    owner: Owner,
    store: NoteStore,
    *,
    prefix: str = "",
    after: str = "",
    at_once: int = READ_AT_ONCE,
    live_at: datetime | None = None,
) -> AsyncIterator[list[Note]]:
    """Yield in parts the notes of an owner whose path begins so, by path; see NoteStore.page."""
    while page := await store.page(owner, prefix=prefix, after=after, limit=at_once, live_at=live_at):
        yield page
        after = page[-1].path


async def same_notes(notes: Sequence[Note], store: NoteStore) -> list[Note]:
    """Return notes of one owner as they are now, also those that were moved; those that went are left out."""
    owner = notes[0].owner
    at = {note.id: await store.get(owner, note.path) for note in notes}
    there = {key: note for key, note in at.items() if note is not None and note.id == key}
    elsewhere = at.keys() - there.keys()
    if elsewhere:
        there |= {note.id: note for note in await store.with_ids(owner, elsewhere)}
    return [there[note.id] for note in notes if note.id in there]


async def with_texts(
    note: Note | None, wanted: Callable[[Note], Sequence[NoteVersion]], store: NoteStore
) -> tuple[Note, Mapping[str, str]] | None:
    """
    Return a note with the texts of those of its versions that are wanted, by their ids; None where it has gone.

    A note that was changed since it was read is read again. StoreDamaged where its texts are lost.
    """
    while note is not None:
        versions = wanted(note)
        texts = await store.texts(note.owner, versions)
        if len(texts) == len(versions):
            return note, texts
        there = await store.get(note.owner, note.path)
        if there is not None and there.versions == note.versions:
            raise StoreDamaged("the database has lost the text of a note; put back the last good copy")
        note = there
    return None
