"""What a store promises of notes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol

from memoryd.model.note import Note, NoteVersion
from memoryd.model.scope import Owner

__all__ = ["NoteStore"]


class NoteStore(Protocol):
    """Notes by owner and path; their texts are read apart. Whether one has expired is for who asks."""

    async def get(self, owner: Owner, path: str) -> Note | None:
        """Return a note without its text; None if there is none. It takes as long however many there are."""
        ...

    async def page(self, owner: Owner, *, prefix: str = "", after: str = "", limit: int) -> list[Note]:
        """Return at most limit notes whose path begins so, past a path, by path in the order of code points."""
        ...

    async def texts(self, owner: Owner, versions: Collection[NoteVersion]) -> Mapping[str, str]:
        """Return the texts of some versions by their ids; one that is no longer kept is left out."""
        ...

    async def count(self, owner: Owner) -> int:
        """Return how many notes an owner has."""
        ...

    async def expired(self, now: datetime, *, limit: int) -> list[Note]:
        """Return at most limit notes of all owners that have expired, the first to expire first."""
        ...
