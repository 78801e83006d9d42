"""What follows from commits: how far an owner has come, what was committed, and what an owner has at one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from memoryd.model.change import ChangeSet, Entry
from memoryd.model.entity import Entity

if TYPE_CHECKING:
    from memoryd.model.batch import Batch, VectorBatch, VectorsWanted

__all__ = ["Applied", "Head", "Recalled", "Snapshot"]

Recalled = tuple[datetime, int, datetime | None]
"""When a memory was last recalled, how often since, and when last by the host."""


@dataclass(frozen=True, slots=True)
class Head:
    """How far an owner's commits have come; where a store does not know it exactly, all is later than it is."""

    commit_seq: int = 0
    """The number of the last commit. Numbers rise within an owner; between owners they say nothing."""
    newest_create_time: datetime | None = None
    """The latest create time ever given to a memory, also to one that was purged since."""
    purge_seq: int = 0
    """The number of the last commit that purged something."""


@dataclass(frozen=True, slots=True)
class Applied:
    """A change set that was committed, and its number."""

    commit_seq: int
    change: ChangeSet
    after: int = 0
    """The number of the owner's commit before it: whoever has followed to there misses nothing."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The recallable memories of one owner as of one commit: all but the deleted ones, oldest first."""

    commit_seq: int
    """No commit of the owner up to this number is missing."""
    count: int
    text_bytes: int
    """Bytes of all texts, roughly what the records and terms of an index take."""
    read: Callable[[VectorsWanted], Iterable[Batch | Sequence[Entry]]]
    """Returns all of them, piece by piece; it is called, and what it returns is used, while the snapshot is held."""
    entities: Sequence[Entity] = ()
    """What was decided of the owner's entities by hand."""
    tombstones: frozenset[bytes] = frozenset()
    """Digests of what was deleted."""
    token_bytes: int = 0
    """Bytes of the vectors of tokens, roughly."""
    read_vectors: Callable[[VectorsWanted], Iterator[VectorBatch]] | None = None
    """
    Returns the vectors of those that have any, piece by piece, as they are when each is read: also when the snapshot is
    over. None: they come with `read` alone.
    """
