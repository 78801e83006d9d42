"""When the log is folded into the file, and what is to be done before; it belongs to the writer's thread."""

from __future__ import annotations

import time

import duckdb

from memoryd.model.measures import Measures, Quantity
from memoryd.store.base import Spool
from memoryd.store.duckdb.files import WAL_SHARE, log_size
from memoryd.store.duckdb.opening import Opened
from memoryd.store.duckdb.shipping import LogTails
from memoryd.store.duckdb.space import FreeSpace

__all__ = ["IDLE_WAL_BYTES", "Checkpoints"]

IDLE_WAL_BYTES = 4 * 1024 * 1024  # a log below this replays in milliseconds
AUTOMATIC_SHARE = 2  # of DuckDB's memory: past it DuckDB makes a checkpoint by itself, if nothing else did
MOST_REWRITTEN_BYTES = 64 * 1024 * 1024
LOG_SHARE = 2 * WAL_SHARE  # of DuckDB's memory; a longer log is folded in


class Checkpoints:
    """The checkpoints of one database."""

    def __init__(self, opened: Opened, space: FreeSpace, spool: Spool | None, measures: Measures) -> None:
        """Keep the log for who ships it, if there is a spool."""
        self._opened, self._space, self._measures = opened, space, measures
        self.tails = None if spool is None else LogTails(opened.path, spool)
        self._due_bytes = 0
        self.is_compacting = False
        """Whether a copy may be attached: who asks for the sizes of files then waits for a checkpoint of the copy."""
        self.attach()

    def attach(self) -> None:
        """Take over the connection that the database has now: DuckDB makes no checkpoint before these do."""
        most = self._opened.memory_limit_bytes // AUTOMATIC_SHARE
        self._opened.connection.execute(f"SET wal_autocheckpoint = '{most}B'")
        self._measure_file()

    def are_due(self, commit_seq: int) -> bool:
        """Note that a transaction was committed; return whether the log is long enough to be folded in."""
        size = log_size(self._opened.path) if self.tails is None else self.tails.committed(commit_seq)
        return size > self._due_bytes

    def _measure_file(self) -> None:
        """
        Let the log have half the bytes that the file uses.

        What comes and goes again between two checkpoints is written to the file with the first of them, and leaves it
        with the next: of a small store that would soon be most of its file.
        """
        used = "SELECT used_blocks * block_size FROM pragma_database_size() WHERE database_name = current_database()"
        half = int(self._opened.connection.execute(used).fetchall()[0][0]) // 2
        self._due_bytes = min(max(half, IDLE_WAL_BYTES), self._opened.memory_limit_bytes // LOG_SHARE)

    def fold(self, least_bytes: int) -> None:
        """
        Checkpoint a log of at least so many bytes; a reader that is still busy only puts it off.

        Without room for it the log stays as it is and is replayed at the next start: running out of space in the
        middle would be the end of the database's process. Raises duckdb.Error.
        """
        size = log_size(self._opened.path)
        if not size or size < least_bytes or not self.has_room() or self._is_held(size):
            return
        try:
            self.checkpoint()
        except duckdb.TransactionException:
            return

    def has_room(self) -> bool:
        """Whether there is space to fold the log in."""
        return self._space.has_room(self.needed_bytes())

    def needed_bytes(self) -> int:
        """Return the space that it takes to fold the log in: rows next to those that it changes are written again."""
        path = self._opened.path
        return log_size(path) + min(path.stat().st_size, MOST_REWRITTEN_BYTES)

    def checkpoint(self) -> None:
        """Fold the log in, and keep it for who ships it. Raises duckdb.Error."""
        self.keep_log()
        began = time.perf_counter()
        self._opened.connection.execute("CHECKPOINT")
        self._measures.measure(Quantity.CHECKPOINT, time.perf_counter() - began)
        if self.tails is not None:
            self.tails.checkpointed()
        if not self.is_compacting:
            self._measure_file()

    def keep_log(self) -> None:
        """Keep what was added to the log for who ships it, as it is about to go."""
        if self.tails is not None:
            self.tails.cut()

    def release(self) -> bool:
        """Let the file change; return whether it was held until now."""
        tails = self.tails
        if tails is None:
            return False
        tails.notice()
        was_copied = tails.is_copied
        tails.is_copied, tails.is_new = False, tails.is_new and not was_copied
        return was_copied

    def end(self) -> None:
        """Wait for no one any more."""
        if self.tails is not None:
            self.tails.is_copied = self.tails.is_new = False

    def _is_held(self, log_bytes: int) -> bool:
        """Whether the file is being copied, or is about to be; a log that gets too long does not wait for that."""
        tails = self.tails
        if tails is None or not (tails.is_copied or tails.is_new):
            return False
        if log_bytes <= self._opened.memory_limit_bytes // WAL_SHARE:
            return True
        tails.is_copied = tails.is_new = False
        return False
