"""
The vectors of one scope, and exact cosine over them.

Up to 2,000 rows float32 is as fast as anything. Above, an int8 copy is scanned first (at 10,000 rows it takes 0.2 ms
where float32 takes 0.5 and more); each row knows how far its int8 form is off, so that every row that could still be
among the best is compared exactly.
"""

from __future__ import annotations

from typing import Any

import numkong
import numpy as np
from numpy.typing import NDArray

from memoryd.index.arrays import Growable

__all__ = ["Similarities", "Vectors"]

INT8_FROM = 2_000  # rows; below it one float32 product takes less than 0.1 ms

Floats = NDArray[np.float32]


class Similarities:
    """Cosines of one query with every row; `values` may be off by at most `slack` of the row."""

    __slots__ = ("_query", "_rows", "slack", "values")

    def __init__(self, values: Floats, slack: Floats | None, rows: Floats, query: Floats) -> None:
        self.values = values
        self.slack = slack
        self._rows = rows
        self._query = query

    def exact(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the cosines of some rows, computed in float64: shape (len(rows),)."""
        result: NDArray[np.float64] = self._rows[rows].astype(np.float64) @ self._query.astype(np.float64)
        return result


def _quantise(rows: Floats) -> tuple[NDArray[np.int8], Floats, Floats]:
    """Return int8 rows, their scales, and the length of what each row lost."""
    scales = np.maximum(np.abs(rows).max(axis=1), np.float32(1e-12)) / np.float32(127)
    codes = np.rint(rows / scales[:, None]).astype(np.int8)
    losses = np.linalg.norm(rows - codes * scales[:, None], axis=1).astype(np.float32)
    return codes, scales.astype(np.float32), losses


class Vectors:
    """One row a document; a document without a vector has zeros, so that its cosine is 0."""

    def __init__(self, dimensions: int, rows: Floats | None = None) -> None:
        """Take rows of shape (n, dimensions), float32, each of length 1 or 0."""
        self.dimensions = dimensions
        self._exact = Growable(np.float32, width=dimensions, values=rows)
        self._codes: Growable | None = None
        self._scales = Growable(np.float32)
        self._losses = Growable(np.float32)
        if len(self._exact) > INT8_FROM:
            self._compress()

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies."""
        return self._exact.nbytes + (0 if self._codes is None else self._codes.nbytes)

    def row(self, document: int) -> Floats:
        """Return the vector of a document."""
        row: Floats = self._exact.view()[document]
        return row

    def append(self, vector: Floats | None) -> None:
        """Add the next document's vector."""
        self._exact.append(0.0 if vector is None else vector)
        if self._codes is not None:
            codes, scales, losses = _quantise(self._exact.view()[-1:])
            self._scales.append(scales[0])
            self._losses.append(losses[0])
            self._codes.append(codes[0])
        elif len(self._exact) > INT8_FROM:
            self._compress()

    def _compress(self) -> None:
        rows = self._exact.view()
        pieces = [_quantise(rows[n : n + 4096]) for n in range(0, len(rows), 4096)]  # bounded scratch memory
        self._scales = Growable(np.float32, values=np.concatenate([piece[1] for piece in pieces]))
        self._losses = Growable(np.float32, values=np.concatenate([piece[2] for piece in pieces]))
        self._codes = Growable(np.int8, width=self.dimensions, values=np.concatenate([piece[0] for piece in pieces]))

    def compare(self, query: Floats, count: int) -> Similarities:
        """Return the cosines of a query of length 1 with the first count documents."""
        rows = self._exact.view(count)
        if self._codes is None:
            return Similarities(rows @ query, None, rows, query)
        codes, scales, losses = _quantise(query[None, :])
        products: Any = np.asarray(numkong.cdist(codes, self._codes.view(count), metric="dot"))
        values = products[0].astype(np.float32) * (self._scales.view(count) * scales[0])
        row_losses = self._losses.view(count)
        # |v·q − v'·q'| ≤ |v − v'|·|q| + |v'|·|q − q'|, with |q| = 1 and |v'| ≤ 1 + |v − v'|
        slack = row_losses + (1 + row_losses) * losses[0] + np.float32(1e-6)
        return Similarities(values, slack, rows, query)
