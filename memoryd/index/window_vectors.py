"""
The vectors of the later windows of long texts; the best of a text's own vector and of these is its cosine.

Later windows count a little less than the first: of many windows the best is high by chance alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from memoryd.index.arrays import Growable
from memoryd.index.vectors import ROUNDING, Similarities, Vectors

__all__ = ["WindowSimilarities", "WindowVectors"]

# As equals the windows of long chat messages stand before short ones: see docs/benchmarks.md
SHARE = 0.9  # of its cosine
NOBODY = -1  # the document of a window that is gone

Floats = NDArray[np.float32]


def _rows_of(codes: bytes, dimensions: int) -> Floats:
    """Return vectors of length 1 out of what `Embedded.windows` holds: shape (n, dimensions)."""
    rows = np.frombuffer(codes, dtype=np.int8).reshape(-1, dimensions).astype(np.float32)
    return np.ascontiguousarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


class WindowVectors:
    """The later windows of documents; one thread changes them, others read."""

    def __init__(self, dimensions: int, windows: Mapping[int, bytes] = MappingProxyType({})) -> None:
        """Take those of some documents: see `Embedded.windows`."""
        held = [(document, _rows_of(codes, dimensions)) for document, codes in windows.items()]
        rows = np.concatenate([np.zeros((0, dimensions), dtype=np.float32), *(some for _, some in held)])
        of = np.repeat([document for document, _ in held], [len(some) for _, some in held]).astype(np.int32)
        self._codes = dict(windows)
        self._dimensions = dimensions
        self._vectors = Vectors(dimensions, rows)
        self._of = Growable(np.int32, values=of)
        """By window: the document."""

    def __len__(self) -> int:
        return len(self._of)

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies."""
        return self._vectors.nbytes + self._of.nbytes + len(self._of) * self._dimensions

    def put(self, document: int, codes: bytes) -> None:
        """Give a document these windows in place of those that it has."""
        self.erase(np.array([document]))
        if codes:
            self.add(document, codes)

    def add(self, document: int, codes: bytes) -> None:
        """Give a document more windows."""
        self._codes[document] = self._codes.get(document, b"") + codes
        for row in _rows_of(codes, self._dimensions):
            self._vectors.append(row)
            self._of.append(document)

    def row(self, document: int) -> bytes:
        """Return those of a document."""
        return self._codes.get(document, b"")

    def erase(self, documents: NDArray[np.int64]) -> None:
        """Forget those of some documents."""
        held = [document for document in documents.tolist() if self._codes.pop(document, b"")]
        if held:
            gone = np.flatnonzero(np.isin(self._of.view(), held))
            self._of.view()[gone] = NOBODY
            self._vectors.erase(gone)

    def with_those(self, first: Similarities, query: Floats) -> Similarities:
        """Return the cosines of a query with documents, each the better of its own and that of its best window."""
        of = self._of.view(len(self._of))
        if not len(of):
            return first
        return WindowSimilarities(first, self._vectors.compare(query, len(of)), of)


class WindowSimilarities(Similarities):
    """Cosines of one query with documents and their later windows."""

    __slots__ = ("_first", "_of", "_windows")

    def __init__(self, first: Similarities, windows: Similarities, of: NDArray[np.int32]) -> None:
        self._first, self._windows = first, windows
        self._of = np.where(of < len(first.values), of, NOBODY)  # what was appended meanwhile is not seen
        self.slack = max(first.slack, windows.slack)
        self.values = first.values.copy()
        there = np.flatnonzero(self._of != NOBODY)
        np.maximum.at(self.values, self._of[there], np.float32(SHARE) * windows.values[there])

    def exact(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the cosines of some rows; see `Similarities.exact`."""
        return np.maximum(self._first.exact(rows), self._best(rows))

    def are_later(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return of which rows a later window is nearer than the first."""
        return self._best(rows) > self._first.exact(rows)

    def _best(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what the best later window of each row counts; −1 where there is none."""
        places = np.full(len(self.values) + 1, NOBODY, dtype=np.int64)  # the last is that of nobody
        places[rows] = np.arange(len(rows))
        at = places[self._of]
        some = np.flatnonzero(at != NOBODY)
        rough = np.full(len(rows), -1.0, dtype=np.float32)
        np.maximum.at(rough, at[some], self._windows.values[some])
        some = some[self._windows.values[some] >= rough[at[some]] - 2 * (self._windows.slack + ROUNDING)]
        best = np.full(len(rows), -1.0)
        np.maximum.at(best, at[some], SHARE * self._windows.exact(some))
        return best
