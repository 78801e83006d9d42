"""Compaction as a whole: copy while calls go on, catch up, and put the copy into the database's place."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

import duckdb

from memoryd.errors import Unavailable
from memoryd.model.reports import Compaction
from memoryd.store.duckdb.compact import COPY, catch_up, copy_to, detach, swap
from memoryd.store.duckdb.files import STORAGE_VERSION, beside
from memoryd.store.duckdb.opening import Opened
from memoryd.store.duckdb.readers import Readers
from memoryd.store.duckdb.writer import Writer
from memoryd.store.refusal import StoreRefused

__all__ = ["Compactor", "size_of"]

ATTEMPTS = 5
PAUSE_S = 0.5  # so long may the new file wait for reads that are under way


def size_of(path: Path) -> int:
    """Return the bytes of a database and its log."""
    files = [path, beside(path, ".wal")]
    return sum(file.stat().st_size for file in files if file.exists())


class Compactor:
    """Rewrites one database."""

    def __init__(self, opened: Opened, writer: Writer, readers: Readers, *, min_free_bytes: int) -> None:
        self._opened = opened
        self._writer = writer
        self._readers = readers
        self._min_free = min_free_bytes
        self._compacting = False

    async def compact(self) -> Compaction:
        """Rewrite the files; see FileBacked.compact."""
        if self._compacting:
            raise Unavailable("the database is being compacted already")
        path = self._opened.path
        before = size_of(path)
        free = os.statvfs(path.parent)
        needed = path.stat().st_size + self._min_free
        if free.f_bavail * free.f_frsize < needed:
            raise Unavailable(f"compacting needs {needed >> 20} MiB of free space next to the database")
        self._compacting = True
        pauses: list[float] = []
        try:
            for attempt in range(ATTEMPTS):
                await self._attempt(pauses, is_last=attempt + 1 == ATTEMPTS)
                if pauses:
                    break
        finally:
            self._compacting = False
            beside(path, COPY).unlink(missing_ok=True)
        return Compaction(before, size_of(path), timedelta(seconds=pauses[-1]))

    async def _attempt(self, pauses: list[float], *, is_last: bool) -> None:
        seq = await self._readers.read(self._copy)
        try:
            await self._writer.run(partial(self._take_copy, seq, pauses))
        except Unavailable:
            if is_last:
                raise
        finally:
            if not pauses and not self._readers.closed:
                await self._writer.run(detach)

    def _copy(self) -> int:
        cursor = self._readers.cursor()
        detach(cursor)
        return copy_to(cursor, beside(self._opened.path, COPY), storage_version=STORAGE_VERSION)

    def _take_copy(self, seq: int, pauses: list[float], con: duckdb.DuckDBPyConnection) -> None:
        """In the writer's thread: bring the copy up to date and put it into the database's place."""
        began = time.monotonic()
        tails = self._writer.checkpoints.tails
        if tails is not None and tails.is_copied:
            raise Unavailable("a backup is being taken; compact again")
        if catch_up(con, seq):
            raise Unavailable("something was purged while it was copied")
        if not self._readers.gate.shut(PAUSE_S):
            raise Unavailable("long reads are under way; compact again")
        try:
            self._writer.checkpoints.checkpoint()
            self._readers.close_cursors()
            con.close()
            try:
                swap(self._opened.path)
                pauses.append(time.monotonic() - began)
            finally:
                self._reopen()
        finally:
            self._readers.gate.open()

    def _reopen(self) -> None:
        try:
            self._opened.reconnect()
        except Exception as error:  # noqa: BLE001  whatever it is, there is no database to serve from
            reason = str(error) if isinstance(error, StoreRefused) else type(error).__name__
            self._writer.fail(f"the database could not be opened again: {reason}")
            raise Unavailable("the database could not be opened again; memoryd is restarting") from None
        self._writer.rebind()
