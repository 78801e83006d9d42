"""
The vectors of the later windows of long texts; the best of a text's own vector and of these is its cosine.

Later windows count a little less than the first: of many windows the best is high by chance alone. They are kept as the
int8 codes that are stored, a quarter of float32; only the question is rounded for a first look at all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numkong
import numpy as np
from numpy.typing import NDArray

from memoryd.index.arrays import Growable
from memoryd.index.vectors import ROUNDING, Similarities, quantised

__all__ = ["WindowSimilarities", "WindowVectors"]

# As equals the windows of long chat messages stand before short ones: see docs/benchmarks.md
SHARE = 0.9  # of its cosine
LOOKED_AT = 8  # windows of a text at the most, of those that may be its best
AT_ONCE = 4096  # windows
NOBODY = -1  # the document of a window that is gone

Floats = NDArray[np.float32]


class WindowVectors:
    """The later windows of documents; one thread changes them, others read."""

    def __init__(self, dimensions: int, windows: Mapping[int, bytes] = MappingProxyType({})) -> None:
        """Take those of some documents: see `Embedded.windows`."""
        codes = np.frombuffer(b"".join(windows.values()), dtype=np.int8).reshape(-1, max(1, dimensions)).copy()
        counts = [len(one) // max(1, dimensions) for one in windows.values()]
        self._codes = Growable(np.int8, values=codes)
        self._lengths = Growable(np.float32, values=_lengths(codes))
        self._of = Growable(np.int32, values=np.repeat([*windows], counts).astype(np.int32))
        """By window: the document."""
        stops = np.cumsum(counts, dtype=np.int64).tolist()
        self._runs = {
            document: [(stop - count, stop)] for document, count, stop in zip(windows, counts, stops, strict=True)
        }
        """By document: where its windows begin and end."""

    def __len__(self) -> int:
        return len(self._of)

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies."""
        return self._codes.nbytes + self._lengths.nbytes + self._of.nbytes

    def put(self, document: int, codes: bytes) -> None:
        """Give a document these windows in place of those that it has."""
        self.erase(np.array([document]))
        if codes:
            self.add(document, codes)

    def add(self, document: int, codes: bytes) -> None:
        """Give a document more windows."""
        rows = np.frombuffer(codes, dtype=np.int8).reshape(-1, self._codes.view().shape[1])
        start = len(self._of)
        self._codes.extend(rows)
        self._lengths.extend(_lengths(rows))
        self._of.extend(np.full(len(rows), document, dtype=np.int32))  # the last: who reads goes by it
        self._runs.setdefault(document, []).append((start, len(self._of)))

    def row(self, document: int) -> bytes:
        """Return those of a document."""
        codes = self._codes.view()
        return b"".join(codes[start:stop].tobytes() for start, stop in self._runs.get(document, ()))

    def erase(self, documents: NDArray[np.int64]) -> None:
        """Forget those of some documents."""
        for document in documents.tolist():
            for start, stop in self._runs.pop(document, ()):
                self._of.view()[start:stop] = NOBODY
                self._codes.view()[start:stop] = 0

    def with_those(self, first: Similarities, query: Floats) -> Similarities:
        """Return the cosines of a query with documents, each the better of its own and that of its best window."""
        of = self._of.view(len(self._of))
        if not len(of):
            return first
        return WindowSimilarities(first, self._codes.view(len(of)), self._lengths.view(len(of)), of, query)


def _lengths(codes: NDArray[np.int8]) -> Floats:
    lengths = np.empty(len(codes), dtype=np.float32)
    for n in range(0, len(codes), AT_ONCE):  # as floats they are four times as large
        lengths[n : n + AT_ONCE] = np.linalg.norm(codes[n : n + AT_ONCE].astype(np.float32), axis=1)
    return np.maximum(lengths, 1)


class WindowSimilarities(Similarities):
    """Cosines of one query with documents and their later windows."""

    __slots__ = ("_codes", "_first", "_lengths", "_of", "_rough")

    def __init__(
        self, first: Similarities, codes: NDArray[np.int8], lengths: Floats, of: NDArray[np.int32], query: Floats
    ) -> None:
        self._first, self._codes, self._lengths, self._query = first, codes, lengths, query
        self._of = np.where(of < len(first.values), of, NOBODY)  # what was appended meanwhile is not seen
        asked, scales, losses = quantised(query[None, :])
        products: Any = np.asarray(numkong.cdist(asked, codes, metric="dot"))
        self._rough = products[0].astype(np.float32) * scales[0] / lengths
        # |w·q − w·q'| ≤ |q − q'|, as a window is of length 1
        self.slack = max(first.slack, float(losses[0]) + ROUNDING)
        self.values = first.values.copy()
        there = np.flatnonzero(self._of != NOBODY)
        np.maximum.at(self.values, self._of[there], np.float32(SHARE) * self._rough[there])

    def exact(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the cosines of some rows; see `Similarities.exact`."""
        return np.maximum(self._first.exact(rows), self._best(rows))

    def are_later(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each row whether a later window is nearer than the first."""
        return self._best(rows) > self._first.exact(rows)

    def _best(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what the best later window of each row counts; −1 where there is none."""
        places = np.full(len(self.values) + 1, NOBODY, dtype=np.int64)  # the last is that of no one
        places[rows] = np.arange(len(rows))
        at = places[self._of]
        some = np.flatnonzero(at != NOBODY)
        rough = np.full(len(rows), -1.0, dtype=np.float32)
        np.maximum.at(rough, at[some], self._rough[some])
        some = some[self._rough[some] >= rough[at[some]] - 2 * self.slack]
        if len(some) > len(rows):  # of many that are alike a few will do
            some = some[np.lexsort((-self._rough[some], at[some]))]
            firsts = np.flatnonzero(np.diff(at[some], prepend=-1))
            place = np.arange(len(some)) - np.repeat(firsts, np.diff(firsts, append=len(some)))
            some = some[place < LOOKED_AT]
        cosines = np.einsum("ij,j->i", self._codes[some].astype(np.float64), self._query.astype(np.float64))
        best = np.full(len(rows), -1.0)
        np.maximum.at(best, at[some], SHARE * cosines / self._lengths[some])
        return best
