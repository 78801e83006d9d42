"""How much long work takes at once; its turns on the event loop are in `memoryd.turns`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

__all__ = ["READ_AT_ONCE", "SLICE", "in_parts"]

T = TypeVar("T")

SLICE = 128
"""
Memories that are hidden or erased in one transaction: about 10 ms of the writer.

Each statement scans the ids of all memories, so that larger slices take less time in all, and searches meanwhile wait
longer: with 512 of 10,000 a third less, and the p99 of searches doubles (measured by `make bench`).
"""
READ_AT_ONCE = 1024  # memories: a scan is of the whole table, whatever of it is read


def in_parts(
    items: Iterable[T], size_of: Callable[[T], int], most_size: int, *, most: int = sys.maxsize
) -> Iterator[list[T]]:
    """Yield items in parts of at most so many, which have together at most that size; a larger one comes alone."""
    part: list[T] = []
    size = 0
    for item in items:
        if part and (len(part) == most or size + size_of(item) > most_size):
            yield part
            part, size = [], 0
        part.append(item)
        size += size_of(item)
    if part:
        yield part
