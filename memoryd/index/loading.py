"""What an index begins with, gathered from the columns of many memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.entities.directory import Directory
from memoryd.index import columns, postings, records, sequences, traits, windows
from memoryd.index.lookup import numbers_of
from memoryd.index.records import memory_with_owner, row_with_owner
from memoryd.index.vectors import Vectors, packed
from memoryd.model.batch import NEVER, Batch, Provenance, Times
from memoryd.model.change import Entry
from memoryd.model.entity import Entity
from memoryd.model.filter_terms import filter_terms_of
from memoryd.model.memory import Kind, Memory
from memoryd.model.times import to_us
from memoryd.model.validation import text_digest

__all__ = ["Loading", "batch_of"]

CODES = {kind.value: code for kind, code in columns.KIND_CODES.items()}


class Loading:
    """The columns of documents 0, 1, 2, … as they come."""

    def __init__(self, dimensions: int, *, with_tokens: bool) -> None:
        self.count = 0
        self.columns = columns.Loading()
        self.postings = postings.Loading()
        self.windows = windows.Loading()
        self.traits = traits.Loading()
        self.sequences = sequences.Loading()
        self.noted: list[tuple[int, Memory]] = []
        """The memories that name, claim or contest anything, by document."""
        self.keys: list[tuple[int, str]] = []
        """By document, of those that have one that is not their id."""
        self.tokens: list[bytes] = []
        self.window_vectors: dict[int, bytes] = {}
        """By document, of those that are long: the vectors of their later windows."""
        self.records = records.Loading()
        self._dimensions = dimensions
        self._with_tokens = with_tokens
        self._ids = [np.zeros(0, dtype=np.int64)]
        self._order = [np.zeros(0, dtype=np.int64)]
        self._digests = [np.zeros((0, 2), dtype=np.uint64)]
        self._vectors: list[tuple[int, NDArray[np.float32]]] = []

    def add(self, batch: Batch) -> None:
        """Take the next documents."""
        size = len(batch.ids)
        kinds = np.fromiter(map(CODES.__getitem__, batch.kinds), dtype=np.uint8, count=size)
        self.columns.add(batch, kinds)
        self.postings.add(batch.terms)
        self.windows.add(batch.terms)
        self.traits.add(batch, kinds)
        self.sequences.add(batch)
        self.noted += [(self.count + place, memory) for place, memory in batch.noted]
        named = enumerate(zip(batch.keys, batch.ids, strict=True), self.count)
        self.keys += [(document, key) for document, (key, one) in named if key and key != one]
        self.tokens += batch.tokens if batch.tokens is not None and self._with_tokens else [b""] * size
        self.window_vectors.update((self.count + place, codes) for place, codes in batch.windows)
        self.records.add(batch)
        self._ids.append(numbers_of(batch.ids))
        self._digests.append(batch.digests)
        if batch.vectors is None:
            self._order.append(batch.order)
        else:
            self._vectors.append((self.count, batch.vectors))
        self.count += size

    @property
    def ids(self) -> NDArray[np.int64]:
        """A number for the id of each."""
        return np.concatenate(self._ids)

    @property
    def order(self) -> NDArray[np.int64]:
        """By what vectors that come later are told whose they are; empty where all are there."""
        return np.concatenate(self._order)

    @property
    def digests(self) -> NDArray[np.uint64]:
        """The digests of the texts."""
        return np.concatenate(self._digests)

    def vectors(self, *, is_large: bool) -> Vectors | None:
        """Return the vectors, of a large scope in two bytes a number; those that are still to come are missing."""
        if not self._dimensions:
            return None
        if not is_large:
            none = np.zeros((0, self._dimensions), dtype=np.float32)
            return Vectors(self._dimensions, np.concatenate([none, *(rows for _, rows in self._vectors)]))
        made = Vectors.to_fill(self._dimensions, self.count)
        for start, rows in self._vectors:
            there = np.flatnonzero(rows.any(axis=1))
            made.fill(start + there, packed(rows[there]))
        return made

    def people(self, entities: Iterable[Entity]) -> Directory:
        """Return who is named, with what was decided of them."""
        directory = Directory(entities)
        for _, memory in self.noted:
            directory.add(memory)
        return directory


def batch_of(entries: Sequence[Entry], *, dimensions: int, fingerprint: str) -> Batch:
    """Return entries as columns; of their vectors those of this fingerprint."""
    memories = [entry.memory for entry in entries]
    digests = b"".join(text_digest(memory.content) for memory in memories)
    return Batch(
        order=np.zeros(len(entries), dtype=np.int64),
        ids=[memory.id for memory in memories],
        rows=[row_with_owner(memory) for memory in memories],
        read=memory_with_owner,
        digests=np.frombuffer(digests, dtype="<u8").reshape(-1, 2),
        keys=[memory.key for memory in memories],
        kinds=[memory.kind.value for memory in memories],
        times=_times_of(memories),
        trusts=np.array([memory.trust.weight for memory in memories], dtype=np.uint8),
        confidences=np.array([memory.confidence for memory in memories], dtype=np.float64),
        recalls=np.array([memory.recall_count for memory in memories], dtype=np.int64),
        facets=[tuple(filter_terms_of(memory)) for memory in memories],
        traits=[""] * len(memories),
        characters=np.array([len(memory.content) for memory in memories], dtype=np.int64),
        noted=[(n, memory) for n, memory in enumerate(memories) if _is_noted(memory)],
        said=[(n, _said(memory)) for n, memory in enumerate(memories) if memory.kind is Kind.EPISODE],
        terms=[entry.terms for entry in entries],
        vectors=_vectors_of(entries, dimensions, fingerprint),
        tokens=[entry.tokens if entry.fingerprint == fingerprint else b"" for entry in entries],
        windows=_windows_of(entries, fingerprint),
    )


def _vectors_of(entries: Sequence[Entry], dimensions: int, fingerprint: str) -> NDArray[np.float32]:
    vectors = np.zeros((len(entries), dimensions), dtype=np.float32)
    for n, entry in enumerate(entries):
        if dimensions and entry.vector is not None and entry.fingerprint == fingerprint:
            vectors[n] = entry.vector
    return vectors


def _windows_of(entries: Sequence[Entry], fingerprint: str) -> list[tuple[int, bytes]]:
    return [(n, entry.windows) for n, entry in enumerate(entries) if entry.windows and entry.fingerprint == fingerprint]


def _is_noted(memory: Memory) -> bool:
    return bool(memory.mentions or memory.claims or memory.contested_with)


def _said(memory: Memory) -> Provenance:
    source = memory.source
    return Provenance(source.thread_id, source.session_id, source.speaker, memory.category)


def _times_of(memories: Sequence[Memory]) -> Times:
    return Times(
        np.array([to_us(memory.create_time) for memory in memories], dtype=np.int64),
        np.array([to_us(memory.event_time) for memory in memories], dtype=np.int64),
        np.array([NEVER if m.expire_time is None else to_us(m.expire_time) for m in memories], dtype=np.int64),
        np.array([NEVER if m.supersede_time is None else to_us(m.supersede_time) for m in memories], dtype=np.int64),
    )
