"""What the reference store answers about notes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.errors import Contended
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.note import Note, NoteVersion
from memoryd.model.note_change import NoteChange
from memoryd.model.scope import Owner
from memoryd.store.notes import CHANGED

__all__ = ["NotesByPath", "RamNotes"]


class NotesByPath:
    """Notes, and the texts of their versions."""

    def __init__(self) -> None:
        """Begin with none."""
        self.notes: dict[tuple[Owner, str], Note] = {}
        self.texts: dict[str, str] = {}
        self.entries: dict[str, Entry] = {}
        """Of those that are searched, by their ids."""

    def of(self, owner: Owner) -> list[Note]:
        """Return the notes of an owner, by path."""
        return sorted((note for (whose, _), note in self.notes.items() if whose == owner), key=lambda note: note.path)

    def check(self, changes: Sequence[ChangeSet]) -> None:
        """Raise Contended where a note is not as it was when a change of it was decided."""
        known = dict(self.notes)
        for change in changes:
            for before, after, *_ in change.notes:
                if before is not None and known.pop((before.owner, before.path), None) != before:
                    raise Contended(CHANGED)
                if after is not None:
                    if (after.owner, after.path) in known:
                        raise Contended(CHANGED)
                    known[after.owner, after.path] = after

    def apply(self, change: ChangeSet) -> None:
        """Take in what changes."""
        for note in change.notes:
            if note.before is not None:
                del self.notes[note.before.owner, note.before.path]
            for version in note.gone_versions:
                del self.texts[version.id]
            if note.after is not None:
                self.notes[note.after.owner, note.after.path] = note.after
                self.texts |= note.texts
                self._find(note, note.after)
            elif note.before is not None:
                self.entries.pop(note.before.id, None)
        for key in [key for key in self.notes if key[0] == change.purge_owner]:
            gone = self.notes.pop(key)
            self.entries.pop(gone.id, None)
            for version in gone.versions:
                del self.texts[version.id]

    def _find(self, change: NoteChange, note: Note) -> None:
        known, entry = self.entries.pop(note.id, None), change.entry
        if not note.is_searched:
            return
        if entry is None or known is None:
            self.entries[note.id] = entry or known or Entry(note.as_memory(""))
        elif entry.vector is not None or change.loses_vector:
            self.entries[note.id] = entry
        else:
            self.entries[note.id] = replace(known, memory=entry.memory, terms=entry.terms)


class RamNotes:
    """Notes in dictionaries."""

    def __init__(self, held: NotesByPath) -> None:
        self._held = held

    async def get(self, owner: Owner, path: str) -> Note | None:
        return self._held.notes.get((owner, path))

    async def page(
        self, owner: Owner, *, prefix: str = "", after: str = "", limit: int, live_at: datetime | None = None
    ) -> list[Note]:
        own = _live(self._held.of(owner), live_at)
        return [note for note in own if note.path.startswith(prefix) and note.path > after][:limit]

    async def with_ids(self, owner: Owner, ids: Collection[str]) -> list[Note]:
        return [note for note in self._held.of(owner) if note.id in ids]

    async def texts(self, owner: Owner, versions: Collection[NoteVersion]) -> Mapping[str, str]:
        own = {version.id for note in self._held.of(owner) for version in note.versions}
        return {version.id: self._held.texts[version.id] for version in versions if version.id in own}

    async def unembedded(self, fingerprint: str, *, limit: int, after: str = "") -> list[Note]:
        stale = (
            note
            for note in self._held.notes.values()
            if note.is_searched and note.id > after and self._held.entries[note.id].fingerprint != fingerprint
        )
        return sorted(stale, key=lambda note: note.id)[:limit]

    async def count(self, owner: Owner, *, live_at: datetime | None = None) -> int:
        return len(_live(self._held.of(owner), live_at))

    async def expired(self, now: datetime, *, limit: int) -> list[Note]:
        gone = [(note.expire_time, note.id, note) for note in self._held.notes.values() if note.expire_time is not None]
        return [note for time, _, note in sorted(gone, key=lambda one: one[:2]) if time <= now][:limit]

    async def expired_count(self, now: datetime) -> int:
        return sum(note.is_expired(now) for note in self._held.notes.values())


def _live(notes: list[Note], at: datetime | None) -> list[Note]:
    return notes if at is None else [note for note in notes if not note.is_expired(at)]
