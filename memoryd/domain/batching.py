"""How many memories long work takes at once; its turns on the event loop are in `memoryd.turns`."""

from __future__ import annotations

__all__ = ["READ_AT_ONCE", "SLICE"]

SLICE = 128
"""
Memories that are hidden or erased in one transaction: about 10 ms of the writer.

Each statement scans the ids of all memories, so that larger slices take less time in all, and searches meanwhile wait
longer: with 512 of 10,000 a third less, and the p99 of searches doubles (measured by `make bench`).
"""
READ_AT_ONCE = 1024  # memories: a scan is of the whole table, whatever of it is read
