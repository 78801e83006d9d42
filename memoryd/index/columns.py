"""
What a filter looks at: one array for each property of the documents, and one list of documents for each filter term.

One thread appends; others read. `alive` is the last column to grow, so that who has read it finds all others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.index.arrays import Growable, Pieces
from memoryd.model.batch import NEVER, Batch
from memoryd.model.filter_terms import (
    entity_terms,
    excluded_terms,
    filter_terms_of,
    key_of,
    required_terms,
    subject_terms,
    values_of,
)
from memoryd.model.memory import Kind, Memory
from memoryd.model.query import Filter
from memoryd.model.times import to_us
from memoryd.model.trust import Trust
from memoryd.model.where import All, Not, OneOf, Where

__all__ = ["KIND_CODES", "Columns", "Facts", "Loading", "Row"]

KIND_CODES = {kind: code for code, kind in enumerate(Kind)}
BYTES_A_TERM = 300  # a growing array and its name
BYTES_A_ROW = 56  # of all columns, and of one term
Row = tuple[int, int, int, int, int, int, float, int]
"""
Kind, create_time, event_time, expire_time and supersede_time in microseconds, the weight of its trust, confidence,
recall_count.
"""
DTYPES = (np.uint8, np.int64, np.int64, np.int64, np.int64, np.uint8, np.float64, np.int64)  # of a Row


class Facts(NamedTuple):
    """What some documents are chosen by: arrays of one length."""

    documents: NDArray[np.int64]
    created: NDArray[np.int64]
    """create_time in microseconds."""
    trusts: NDArray[np.uint8]
    confidences: NDArray[np.float64]
    recalls: NDArray[np.int64]


class Loading:
    """What columns begin with."""

    def __init__(self) -> None:
        self.rows = Pieces(*DTYPES)
        """The columns in the order of Row."""
        self._numbers: dict[tuple[str, ...], int] = {}
        """The terms that documents have together, with a number for them."""
        self._facets = Pieces(np.int32)
        """The number of each document."""

    def add(self, batch: Batch, kinds: NDArray[np.uint8]) -> None:
        """Take the next documents, of these KIND_CODES."""
        self.rows.add(kinds, *batch.times, batch.trusts, batch.confidences, batch.recalls)
        number = self._numbers.setdefault
        facets = [number(terms, len(self._numbers)) for terms in batch.facets]
        self._facets.add(np.array(facets, dtype=np.int32))

    def filter_terms(self) -> dict[str, Growable]:
        """Return the documents of each term, in order."""
        numbers = self._facets.joined()[0].view()
        order = np.argsort(numbers, kind="stable").astype(np.int32)
        starts = np.searchsorted(numbers[order], np.arange(len(self._numbers) + 1))
        pieces: dict[str, list[NDArray[np.int32]]] = {}
        for number, terms in enumerate(self._numbers):
            for term in terms:
                pieces.setdefault(term, []).append(order[starts[number] : starts[number + 1]])
        return {term: Growable(np.int32, values=np.sort(np.concatenate(some))) for term, some in pieces.items()}


class Columns:
    """Documents 0 … count − 1."""

    def __init__(self, loading: Loading | None = None) -> None:
        """Begin with what is loaded, all of it alive."""
        loading = loading or Loading()
        columns = loading.rows.joined()
        self.kinds, self.created, self._happened, self._expires, self._superseded = columns[:5]
        self.trusts, self.confidences, self.recalls = columns[5:]
        kinds = self.kinds.view()
        self.alive = Growable(np.bool_, values=np.ones(len(kinds), dtype=np.bool_))
        self.filter_terms = loading.filter_terms()
        self._of_key: dict[str, dict[str, None]] = {}
        """By key of metadata: the terms that are of it."""
        for term in self.filter_terms:
            self._note_key(term)
        self._of_kind: list[int] = np.bincount(kinds, minlength=len(KIND_CODES)).tolist()  # dead ones too
        self._expiring = int(np.count_nonzero(self._expires.view() != NEVER))
        self._hidden_superseded = int(np.count_nonzero(self._superseded.view() != NEVER))

    def trusted(self, count: int) -> NDArray[np.bool_]:
        """Return which of the first documents are of higher trust than a sandbox's."""
        found: NDArray[np.bool_] = self.trusts.view(count) > Trust.SANDBOX.weight
        return found

    def register(self, document: int, memory: Memory) -> Row:
        """List a document under its filter terms, and return its row."""
        self._of_kind[KIND_CODES[memory.kind]] += 1
        self._expiring += memory.expire_time is not None
        self._hidden_superseded += memory.supersede_time is not None
        for term in filter_terms_of(memory):
            column = self.filter_terms.get(term)
            if column is None:
                column = self.filter_terms[term] = Growable(np.int32)
                self._note_key(term)
            column.append(document)
        return (
            KIND_CODES[memory.kind],
            to_us(memory.create_time),
            to_us(memory.event_time),
            NEVER if memory.expire_time is None else to_us(memory.expire_time),
            NEVER if memory.supersede_time is None else to_us(memory.supersede_time),
            memory.trust.weight,
            memory.confidence,
            memory.recall_count,
        )

    def append(self, row: Row) -> None:
        """Add a row at the end."""
        columns = (self.kinds, self.created, self._happened, self._expires, self._superseded, self.trusts)
        for column, value in zip((*columns, self.confidences, self.recalls), row, strict=True):
            column.append(value)
        self.alive.append(True)

    def unlist(self, gone: NDArray[np.int64], terms: Collection[str]) -> None:
        """Take documents out of the lists of some filter terms."""
        for term in terms:
            column = self.filter_terms.get(term)
            if column is None:
                continue
            column = column.without(gone)
            if len(column):
                self.filter_terms[term] = column
            else:
                del self.filter_terms[term]
                self._forget_key(term)

    def _note_key(self, term: str) -> None:
        key = key_of(term)
        if key:
            self._of_key.setdefault(key, {})[term] = None

    def _forget_key(self, term: str) -> None:
        key = key_of(term)
        of_key = self._of_key.get(key, {})
        of_key.pop(term, None)
        if not of_key:
            self._of_key.pop(key, None)

    @property
    def nbytes(self) -> int:
        """Bytes that they occupy, estimated; the lists roughly, as counting them takes long."""
        return len(self.alive) * BYTES_A_ROW + len(self.filter_terms) * BYTES_A_TERM

    def is_live(self, document: int, now: datetime) -> bool:
        """Whether a document is there, not superseded and not expired."""
        there = bool(self.alive.view()[document]) and self._superseded.view()[document] == NEVER
        return there and int(self._expires.view()[document]) > to_us(now)

    def facts(self, documents: NDArray[np.int64], now: datetime) -> Facts:
        """Return what the live ones of some documents are chosen by."""
        there = self.alive.view()[documents] & (self._superseded.view()[documents] == NEVER)
        live = documents[there & (self._expires.view()[documents] > to_us(now))]
        columns = (self.created, self.trusts, self.confidences, self.recalls)
        return Facts(live, *(column.view()[live] for column in columns))

    def mask(self, alive: NDArray[np.bool_], wanted: Filter, now: datetime) -> NDArray[np.bool_]:
        """Return which of the documents that are `alive`, which is changed, pass a filter: Filter.admits by columns."""
        count = len(alive)
        if self._hidden_superseded and not wanted.include_superseded:
            alive &= self._superseded.view(count) > (NEVER - 1 if wanted.as_of is None else to_us(wanted.as_of))
        if self._expiring and not wanted.include_expired:
            alive &= self._expires.view(count) > to_us(wanted.as_of or now)
        if wanted.as_of is not None:
            alive &= self.created.view(count) <= to_us(wanted.as_of)
        unwanted = [
            code for kind, code in KIND_CODES.items() if self._of_kind[code] and kind not in wanted.wanted_kinds
        ]
        if unwanted:  # a column that tells nothing apart is not looked at
            alive &= ~np.isin(self.kinds.view(count), unwanted)
        for column, start, end in (
            (self._happened, wanted.event_time_from, wanted.event_time_to),
            (self.created, wanted.create_time_from, wanted.create_time_to),
        ):
            if start is not None:
                alive &= column.view(count) >= to_us(start)
            if end is not None:
                alive &= column.view(count) < to_us(end)
        if wanted.subjects:
            alive &= self._having(subject_terms(wanted), count)
        for term in required_terms(wanted):
            alive &= self._having([term], count)
        if wanted.condition is not None:
            alive &= self._meeting(wanted.condition, count)
        excluded = excluded_terms(wanted)
        if excluded:
            alive &= ~self._having(excluded, count)
        return alive

    def mentioning(self, entity_ids: Collection[str], count: int) -> NDArray[np.bool_]:
        """Return which of the first documents mention one of some entities."""
        return self._having(entity_terms(entity_ids), count)

    def _meeting(self, condition: Where, count: int) -> NDArray[np.bool_]:
        """Return which of the first documents meet a condition: each value of a key is looked at once."""
        if isinstance(condition, Not):
            return ~self._meeting(condition.part, count)
        if isinstance(condition, All | OneOf):
            masks = [self._meeting(part, count) for part in condition.parts]
            joined = np.logical_and if isinstance(condition, All) else np.logical_or
            found: NDArray[np.bool_] = joined.reduce(masks)
            return found
        known = tuple(self._of_key.get(condition.key, ()))  # copied at once, as another thread may add to it
        terms = [term for term, value in values_of(condition.key, known) if condition.admits(value)]
        return self._having(terms, count)

    def _having(self, terms: Sequence[str], count: int) -> NDArray[np.bool_]:
        mask = np.zeros(count, dtype=np.bool_)
        for term in terms:
            column = self.filter_terms.get(term)
            if column is not None:
                documents = column.view()
                mask[documents[: np.searchsorted(documents, count)]] = True
        return mask
