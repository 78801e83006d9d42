"""The threads that read: a cursor each, and a gate that keeps them out while the file is replaced."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import duckdb
from numpy.typing import NDArray

from memoryd.errors import Unavailable
from memoryd.model.call_context import current_call
from memoryd.model.measures import Measures, Quantity
from memoryd.store.duckdb.gate import ReadGate
from memoryd.store.duckdb.opening import Opened
from memoryd.store.duckdb.writer import Writer
from memoryd.turns import started

__all__ = ["Readers"]

T = TypeVar("T")
THREADS = 4
MOST_OF_A_GRANT = 2  # of the threads


def _on(loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> None:
    """Call back on a loop, unless that has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(end)


class _Turns:
    """Lets each grant have so many threads at a time, so that one that reads much leaves some to the others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[str, tuple[asyncio.Semaphore, int]] = {}
        """By grant: its turns, and how many hold or await one."""

    async def take(self, grant_id: str) -> Callable[[], None]:
        """
        Wait for a turn of a grant, and return what ends it.

        It ends when its thread is free; where its caller hangs up, that is later.
        """
        turns, count = self._held.get(grant_id) or (asyncio.Semaphore(self._most), 0)
        self._held[grant_id] = turns, count + 1
        try:
            await turns.acquire()
        except asyncio.CancelledError:
            self._leave(grant_id)
            raise

        def end() -> None:
            turns.release()
            self._leave(grant_id)

        return end

    def _leave(self, grant_id: str) -> None:
        turns, count = self._held[grant_id]
        if count > 1:
            self._held[grant_id] = turns, count - 1
        else:
            del self._held[grant_id]


class Readers:
    """Runs what reads the database."""

    def __init__(self, opened: Opened, writer: Writer, measures: Measures) -> None:
        """Read from an open database; `writer` says what a fault of the engine means."""
        self._opened = opened
        self._writer, self._measures = writer, measures
        self._pool = started(ThreadPoolExecutor(THREADS, "store-read"), THREADS)
        self._turns = _Turns(MOST_OF_A_GRANT)
        self._local = threading.local()
        self._cursors: list[duckdb.DuckDBPyConnection] = []
        self.gate = ReadGate()
        self.closed = False
        self._asked = 0

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return the cursor of this thread."""
        cursor: duckdb.DuckDBPyConnection | None = getattr(self._local, "cursor", None)
        if cursor is None or getattr(self._local, "epoch", -1) != self.gate.epoch:
            cursor = self._local.cursor = self._opened.connection.cursor()
            self._local.epoch = self.gate.epoch
            self._cursors.append(cursor)
        return cursor

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query, in this thread."""
        return self.cursor().execute(sql, list(params)).fetchall()

    def columns(self, sql: str, params: Sequence[Any] = ()) -> dict[str, NDArray[Any]]:
        """Return all rows of a query as columns, in this thread; errors as of `read`."""
        return self.read_here(lambda: self.cursor().execute(sql, list(params)).fetchnumpy())

    async def read(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function in a thread that reads; Unavailable or StoreDamaged in words of the contract."""
        self._asked += 1
        try:
            return await self._read(function, *args)
        finally:
            self._asked -= 1

    async def _read(self, function: Callable[..., T], *args: Any) -> T:
        loop, call = asyncio.get_running_loop(), current_call()
        if self.closed:
            raise Unavailable("the daemon is shutting down")
        if call is None or not call.grant_id:  # the host, and what the daemon does by itself, never wait
            return await loop.run_in_executor(self._pool, self.read_here, lambda: function(*args))
        end = await self._turns.take(call.grant_id)
        if self.closed:
            end()
            raise Unavailable("the daemon is shutting down")
        reading = self._pool.submit(self.read_here, lambda: function(*args))
        reading.add_done_callback(lambda _: _on(loop, end))
        return await asyncio.wrap_future(reading)

    def read_here(self, function: Callable[[], T]) -> T:
        """Run a function that reads in this thread; errors as of `read`."""
        began = time.perf_counter()
        try:
            with self.gate.reading():
                return function()
        except duckdb.Error as error:
            raise self._writer.explain(error) from None
        finally:
            self._measures.measure(Quantity.STORE, time.perf_counter() - began, "read")

    @property
    def waiting(self) -> int:
        """How many reads are asked for, and not answered yet."""
        return self._asked

    def close_cursors(self) -> None:
        """Let go of every cursor; no one may be reading."""
        for cursor in self._cursors:
            cursor.close()
        self._cursors.clear()

    def close(self) -> None:
        """Finish what is being read, and let go of the cursors; `closed` is set already, on the event loop."""
        self._cursors.clear()
        self._pool.shutdown()
        self._local = threading.local()
