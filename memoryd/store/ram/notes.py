"""What the reference store answers about notes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from memoryd.errors import Contended
from memoryd.model.change import ChangeSet
from memoryd.model.note import Note, NoteVersion
from memoryd.model.scope import Owner

__all__ = ["NotesByPath", "RamNotes"]

CHANGED = "others have changed the note at the same time; nothing was written: try again"


class NotesByPath:
    """Notes, and the texts of their versions."""

    def __init__(self) -> None:
        """Begin with none."""
        self.notes: dict[tuple[Owner, str], Note] = {}
        self.texts: dict[str, str] = {}

    def of(self, owner: Owner) -> list[Note]:
        """Return the notes of an owner, by path."""
        return sorted((note for (whose, _), note in self.notes.items() if whose == owner), key=lambda note: note.path)

    def check(self, changes: Sequence[ChangeSet]) -> None:
        """Raise Contended where a note is not as it was when a change of it was decided."""
        known = dict(self.notes)
        for change in changes:
            for before, after, _ in change.notes:
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
        for key in [key for key in self.notes if key[0] == change.purge_owner]:
            for version in self.notes.pop(key).versions:
                del self.texts[version.id]


class RamNotes:
    """Notes in dictionaries."""

    def __init__(self, held: NotesByPath) -> None:
        self._held = held

    async def get(self, owner: Owner, path: str) -> Note | None:
        return self._held.notes.get((owner, path))

    async def page(self, owner: Owner, *, prefix: str = "", after: str = "", limit: int) -> list[Note]:
        own = self._held.of(owner)
        return [note for note in own if note.path.startswith(prefix) and note.path > after][:limit]

    async def texts(self, owner: Owner, versions: Collection[NoteVersion]) -> Mapping[str, str]:
        own = {version.id for note in self._held.of(owner) for version in note.versions}
        return {version.id: self._held.texts[version.id] for version in versions if version.id in own}

    async def count(self, owner: Owner) -> int:
        return len(self._held.of(owner))

    async def expired(self, now: datetime, *, limit: int) -> list[Note]:
        gone = [(note.expire_time, note.id, note) for note in self._held.notes.values() if note.expire_time is not None]
        return [note for time, _, note in sorted(gone, key=lambda one: one[:2]) if time <= now][:limit]
