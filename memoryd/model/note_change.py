"""What changes of a note."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from memoryd.model.note import Note, NoteVersion
from memoryd.model.scope import Owner

if TYPE_CHECKING:
    from memoryd.model.change import Entry

__all__ = ["NoteChange"]


class NoteChange(NamedTuple):
    """What changes of a note; Contended where it is not as it was before."""

    before: Note | None
    """None: it is new."""
    after: Note | None
    """None: it goes, with all its versions."""
    texts: Mapping[str, str] = MappingProxyType({})
    """Of new versions, by their ids."""
    entry: Entry | None = None
    """What it is found by, where that changes; without a vector it keeps the one that it has."""
    loses_vector: bool = False
    """Whether the one that it has is of another text."""

    @property
    def owner(self) -> Owner:
        """Whose it is."""
        note = self.after or self.before
        if note is None:
            raise ValueError("a change of no note")
        return note.owner

    @property
    def gone_versions(self) -> tuple[NoteVersion, ...]:
        """The versions that are no longer kept."""
        left = set() if self.after is None else {version.id for version in self.after.versions}
        return () if self.before is None else tuple(one for one in self.before.versions if one.id not in left)
