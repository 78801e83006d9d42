"""
The vectors of one scope, and exact cosine over them.

Up to 2,000 rows float32 is as fast as anything. Above, an int8 copy is scanned first (at 10,000 rows it takes 0.2 ms
where float32 takes 0.5 and more); it is known how far the int8 form of a row is off at the most, so that every row
that could still be among the best is compared exactly. A large scope that is loaded keeps its rows in two bytes a
number instead of float32; the first is the int8 form.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

import numkong
import numpy as np
from numpy.typing import NDArray

from memoryd.index.arrays import Growable

__all__ = ["ROUNDING", "Packed", "Similarities", "Vectors", "packed", "quantised", "similarities"]

ROUNDING = 1e-6  # of float32 sums over some hundred products
SCRATCH_ROWS = 4096  # rows that are made int8 at a time
LEAST_BLOCK_ROWS, MOST_BLOCK_ROWS = 64, 4096
INT8_FROM = 2_000  # rows; below it one float32 product takes less than 0.1 ms
CACHED_ROWS = 256  # that are packed at a time, in the processor's cache
STEPS = 254  # of the rests, to one of the codes

Floats = NDArray[np.float32]


class Similarities:
    """Cosines of one query with every row; each of `values` may be off by at most `slack`."""

    __slots__ = ("_query", "_vectors", "slack", "values")

    def __init__(self, values: Floats, slack: float, vectors: Vectors, query: Floats) -> None:
        self.values = values
        self.slack = slack
        self._vectors = vectors
        self._query = query

    def exact(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """
        Return the cosines of some rows, computed in float64: shape (len(rows),).

        Row by row in one order of sums, so that a cosine has the same bits whichever rows it is computed next to (BLAS
        adds up a matrix in blocks, whose bounds depend on its size and place).
        """
        found = self._vectors.rows(rows).astype(np.float64)
        result: NDArray[np.float64] = np.einsum("ij,j->i", found, self._query.astype(np.float64))
        return result

    def are_later(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some rows are nearest by a window behind the first."""
        return np.zeros(len(rows), dtype=np.bool_)


def similarities(rows: Floats) -> Floats:
    """Return the cosines of rows of length 1 with each other, the same bits for the same two: shape (n, n)."""
    result: Floats = np.einsum("ik,jk->ij", rows, rows)
    return result


def quantised(rows: Floats) -> tuple[NDArray[np.int8], Floats, Floats]:
    """Return int8 rows, their scales, and the length of what each row lost."""
    scales = _scales(rows)
    codes = np.rint(rows / scales[:, None]).astype(np.int8)
    losses = np.linalg.norm(rows - codes * scales[:, None], axis=1).astype(np.float32)
    return codes, scales, losses


def _scales(rows: Floats) -> Floats:
    scales: Floats = np.maximum(np.abs(rows).max(axis=1), np.float32(1e-12)) / np.float32(127)
    return scales


class Packed(NamedTuple):
    """Rows in two bytes a number: the int8 form, and what it loses in steps 254 times as fine, int8 as well."""

    codes: NDArray[np.int8]
    rests: NDArray[np.int8]
    scales: Floats
    losses: Floats
    """The length of the rests of each row: by how much a product with the codes alone may be off."""

    def those(self, wanted: NDArray[np.bool_]) -> Packed:
        """Return some of the rows."""
        return Packed(self.codes[wanted], self.rests[wanted], self.scales[wanted], self.losses[wanted])


def packed(rows: Floats) -> Packed:
    """Return rows in two bytes a number: a cosine is off by less than 5e-5 (measured), where int8 alone loses 4e-3."""
    made = Packed(
        np.empty(rows.shape, dtype=np.int8),
        np.empty(rows.shape, dtype=np.int8),
        np.empty(len(rows), dtype=np.float32),
        np.empty(len(rows), dtype=np.float32),
    )
    for n in range(0, len(rows), CACHED_ROWS):
        some = slice(n, n + CACHED_ROWS)
        scales = _scales(rows[some])
        left = rows[some] / scales[:, None]
        made.codes[some] = codes = np.rint(left)
        left -= codes
        left *= np.float32(STEPS)
        np.rint(left, out=left)
        made.rests[some] = left
        made.scales[some] = scales
        made.losses[some] = np.linalg.norm(left, axis=1) * (scales / np.float32(STEPS))
    return made


class _Block:
    """Some rows in places that never move: float32, and their int8 form once it is wanted."""

    def __init__(self, start: int, rows: Floats, count: int) -> None:
        self.start = start
        self._exact = rows
        self.count = count
        self.capacity = len(rows)
        self.codes: NDArray[np.int8] | None = None
        self.scales = self.losses = np.empty(0, dtype=np.float32)

    @property
    def nbytes(self) -> int:
        return self._exact.nbytes + (0 if self.codes is None else self.codes.nbytes)

    def rows(self, places: NDArray[np.int64]) -> Floats:
        return self._exact[places]

    def dot(self, query: Floats, count: int) -> Floats:
        products: Floats = self._exact[:count] @ query
        return products

    def erase(self, places: NDArray[np.int64]) -> None:
        self._exact[places] = 0.0
        if self.codes is not None:
            self.codes[places], self.losses[places] = 0, 0.0

    def compress(self) -> None:
        """Make the int8 form of what is there, with room for what will come."""
        capacity, dimensions = self._exact.shape
        self.scales, self.losses = np.empty(capacity, dtype=np.float32), np.empty(capacity, dtype=np.float32)
        codes = np.empty((capacity, dimensions), dtype=np.int8)
        for n in range(0, self.count, SCRATCH_ROWS):
            some = slice(n, min(n + SCRATCH_ROWS, self.count))
            codes[some], self.scales[some], self.losses[some] = quantised(self._exact[some])
        self.codes = codes

    def put(self, place: int, vector: Floats | None) -> None:
        self._exact[place] = 0.0 if vector is None else vector
        if self.codes is not None:
            row = slice(place, place + 1)
            self.codes[row], self.scales[row], self.losses[row] = quantised(self._exact[row])


class _PackedBlock(_Block):
    """The rows of a large scope, in two bytes a number."""

    def __init__(self, count: int, dimensions: int) -> None:
        self.start = 0
        self.count = self.capacity = count
        self.codes = self._known = np.zeros((count, dimensions), dtype=np.int8)
        self._rests = np.zeros((count, dimensions), dtype=np.int8)
        self.scales, self.losses = np.zeros(count, dtype=np.float32), np.zeros(count, dtype=np.float32)

    @property
    def nbytes(self) -> int:
        return 2 * self._rests.nbytes + self.scales.nbytes + self.losses.nbytes

    def rows(self, places: NDArray[np.int64]) -> Floats:
        found: Floats = self._rests[places].astype(np.float32)
        found *= np.float32(1 / STEPS)
        found += self._known[places]
        found *= self.scales[places, None]
        return found

    def erase(self, places: NDArray[np.int64]) -> None:
        for column in (self._known, self._rests, self.losses):
            column[places] = 0

    def fill(self, places: NDArray[np.int64] | slice, rows: Packed) -> None:
        self._known[places], self._rests[places] = rows.codes, rows.rests
        self.scales[places], self.losses[places] = rows.scales, rows.losses

    def put(self, place: int, vector: Floats | None) -> None:
        places = np.array([place])
        if vector is None:
            self.erase(places)
        else:
            self.fill(places, packed(vector[None, :]))


class Vectors:
    """
    One row a document; a document without a vector has zeros, so that its cosine is 0.

    Rows lie in blocks: what was loaded is one, what comes later goes into further ones of growing size, so that adding
    a row never copies the others and never moves what another thread reads.
    """

    def __init__(self, dimensions: int, rows: Floats | None = None) -> None:
        """Take rows of shape (n, dimensions), float32, each of length 1 or 0."""
        self.dimensions = dimensions
        loaded = np.empty((0, dimensions), dtype=np.float32) if rows is None else rows
        self._blocks: list[_Block] = [_Block(0, loaded, len(loaded))]
        self._to_fill: _PackedBlock | None = None
        self._there = Growable(np.bool_, values=np.asarray(loaded.any(axis=1)))
        """Which documents have a vector."""
        self.missing = len(loaded) - int(np.count_nonzero(self._there.view()))
        """Rows without a vector, of documents that are not dead."""
        self._compressed = False
        if len(loaded) > INT8_FROM:
            self._compress()

    @classmethod
    def to_fill(cls, dimensions: int, count: int) -> Vectors:
        """Return the vectors of a large scope, in two bytes a number, all of them still missing; see `fill`."""
        made = cls(dimensions)
        made._to_fill = _PackedBlock(count, dimensions)
        made._blocks = [made._to_fill]
        made._there = Growable(np.bool_, values=np.zeros(count, dtype=np.bool_))
        made.missing = count
        made._compressed = True
        return made

    def fill(self, documents: NDArray[np.int64], rows: Packed) -> None:
        """Give documents that were loaded without vectors theirs, those that have none so far; rising, none is dead."""
        if self._to_fill is None:
            return
        new = ~self._there.view()[documents]
        if not new.all():
            documents, rows = documents[new], rows.those(new)
        if len(documents):
            first, last = int(documents[0]), int(documents[-1])
            in_row = last - first == len(documents) - 1  # they rise
            self._to_fill.fill(slice(first, last + 1) if in_row else documents, rows)
        self._there.view()[documents] = True
        self.missing -= len(documents)

    def __len__(self) -> int:
        last = self._blocks[-1]
        return last.start + last.count

    def forget(self, document: int) -> None:
        """Count a document no more, as it is dead."""
        self.missing -= not self.has(document)

    @property
    def nbytes(self) -> int:
        """Bytes that the rows occupy."""
        return sum(block.nbytes for block in self._blocks) + len(self._there)

    def has(self, document: int) -> bool:
        """Whether a document has a vector."""
        return bool(self._there.view()[document])

    def row(self, document: int) -> Floats:
        """Return the vector of a document."""
        row: Floats = self.rows(np.array([document]))[0]
        return row

    def rows(self, documents: NDArray[np.int64]) -> Floats:
        """Return the vectors of some documents: shape (len(documents), dimensions)."""
        if len(self._blocks) == 1:
            return self._blocks[0].rows(documents)
        found = np.empty((len(documents), self.dimensions), dtype=np.float32)
        places = np.searchsorted([block.start for block in self._blocks], documents, side="right") - 1
        for n in np.unique(places):
            chosen = places == n
            found[chosen] = self._blocks[n].rows(documents[chosen] - self._blocks[n].start)
        return found

    def append(self, vector: Floats | None) -> None:
        """Add the next document's vector."""
        last = self._blocks[-1]
        if last.count == last.capacity:
            capacity = min(MOST_BLOCK_ROWS, max(LEAST_BLOCK_ROWS, 2 * last.capacity))
            last = _Block(last.start + last.count, np.empty((capacity, self.dimensions), dtype=np.float32), 0)
            if self._compressed:
                last.compress()
            self._blocks.append(last)
        last.put(last.count, vector)
        self._there.append(vector is not None)
        last.count += 1
        self.missing += vector is None
        if not self._compressed and len(self) > INT8_FROM:
            self._compress()

    def put(self, document: int, vector: Floats | None) -> None:
        """
        Give a document another vector, or none.

        In its place: a search that goes on at the same time may see half of it.
        """
        place = bisect_right(self._blocks, document, key=lambda block: block.start) - 1
        block = self._blocks[place]
        block.put(document - block.start, vector)
        self.missing += int(self.has(document)) - (vector is not None)
        self._there.view()[document] = vector is not None

    def erase(self, documents: NDArray[np.int64]) -> None:
        """Make the vectors of some documents zeros."""
        for block in self._blocks:
            places = documents - block.start
            block.erase(places[(places >= 0) & (places < block.count)])
        self._there.view()[documents] = False

    def _compress(self) -> None:
        for block in self._blocks:
            block.compress()
        self._compressed = True

    def bare(self, count: int) -> NDArray[np.bool_]:
        """Return which of the first documents have no vector."""
        bare: NDArray[np.bool_] = ~self._there.view(count)
        return bare

    def compare(self, query: Floats, count: int) -> Similarities:
        """Return the cosines of a query of length 1 with the first count documents."""
        pieces = [(block, min(block.count, count - block.start)) for block in self._blocks if block.start < count]
        if not self._compressed or any(block.codes is None for block, _ in pieces):
            return Similarities(_joined([block.dot(query, n) for block, n in pieces]), 0.0, self, query)
        codes, scales, losses = quantised(query[None, :])
        values, lost = [], 0.0
        for block, n in pieces:
            rows: Any = block.codes
            products: Any = np.asarray(numkong.cdist(codes, rows[:n], metric="dot")) if n else np.empty((1, 0))
            values.append(products[0].astype(np.float32) * (block.scales[:n] * scales[0]))
            lost = max(lost, float(block.losses[:n].max(initial=0)))
        # |v·q − v'·q'| ≤ |v − v'|·|q| + |v'|·|q − q'|, with |q| = 1 and |v'| ≤ 1 + |v − v'|
        slack = lost + (1 + lost) * float(losses[0]) + ROUNDING
        return Similarities(_joined(values), slack, self, query)


def _joined(pieces: list[Floats]) -> Floats:
    return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, dtype=np.float32), *pieces])
