"""
Memories as compact bytes: a hundred thousand of them as objects would cost the collector and the cache.

The formats live and die with the process; the store's columns are what lasts. What was loaded is packed by the store,
as its rows say it; what came later by `pack`. Both begin with the id.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from memoryd.model.commits import Recalled
from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.memory import Judgement, Kind, Memory, Source
from memoryd.model.scope import Scope
from memoryd.model.times import from_us, to_us
from memoryd.model.trust import Trust

__all__ = ["Records", "forget_unpacked", "pack", "unpack_once", "with_recalls"]

BYTES_A_PLACE = 100  # in a dictionary

_NO_SOURCE = Source()
_KINDS = {kind.value: kind for kind in Kind}
_TRUSTS = {trust.value: trust for trust in Trust}


_FORMS = {form.value: form for form in Form}
_TYPES = {kind.value: kind for kind in EntityType}


def mention_of(entity_id: str, text: str, form: str, kind: str, about: bool, same_as: str) -> Mention:
    """Return the mention of these values."""
    return Mention(entity_id, text, _FORMS[form], _TYPES[kind], about, same_as)


def _us(time: datetime | None) -> int | None:
    return None if time is None else to_us(time)


def _time(value: int | None) -> datetime | None:
    return None if value is None else from_us(value)


def pack(memory: Memory) -> bytes:
    """Return a memory as bytes."""
    source, judgement = memory.source, memory.judgement
    return marshal.dumps((
        memory.id, memory.agent_id, memory.scope.user_id, memory.scope.chat_id, memory.content,
        to_us(memory.create_time), to_us(memory.event_time), memory.kind.value, memory.subjects, memory.tags,
        memory.category, dict(memory.metadata), memory.key,
        (source.speaker, source.channel, source.thread_id, source.session_id, source.message_ids),
        memory.confidence, memory.decay_rate, memory.trust.value, memory.grant_id, memory.protected,
        _us(memory.recall_time), memory.recall_count, _us(memory.reinforce_time), _us(memory.expire_time),
        _us(memory.supersede_time), memory.supersedes, memory.superseded_by, memory.contested_with,
        None if judgement is None else (judgement.rule, judgement.reason, judgement.evidence),
        _us(memory.trusted_recall_time), memory.claims,
        tuple((m.entity_id, m.text, m.form.value, m.type.value, m.about, m.same_as) for m in memory.mentions),
        _us(memory.enrich_time), memory.author,
        None if memory.supersede_trust is None else memory.supersede_trust.value,
    ))  # fmt: skip


RECALL_TIME, RECALL_COUNT, TRUSTED_RECALL_TIME = 19, 20, 28  # their places in a record


def with_recalls(packed: bytes, recalled: Recalled) -> bytes:
    """Return a record with more recalls, a tenth of the work of making the memory of it."""
    values = list(marshal.loads(packed))  # noqa: S302  made by pack() in this process
    time, count, trusted = recalled
    values[RECALL_TIME] = to_us(time)
    values[RECALL_COUNT] += count
    if trusted is not None:
        values[TRUSTED_RECALL_TIME] = to_us(trusted)
    return marshal.dumps(tuple(values))


def unpack_once(packed: bytes) -> Memory:
    """Return the memory that was packed, and keep nothing of it."""
    (
        memory_id, agent_id, user_id, chat_id, content, created, happened, kind, subjects, tags, category, metadata,
        key, source, confidence, decay_rate, trust, grant_id, protected, recalled, recall_count, reinforced, expires,
        superseded, supersedes, superseded_by, contested_with, judgement, trusted, claims, mentions, enriched,
        author, supersede_trust,
    ) = marshal.loads(packed)  # noqa: S302  made by pack() in this process, never read from outside  # fmt: skip
    return Memory(
        id=memory_id,
        agent_id=agent_id,
        scope=Scope(user_id, chat_id),
        content=content,
        create_time=from_us(created),
        event_time=from_us(happened),
        kind=_KINDS[kind],
        subjects=subjects,
        tags=tags,
        category=category,
        metadata=metadata,
        key=key,
        source=Source(*source) if any(source) else _NO_SOURCE,
        confidence=confidence,
        decay_rate=decay_rate,
        trust=_TRUSTS[trust],
        grant_id=grant_id,
        protected=protected,
        recall_time=_time(recalled),
        recall_count=recall_count,
        reinforce_time=_time(reinforced),
        expire_time=_time(expires),
        supersede_time=_time(superseded),
        supersedes=supersedes,
        superseded_by=superseded_by,
        contested_with=contested_with,
        judgement=None if judgement is None else Judgement(*judgement),
        trusted_recall_time=_time(trusted),
        claims=claims,
        mentions=tuple(mention_of(*mention) for mention in mentions) if mentions else (),
        enrich_time=_time(enriched),
        author=author,
        supersede_trust=None if supersede_trust is None else _TRUSTS[supersede_trust],
    )


@lru_cache(maxsize=4096)
def _kept(make: Callable[[bytes], Memory], packed: bytes) -> Memory:
    return make(packed)


MOST_KEPT_BYTES = 1024  # of a record that is kept unpacked: 4,096 of them are 10 MB
BYTES_A_RECORD = 41  # of a bytes object beside its text, and its place
ERASED = b""  # what is left of the record of a memory that was purged


class Records:
    """
    The record of each document. What was loaded lies in one piece, as the store packed it; the rest one by one.

    One thread changes them, others read.
    """

    def __init__(self, piece: bytearray, lengths: NDArray[np.int64], unpack_loaded: Callable[[bytes], Memory]) -> None:
        """Take the records of documents 0 … n − 1 in one piece, the length of each, and what makes memories of them."""
        self._piece = piece
        self._ends = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=self._ends[1:])
        self._unpack_loaded = unpack_loaded
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

    def _record(self, row: int) -> tuple[bytes, Callable[[bytes], Memory]]:
        """Return the record of a document, ERASED if it was erased, and what makes a memory of it."""
        loaded = len(self._ends) - 1
        if row >= loaded:
            return self._late[row - loaded], unpack_once
        changed = self._changed.get(row)
        if changed is not None:
            return changed, unpack_once
        record = bytes(self._piece[self._ends[row] : self._ends[row + 1]])
        if record[:1] == b"\0":  # it was changed right now
            return self._changed.get(row, ERASED), unpack_once
        return record, self._unpack_loaded

    def _packed(self, row: int) -> bytes:
        """Return the record of a document as `pack` makes it."""
        record, make = self._record(row)
        return record if make is unpack_once or record is ERASED else pack(make(record))

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
        record, make = self._record(row)
        if record is ERASED:
            return None
        if len(record) > MOST_KEPT_BYTES:
            return make(record)
        memory = _kept(make, record)
        if self._record(row)[0] is ERASED:
            forget_unpacked()
            return None
        return memory

    def once(self, row: int) -> Memory | None:
        """Return the same, and keep nothing of it."""
        record, make = self._record(row)
        return None if record is ERASED else make(record)

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
