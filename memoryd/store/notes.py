"""What a store promises of notes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol

from memoryd.model.change import ChangeSet, Entry
from memoryd.model.memory import Memory
from memoryd.model.note import Note, NoteVersion
from memoryd.model.scope import Owner

__all__ = ["CHANGED", "NoteStore", "searched_notes"]

CHANGED = "others have changed the note at the same time; nothing was written: try again"


class NoteStore(Protocol):
    """Notes by owner and path; their texts are read apart. Whether one has expired is for who asks."""

    async def get(self, owner: Owner, path: str) -> Note | None:
        """Return a note without its text; None if there is none. It takes as long however many there are."""
        ...

    async def page(
        self, owner: Owner, *, prefix: str = "", after: str = "", limit: int, live_at: datetime | None = None
    ) -> list[Note]:
        """
        Return at most limit notes whose path begins so, past a path, by path in the order of code points.

        Those that have expired at `live_at` are left out.
        """
        ...

    async def with_ids(self, owner: Owner, ids: Collection[str]) -> list[Note]:
        """Return the notes of an owner with one of some ids, wherever they were moved to, by path."""
        ...

    async def texts(self, owner: Owner, versions: Collection[NoteVersion]) -> Mapping[str, str]:
        """Return the texts of some versions by their ids; one that is no longer kept is left out."""
        ...

    async def unembedded(self, fingerprint: str, *, limit: int, after: str = "") -> list[Note]:
        """Return at most limit notes of all owners that are searched, by id, without a vector of this fingerprint."""
        ...

    async def count(self, owner: Owner, *, live_at: datetime | None = None) -> int:
        """Return how many notes an owner has, without those that have expired at `live_at`."""
        ...

    async def expired(self, now: datetime, *, limit: int) -> list[Note]:
        """Return at most limit notes of all owners that have expired, the first to expire first."""
        ...

    async def expired_count(self, now: datetime) -> int:
        """Return how many notes of all owners have expired."""
        ...


def searched_notes(change: ChangeSet) -> ChangeSet | None:
    """Return what changes for an index of notes, which holds them as memories of kind NOTE; None: nothing."""
    inserts: list[Entry] = []
    updates: list[Entry] = []
    purges: list[Memory] = []
    for before, after, _, entry, _ in change.notes:
        was = before is not None and before.is_searched
        if after is None or not after.is_searched:
            purges += [before.as_memory("")] if before is not None and was else []
        elif entry is not None:
            (updates if was else inserts).append(entry)
    found = ChangeSet(inserts=tuple(inserts), updates=tuple(updates), purges=tuple(purges), rebuild=change.purge_owner)
    return None if found == ChangeSet() else found
