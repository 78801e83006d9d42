"""What follows from commits: how far an owner has come, what was committed, and what an owner has at one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from memoryd.model.change import ChangeSet, Embedding, Entry, Tombstone
from memoryd.model.entity import Entity

if TYPE_CHECKING:
    from memoryd.model.batch import Batch, VectorBatch, VectorsWanted

__all__ = ["Applied", "Head", "Recalled", "Snapshot", "merged"]

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
    is_exact: bool = False
    """Whether it is that of the last commit, and never later: whoever is ahead of it has seen what is there no more."""


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


def merged(changes: Sequence[ChangeSet]) -> ChangeSet:
    """Return the change sets of one owner, oldest first, that erase nothing, as one: what an index follows of them."""
    inserts: dict[str, Entry] = {}
    updates: dict[str, Entry] = {}
    embeddings: dict[tuple[str, str], Embedding] = {}
    entities: dict[str, Entity] = {}
    buried: dict[Tombstone, bool] = {}
    for change in changes:
        inserts |= {entry.memory.id: entry for entry in change.inserts}
        for entry in change.updates:
            memory_id = entry.memory.id
            before = inserts.get(memory_id) or updates.get(memory_id)
            if entry.memory.delete_time is not None:  # it enters no index, or leaves it
                inserts.pop(memory_id, None)
            (inserts if memory_id in inserts else updates)[memory_id] = _after(before, entry)
        for embedding in change.embeddings:
            made = inserts.get(embedding.memory_id)
            if made is None:
                embeddings[embedding.memory_id, embedding.message_id] = embedding
            elif embedding.message_id in {"", *made.memory.source.message_ids}:  # else it was of another in its place
                inserts[embedding.memory_id] = embedding.given_to(made)
        entities |= {entity.id: entity for entity in change.entities}
        buried |= dict.fromkeys(change.tombstones, True) | dict.fromkeys(change.lift, False)
    return ChangeSet(
        inserts=tuple(inserts.values()),
        updates=tuple(updates.values()),
        embeddings=tuple(embeddings.values()),
        entities=tuple(entities.values()),
        tombstones=tuple(tombstone for tombstone, is_buried in buried.items() if is_buried),
        lift=tuple(tombstone for tombstone, is_buried in buried.items() if not is_buried),
    )


def _after(before: Entry | None, entry: Entry) -> Entry:
    """Return an updated entry, with the vectors of before where it has none of its own."""
    if before is None or before.vector is None or entry.vector is not None:
        return entry
    return replace(before, memory=entry.memory, terms=entry.terms)
