"""
The log on its way to a backup: what of it is still to be shipped, and the file that it begins with.

DuckDB changes its file only in a checkpoint, and then begins a new log. A file as it is after a checkpoint, with any
beginning of the log that follows, opens at the transaction in which that ends. So whoever makes checkpoints takes the
rest of the log first; the time between two of them is a generation.
"""

from __future__ import annotations

import os
from pathlib import Path

from memoryd.model.times import to_us
from memoryd.store.base import LoggedCommit, LogTail, Spool
from memoryd.store.duckdb.files import beside

__all__ = ["LogTails"]


class LogTails:
    """What of the log is still to be shipped; it belongs to the writer's thread."""

    def __init__(self, path: Path, spool: Spool) -> None:
        """Begin with the log as it is; for who ships too slowly no more is kept than the spool takes."""
        self._log, self._spool = beside(path, ".wal"), spool
        self.generation = 1
        self.is_copied = False
        """Whether the file is being copied."""
        self.is_new = True
        """Whether the file was not copied since it has changed: then another change would leave a gap."""
        self._taken = 0
        """The bytes of this log that were handed out."""
        self._size = 0
        self._commits: list[LoggedCommit] = []
        self._waiting: list[LogTail] = []
        self.lost = 0
        """How often log was lost on its way: what was written then is in the next copy of the file alone."""

    @property
    def size(self) -> int:
        """Bytes of the log."""
        try:
            return self._log.stat().st_size
        except FileNotFoundError:
            return 0

    def committed(self, commit_seq: int) -> int:
        """Note where a transaction ends; return the size of the log."""
        self._size = size = self.notice()
        self._commits.append(LoggedCommit(commit_seq, to_us(self._spool.clock()), size))
        return size

    def cut(self) -> None:
        """Keep what was added to the log since the last time, before it goes."""
        tail = self._added()
        if tail is not None:
            if sum(len(waiting.data) for waiting in self._waiting) + len(tail.data) > self._spool.most_bytes:
                self._lose()
            else:
                self._waiting.append(tail)

    def take(self, generation: int) -> list[LogTail]:
        """Hand out all that waits, the oldest first; of a generation that is not the named one all of its log."""
        self.notice()
        if generation != self.generation:
            self._taken = 0
            self._waiting = [tail for tail in self._waiting if tail.generation != self.generation]
        added = self._added()
        waiting = self.take_waiting()
        return waiting if added is None else [*waiting, added]

    def take_waiting(self) -> list[LogTail]:
        """Hand out what waits and is no longer in the log."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def checkpointed(self) -> None:
        """Begin a generation: the file has changed, and the log is empty."""
        self.generation += 1
        self.is_new, self.is_copied = True, False
        self._taken = self._size = 0
        self._commits = []

    def notice(self) -> int:
        """Return the size of the log; one that is shorter than it was has been folded in, and no one has asked."""
        size = self.size
        if size < max(self._size, self._taken):
            self._lose()
            self.checkpointed()
        return size

    def _added(self) -> LogTail | None:
        """Return what was added to the log since the last time; None: nothing."""
        start, size = self._taken, self.notice()
        start = min(start, self._taken)
        if size <= start:
            return None
        self._taken = size
        commits = tuple(commit for commit in self._commits if commit.end > start)
        return LogTail(self.generation, start, _read(self._log, start, size), commits)

    def _lose(self) -> None:
        self.lost += 1
        self._waiting = []


def _read(path: Path, start: int, end: int) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = b""
        while len(data) < end - start and (more := os.pread(handle, end - start - len(data), start + len(data))):
            data += more
        return data
    finally:
        os.close(handle)
