"""Arrays that grow at their end while others read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["Growable", "Pieces", "kth_largest"]

SAMPLED = 64  # one of so many of a large array is looked at first
ENOUGH = 2.0  # times as many as are wanted, by the sample, so that seldom fewer are


class Growable:
    """
    An array that one thread appends to and others read.

    What a reader has taken never changes its place: growing allocates a new block and leaves the old block to those who
    hold it.
    """

    __slots__ = ("_block", "_count")

    def __init__(self, dtype: DTypeLike, *, width: int | None = None, values: NDArray[Any] | None = None) -> None:
        if values is None:
            values = np.empty((0,) if width is None else (0, width), dtype=dtype)
        self._block: NDArray[Any] = values
        self._count = len(values)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, spare room included."""
        return self._block.nbytes

    def append(self, value: Any) -> None:
        """Add one element (a row where it has a width) at the end."""
        self._make_room(1)
        self._block[self._count] = value
        self._count += 1

    def extend(self, values: NDArray[Any]) -> None:
        """Add some elements at the end."""
        self._make_room(len(values))
        self._block[self._count : self._count + len(values)] = values
        self._count += len(values)

    def _make_room(self, more: int) -> None:
        count = self._count
        if count + more > len(self._block):
            block = np.empty(
                (max(4, count + more, count + count // 2), *self._block.shape[1:]), dtype=self._block.dtype
            )
            block[:count] = self._block[:count]
            self._block = block

    def without(self, gone: NDArray[Any]) -> Growable:
        """Return a new array of the elements that are none of some."""
        values = self.view()
        return Growable(values.dtype, values=values[~np.isin(values, gone)])

    def view(self, count: int | None = None) -> NDArray[Any]:
        """Return the first count elements, or all; writing to it writes to the array."""
        count = self._count if count is None else count
        return self._block[:count]


class Pieces:
    """Arrays of one length that come piece by piece."""

    def __init__(self, *dtypes: DTypeLike) -> None:
        self._pieces: list[list[NDArray[Any]]] = [[np.empty(0, dtype=dtype)] for dtype in dtypes]

    def add(self, *pieces: NDArray[Any]) -> None:
        """Take the next piece of each."""
        for known, piece in zip(self._pieces, pieces, strict=True):
            known.append(piece)

    def joined(self) -> list[Growable]:
        """Return the arrays, which may grow from now on."""
        columns = (np.concatenate(known) for known in self._pieces)
        return [Growable(column.dtype, values=column) for column in columns]


def kth_largest(values: NDArray[np.float32], k: int) -> np.float32:
    """
    Return the kth largest of at least k values: what np.partition says, in a quarter of the time for a million.

    A sample tells below which value there is surely nothing of interest; only what is above is ordered.
    """
    sample = values[::SAMPLED]
    place = len(sample) - int(k * ENOUGH / SAMPLED) - 1
    if place > 0:
        above = values[values >= np.partition(sample, place)[place]]
        if len(above) >= k:
            values = above
    kth: np.float32 = np.partition(values, len(values) - k)[len(values) - k]
    return kth
