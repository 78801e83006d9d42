"""
What is written together: one change set is one transaction, whole or not at all.

The store makes it durable, then the index learns of it; neither decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from memoryd.model.entity import Entity
from memoryd.model.grant import Grant, TokenKey
from memoryd.model.memory import Memory, Outcome
from memoryd.model.scope import Owner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PURGE", "Applied", "ChangeSet", "Entry", "Recalled", "RecordedRequest", "Snapshot", "Tombstone"]


PURGE = "purge"
"""Noted with the jobs whenever something is purged: its bytes may be in the file until the next compaction."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A memory with what it is found by."""

    memory: Memory
    terms: str = ""
    """The analysed words, separated by spaces."""
    vector: NDArray[np.float32] | None = None
    """The embedding, shape (dimensions,), of length 1. None: it has none, or (in an update) it is unchanged."""
    fingerprint: str = ""
    """What made the vector; vectors of two fingerprints are never compared."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request that was carried out, and the ids and outcomes that it got; the answer is rendered again from them."""

    owner: Owner
    method: str
    request_id: str
    payload_hash: str
    outcomes: tuple[tuple[str, Outcome | None, tuple[str, ...]], ...]
    """A memory id, its outcome and the ids that it superseded, one an item; of a REJECTED one no id, and the reason."""
    create_time: datetime


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A salted digest of what was deleted in one scope; it says nothing of it to anybody without the store's secret."""

    owner: Owner
    digest: bytes


Recalled = tuple[datetime, int, datetime | None]
"""When a memory was last recalled, how often since, and when last by the host."""


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Inserts, updates and purges of memories, the request that asked for them, and who was given what."""

    inserts: tuple[Entry, ...] = ()
    updates: tuple[Entry, ...] = ()
    purges: tuple[Memory, ...] = ()
    request: RecordedRequest | None = None
    forget_requests_before: datetime | None = None
    grants: tuple[Grant, ...] = ()
    """New ones, and the new state of known ones."""
    forget_grants: tuple[str, ...] = ()
    """Ended grants to remove for good, by id."""
    token_keys: tuple[TokenKey, ...] | None = None
    """All that count from now on; None: as they are."""
    entities: tuple[Entity, ...] = ()
    """What was decided of entities by hand: new, and the new state of known ones."""
    forget_entities: tuple[Entity, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    """What must not be learnt again."""
    lift: tuple[Tombstone, ...] = ()
    """What may be learnt again."""
    jobs: Mapping[str, datetime] = field(default_factory=dict)
    """When jobs ran, by name."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Every memory and grant that it touches."""
        entries = (*self.inserts, *self.updates)
        memories = (*(entry.memory for entry in entries), *self.purges)
        return (
            *(memory.id for memory in memories),
            *(grant.id for grant in self.grants),
            *self.forget_grants,
            *(entity.id for entity in (*self.entities, *self.forget_entities)),
        )

    @property
    def purged_ids(self) -> tuple[str, ...]:
        """Every memory that it erases."""
        return tuple(memory.id for memory in self.purges)


@dataclass(frozen=True, slots=True)
class Applied:
    """A change set that was committed, and the number of its transaction."""

    commit_seq: int
    change: ChangeSet


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The recallable memories of one owner as of one commit: all but the deleted ones, oldest first."""

    commit_seq: int
    count: int
    text_bytes: int
    """Bytes of all texts, roughly what the records and terms of an index take."""
    chunks: Iterable[Sequence[Entry]]
    entities: Sequence[Entity] = ()
    """What was decided of the owner's entities by hand."""
    tombstones: frozenset[bytes] = frozenset()
    """Digests of what was deleted."""
