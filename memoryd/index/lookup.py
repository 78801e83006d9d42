"""Documents by their ids and by numbers: a few bytes for each that was loaded, a dictionary for the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ids", "Lookup", "numbers_of"]

NOBODY = -1
AT_ONCE = 8192  # texts, so that other threads go on meanwhile
LEAST = np.iinfo(np.int64).min
BYTES_AN_ID = 200  # and its place in a dictionary


def numbers_of(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return a number for each text, another one in each process (Python salts it): shape (len(texts),)."""
    made = np.empty(len(texts), dtype=np.int64)
    for n in range(0, len(texts), AT_ONCE):
        some = texts[n : n + AT_ONCE]
        made[n : n + AT_ONCE] = np.fromiter(map(hash, some), dtype=np.int64, count=len(some))
    return made


class Lookup:
    """Documents 0 … n − 1 by a number that several may share; 12 bytes each. It does not grow."""

    def __init__(self, numbers: NDArray[np.int64]) -> None:
        """Take the number of each document."""
        order = np.argsort(numbers, kind="stable")
        self._numbers = numbers[order]
        self._documents = order.astype(np.int32)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies."""
        return self._numbers.nbytes + self._documents.nbytes

    def of(self, number: int) -> list[int]:
        """Return the documents of a number, in order."""
        start, end = self._bounds(number)
        return [document for document in self._documents[start:end].tolist() if document != NOBODY]

    def remove(self, number: int, document: int) -> None:
        """Forget the number of a document; one that is not there is fine."""
        start, end = self._bounds(number)
        held = self._documents[start:end]
        held[held == document] = NOBODY
        if (held == NOBODY).all():  # the number goes with the last one; that of those before it keeps the order
            self._numbers[start:end] = self._numbers[start - 1] if start else LEAST

    def _bounds(self, number: int) -> tuple[int, int]:
        wanted, numbers = np.int64(number), self._numbers
        start = int(numbers.searchsorted(wanted))
        if start == len(numbers) or numbers[start] != wanted:
            return start, start
        return start, int(numbers.searchsorted(wanted, side="right"))


class Ids:
    """Which document is which memory now."""

    def __init__(self, numbers: NDArray[np.int64], is_it: Callable[[int, str], bool]) -> None:
        """Take the `numbers_of` the ids of documents 0 … n − 1; `is_it` tells whether one of these is a memory now."""
        self._loaded = Lookup(numbers)
        self._is_it = is_it
        self._late: dict[str, int] = {}

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated."""
        return self._loaded.nbytes + len(self._late) * BYTES_AN_ID

    def get(self, memory_id: str) -> int | None:
        """Return the document of a memory; None if it is not there."""
        document = self._late.get(memory_id)
        if document is not None:
            return document
        return next((one for one in self._loaded.of(hash(memory_id)) if self._is_it(one, memory_id)), None)

    def put(self, memory_id: str, document: int) -> None:
        """Note the document of a memory that came after those that were loaded."""
        self._late[memory_id] = document

    def pop(self, memory_id: str) -> int | None:
        """Return the document of a memory and forget it, if it came late; of the others `is_it` says no from now on."""
        document = self.get(memory_id)
        self._late.pop(memory_id, None)
        return document
