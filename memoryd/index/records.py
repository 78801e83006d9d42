"""
Memories as compact bytes: a hundred thousand of them as objects would cost the collector and the cache.

The bytes live and die with the process; the store's columns are what lasts. What was loaded are the rows of batches,
what came later those of `row_with_owner`.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from memoryd.model.batch import Batch
from memoryd.model.commits import Recalled
from memoryd.model.memory import Memory
from memoryd.model.memory_columns import COLUMNS, RECALL_COLUMNS, memory_of, row_of
from memoryd.model.scope import Owner, Scope
from memoryd.model.times import to_us

__all__ = [
    "Loading",
    "Records",
    "forget_unpacked",
    "memory_with_owner",
    "pack",
    "row_with_owner",
    "unpack",
    "with_recalls",
]

BYTES_A_PLACE = 100  # in a dictionary
RECALL_TIME, RECALL_COUNT, TRUSTED_RECALL_TIME = map(COLUMNS.index, RECALL_COLUMNS)
Read = Callable[[Sequence[Any]], Memory]
"""Makes the memory of a row, which begins with its id."""


def row_with_owner(memory: Memory) -> tuple[Any, ...]:
    """Return a memory as its COLUMNS, then whose it is."""
    return *row_of(memory), memory.agent_id, memory.scope.user_id, memory.scope.chat_id


def memory_with_owner(row: Sequence[Any]) -> Memory:
    """Return the memory of such a row."""
    agent_id, user_id, chat_id = row[len(COLUMNS) :]
    return memory_of(Owner(agent_id, Scope(user_id, chat_id)), row[: len(COLUMNS)])


def pack(memory: Memory) -> bytes:
    """Return a memory as bytes."""
    return marshal.dumps(row_with_owner(memory))


def with_recalls(packed: bytes, recalled: Recalled) -> bytes:
    """Return what `pack` made with more recalls."""
    values = list(marshal.loads(packed))  # noqa: S302  made by pack() in this process
    time, count, trusted = recalled
    values[RECALL_TIME] = to_us(time)
    values[RECALL_COUNT] = (values[RECALL_COUNT] or 0) + count
    if trusted is not None:
        values[TRUSTED_RECALL_TIME] = to_us(trusted)
    return marshal.dumps(tuple(values))


def unpack(packed: bytes, read: Read = memory_with_owner) -> Memory:
    """Return the memory of packed bytes."""
    return read(marshal.loads(packed))  # noqa: S302  packed in this process, never read from outside


@lru_cache(maxsize=4096)
def _kept(read: Read, packed: bytes) -> Memory:
    return unpack(packed, read)


MOST_KEPT_BYTES = 1024  # of a record that is kept unpacked: 4,096 of them are 10 MB
BYTES_A_RECORD = 41  # of a bytes object besides its text, and its place
ERASED = b""  # what is left of the record of a memory that was purged


class Loading:
    """What records begin with: those of all in one piece, and the length of each."""

    def __init__(self) -> None:
        self.piece = bytearray()
        self.lengths = [np.zeros(0, dtype=np.int64)]
        self.read: Read = memory_with_owner

    def add(self, batch: Batch) -> None:
        """Take the next documents."""
        packed = list(map(marshal.dumps, batch.rows))
        self.piece += b"".join(packed)
        self.lengths.append(np.fromiter(map(len, packed), dtype=np.int64, count=len(packed)))
        self.read = batch.read


class Records:
    """
    The record of each document. What was loaded lies in one piece; the rest one by one.

    One thread changes them, others read.
    """

    def __init__(self, loading: Loading) -> None:
        """Begin with the records of documents 0 … n − 1."""
        self._piece = loading.piece
        lengths = np.concatenate(loading.lengths)
        self._ends = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=self._ends[1:])
        self._read_loaded = loading.read
        self._changed: dict[int, bytes] = {}
        """By document, of those that were loaded: the record that it has now."""
        self._late: list[bytes] = []
        self._more_bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes that they occupy, estimated."""
        more = len(self._changed) * (BYTES_A_RECORD + BYTES_A_PLACE) + len(self._late) * BYTES_A_RECORD
        return len(self._piece) + self._ends.nbytes + self._more_bytes + more

    def append(self, memory: Memory) -> None:
        """Add the next document's."""
        record = pack(memory)
        self._late.append(record)
        self._more_bytes += len(record)

    def _record(self, row: int) -> tuple[bytes, Read]:
        """Return the record of a document, ERASED if it was erased, and what makes a memory of its row."""
        loaded = len(self._ends) - 1
        if row >= loaded:
            return self._late[row - loaded], memory_with_owner
        changed = self._changed.get(row)
        if changed is not None:
            return changed, memory_with_owner
        record = bytes(self._piece[self._ends[row] : self._ends[row + 1]])
        if record[:1] == b"\0":  # it was changed right now
            return self._changed.get(row, ERASED), memory_with_owner
        return record, self._read_loaded

    def _packed(self, row: int) -> bytes:
        """Return the record of a document as `pack` makes it."""
        record, read = self._record(row)
        return record if read is memory_with_owner or record is ERASED else pack(unpack(record, read))

    def _put(self, row: int, record: bytes) -> None:
        loaded = len(self._ends) - 1
        before = self._late[row - loaded] if row >= loaded else self._changed.get(row, b"")
        self._more_bytes += len(record) - len(before)
        if row >= loaded:
            self._late[row - loaded] = record
            return
        self._changed[row] = record
        if not before:
            self._piece[self._ends[row] : self._ends[row + 1]] = bytes(int(self._ends[row + 1] - self._ends[row]))

    def memory(self, row: int) -> Memory | None:
        """Return the memory of a document; None if it was erased, also while it was read."""
        record, read = self._record(row)
        if record is ERASED:
            return None
        if len(record) > MOST_KEPT_BYTES:
            return unpack(record, read)
        memory = _kept(read, record)
        if self._record(row)[0] is ERASED:
            forget_unpacked()
            return None
        return memory

    def once(self, row: int) -> Memory | None:
        """Return the same, and keep nothing of it."""
        record, read = self._record(row)
        return None if record is ERASED else unpack(record, read)

    def has_id(self, row: int, memory_id: str) -> bool:
        """Whether a document is the record of a memory."""
        record, _ = self._record(row)
        return record is not ERASED and marshal.loads(record)[0] == memory_id  # noqa: S302  packed in this process

    def note_recalls(self, row: int, recalled: Recalled) -> None:
        """Add to the recall_count of a memory and move its recall times on."""
        record = self._packed(row)
        if record is not ERASED:
            self._put(row, with_recalls(record, recalled))

    def copy(self, row: int, other: int) -> None:
        """Let a document hold the record of another."""
        self._put(row, self._packed(other))

    def erase(self, row: int) -> None:
        """Leave nothing of the record of a document."""
        self._put(row, ERASED)


def forget_unpacked() -> None:
    """Drop what is kept unpacked."""
    _kept.cache_clear()
