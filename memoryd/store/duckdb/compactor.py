"""Compaction as a whole: copy while calls go on, catch up, and put the copy into the database's place."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

import duckdb

from memoryd.errors import LimitExceeded, Unavailable
from memoryd.model.reports import Compaction
from memoryd.store.duckdb.compact import COPY, Copied, catch_up, copy_to, detach, swap
from memoryd.store.duckdb.damage import damage_of
from memoryd.store.duckdb.files import STORAGE_VERSION, beside, size_of
from memoryd.store.duckdb.opening import Opened
from memoryd.store.duckdb.readers import Readers
from memoryd.store.duckdb.writer import Writer
from memoryd.store.refusal import StoreRefused

__all__ = ["Compactor"]

ATTEMPTS = 5
LONG_ROWS_TIMES = (
    4  # the memory of store.memory_limit_bytes, while rows are copied that need it; of memories 90 KB each
)
PAUSE_S = 0.5  # so long may the new file wait for reads that are under way
LOOK_S = 0.05  # how often the free space is looked at while a copy is written


class CopyFailed(Unavailable):
    """The copy could not be written; trying again at once would not help."""


class Compactor:
    """Rewrites one database."""

    def __init__(self, opened: Opened, writer: Writer, readers: Readers) -> None:
        self._opened = opened
        self._writer = writer
        self._readers = readers
        self._has_more = False  # of memory than is usual

    async def compact(self) -> Compaction:
        """
        Rewrite the files; see FileBacked.compact.

        A copy that was overtaken by a purge holds bytes of that, and is made again. Where purges do not end the last
        one is taken: it is without those of before.
        """
        checkpoints = self._writer.checkpoints
        if checkpoints.is_compacting:
            raise Unavailable("the database is being compacted already")
        path = self._opened.path
        before = size_of(path)
        space, needed = self._writer.space, before + checkpoints.needed_bytes()
        if not space.has_room(needed):
            needed = (needed + space.min_free_bytes) >> 20
            raise Unavailable(f"compacting needs {needed} MiB of free space next to the database; nothing was changed")
        checkpoints.is_compacting = True
        pauses: list[float] = []
        try:
            for attempt in range(ATTEMPTS):
                await self._attempt(pauses, is_last=attempt + 1 == ATTEMPTS)
                if pauses:
                    break
        finally:
            checkpoints.is_compacting = False
            for suffix in (COPY, f"{COPY}.wal"):
                beside(path, suffix).unlink(missing_ok=True)
            had_more, self._has_more = self._has_more, False
            if had_more and not pauses and not self._readers.closed:  # a new file is opened with the usual limit
                await self._set_memory(1)
        return Compaction(before, size_of(path), timedelta(seconds=pauses[-1]))

    async def _attempt(self, pauses: list[float], *, is_last: bool) -> None:
        try:
            copied = await self._copied()
            await self._writer.run(partial(self._take_copy, copied, pauses, takes_any=is_last))
        except Unavailable as error:
            if is_last or isinstance(error, CopyFailed):
                raise
        finally:
            if not pauses and not self._readers.closed:
                await self._writer.run(detach)

    async def _copied(self) -> Copied:
        """Copy; where that takes more memory than there is, as of 2,048 very long rows, once more with more of it."""
        try:
            return await self._readers.read(self._copy)
        except LimitExceeded:
            if self._has_more:
                raise
            self._has_more = True
            await self._set_memory(LONG_ROWS_TIMES)
            return await self._readers.read(self._copy)

    async def _set_memory(self, times: int) -> None:
        most = times * self._opened.memory_limit_bytes
        await self._writer.run(lambda con: con.execute(f"SET memory_limit = '{most}B'"))

    def _copy(self) -> Copied:
        cursor = self._readers.cursor()
        detach(cursor)
        with self._written(cursor):
            return copy_to(cursor, beside(self._opened.path, COPY), storage_version=STORAGE_VERSION)

    @contextmanager
    def _written(self, con: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Stop what is written once space is short; Unavailable where the copy could not be written."""
        done, short = threading.Event(), threading.Event()

        def watch() -> None:
            while not done.wait(LOOK_S):
                if self._writer.space.is_short:
                    short.set()
                    con.interrupt()  # again and again, as one that comes between two statements is lost

        watcher = threading.Thread(target=watch, name="compaction-space", daemon=True)
        watcher.start()
        try:
            yield
        except duckdb.Error as error:
            done.set()
            watcher.join()
            if isinstance(error, duckdb.OutOfMemoryException) or damage_of(self._opened.path, error):
                raise
            # raises where it is the database itself that has failed, and ends what the copy has left open
            con.execute("SELECT count(*) FROM commits").fetchall()
            why = "the disk has too little space" if short.is_set() else type(error).__name__
            raise CopyFailed(f"the copy could not be written ({why}); the database stays as it was") from None
        finally:
            done.set()
            watcher.join()

    def _take_copy(
        self, copied: Copied, pauses: list[float], con: duckdb.DuckDBPyConnection, *, takes_any: bool
    ) -> None:
        """In the writer's thread: bring the copy up to date and put it into the database's place."""
        began = time.monotonic()
        tails = self._writer.checkpoints.tails
        if tails is not None and tails.is_copied:
            raise Unavailable("a backup is being taken; compact again")
        with self._written(con):
            catch_up(con, copied, takes_any=takes_any)
        if not self._readers.gate.shut(PAUSE_S):
            raise Unavailable("long reads are under way; compact again")
        try:
            if not self._writer.checkpoints.has_room():
                raise CopyFailed("the disk has too little space to fold the log in; the database stays as it was")
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
