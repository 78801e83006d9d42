"""Connections to a server, and what a failure of it means to a caller."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from memoryd.errors import Contended, LimitExceeded, MemorydError, OutcomeUnknown, StoreDamaged, Unavailable

__all__ = ["NOTE_GENERATION", "SCHEMA", "Connections", "Row", "Settings", "explained"]

Row = tuple[Any, ...]
SCHEMA = "memoryd"
"""The schema of the database that holds the tables."""
NOTHING = "nothing was written"
NOTE_GENERATION = b"SELECT note_generation()"
"""What is run on each new connection: after a failover or a restore it makes every daemon read anew."""
WAIT_S = 2.0  # for a connection of the pool: less than callers wait, so that they are told why
GIVE_UP_S = 1.0  # of an attempt to connect; the next call tries anew, as soon as the server is back
AWAY_S = 1.0  # after a wait in vain calls are refused at once: a caller's own tries do not add up to its deadline
logging.getLogger("psycopg").addHandler(logging.NullHandler())  # whoever waited is told: see `explained`
TAKEN = {
    "requests_pkey", "threads_pkey", "messages_owner_id_thread_id_seq_key", "messages_owner_id_thread_id_id_key",
    "notes_pkey", "heads_pkey",
}  # fmt: skip
"""The constraints that others break who came first: the call is decided again."""
ROLLED_BACK = {"40001": "a conflict", "40P01": "a deadlock", "55P03": "a lock that was not free in time"}
REFUSED = {
    "53100": "its disk is full", "53300": "it has too many connections", "57014": "the statement took too long",
    "25006": "it only reads: a standby, or a primary of before", "57P03": "it is starting",
}  # fmt: skip
MOVED = {"25006", "57P01", "57P02", "57P03"}
"""After these the name may lead to another server: no connection of before is used again."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a server is reached."""

    dsn: str
    """Without a password."""
    password_file: Path | None = None
    pool: int = 8
    """Connections of the event loop at most; each thread that loads has one more."""
    prepare: bool = True
    """Whether statements are prepared; not behind a pooler that gives each transaction another connection."""
    statement_timeout_s: float = 30.0
    lock_timeout_s: float = 5.0

    @property
    def parameters(self) -> dict[str, Any]:
        """What each connection begins with; the password is read anew, so that it can be changed in the file."""
        options = (
            f"-c search_path={SCHEMA} -c statement_timeout={int(1000 * self.statement_timeout_s)}"
            f" -c lock_timeout={int(1000 * self.lock_timeout_s)} -c timezone=UTC"
        )
        given: dict[str, Any] = {"application_name": "memoryd", "options": options, "connect_timeout": 10}
        given["client_encoding"] = "utf8"  # also of a database of another encoding, which is refused
        if self.password_file is not None:
            try:
                given["password"] = self.password_file.read_text().strip("\r\n")
            except OSError as error:
                raise Unavailable(f"store.password_file cannot be read: {error.strerror}; {NOTHING}") from None
        return {**given, "prepare_threshold": 0 if self.prepare else None}


def explained(error: Exception, *, sent: bool) -> MemorydError:
    """Return what a failure is to a caller; `sent`: a COMMIT was, or may have been, on its way."""
    if isinstance(error, MemorydError):
        return error
    state = getattr(error, "sqlstate", None) or ""
    if state == "MD409":
        return Contended(f"{str(error).splitlines()[0]}; {NOTHING}: try again")
    if isinstance(error, psycopg.errors.UniqueViolation):
        name = error.diag.constraint_name or ""
        if name in TAKEN:
            return Contended(f"others came first ({name}); {NOTHING}: try again")
        return Unavailable(f"it exists already ({name}); {NOTHING}")
    if state in ROLLED_BACK:
        return Contended(f"others came between ({ROLLED_BACK[state]}); {NOTHING}: try again")
    if state == "53200":
        return LimitExceeded("the database server has not enough memory for the call", limit="store_memory")
    if state in {"XX001", "XX002"}:
        return StoreDamaged(f"the database server has found damage ({state}); put back the last good copy")
    if state in REFUSED or (state and state not in MOVED):
        return Unavailable(f"the database server refuses: {REFUSED.get(state, state)}; {NOTHING}")
    if isinstance(error, PoolTimeout | PoolClosed) or not sent:
        return Unavailable(f"the database server cannot be reached; {NOTHING}")
    return OutcomeUnknown("the connection was lost after the commit was sent; whether it was written is not known")


async def _note_generation(con: psycopg.AsyncConnection[Row]) -> None:
    await con.execute(NOTE_GENERATION)


class Connections:
    """A pool for the event loop, and one connection for each thread that loads."""

    def __init__(self, settings: Settings) -> None:
        """Take the settings; nothing is connected before the first use."""
        self.settings = settings
        self._pool: AsyncConnectionPool[psycopg.AsyncConnection[Row]] | None = None
        self._opening = asyncio.Lock()
        self._away_until = 0.0
        self._local = threading.local()
        self._loading: list[psycopg.Connection[Row]] = []
        self.closed = False

    async def _opened(self) -> AsyncConnectionPool[psycopg.AsyncConnection[Row]]:
        async with self._opening:
            if self._pool is None:

                async def parameters() -> dict[str, Any]:
                    return {"autocommit": True, **self.settings.parameters}

                pool: AsyncConnectionPool[psycopg.AsyncConnection[Row]] = AsyncConnectionPool(
                    self.settings.dsn, min_size=1, max_size=self.settings.pool, open=False, kwargs=parameters,
                    timeout=WAIT_S, reconnect_timeout=GIVE_UP_S, configure=_note_generation,
                )  # fmt: skip
                await pool.open()
                self._pool = pool
            return self._pool

    @contextlib.asynccontextmanager
    async def use(self) -> AsyncIterator[psycopg.AsyncConnection[Row]]:
        """Hold a connection of the pool, which commits each statement unless a transaction is begun."""
        if self.closed:
            raise Unavailable(f"the store is closed; {NOTHING}")
        if time.monotonic() < self._away_until:
            raise explained(PoolTimeout(), sent=False)
        pool = await self._opened()
        con: psycopg.AsyncConnection[Row] | None = None
        try:
            async with pool.connection() as con:
                yield con
        except PoolTimeout:
            self._away_until = time.monotonic() + AWAY_S
            raise
        except psycopg.Error as error:
            if error.sqlstate in MOVED or (con is not None and con.broken):
                await pool.drain()  # where one is lost the others are too, and each would cost a call its outcome
            raise

    async def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query; one that the connection was lost in is sent once more."""
        for attempt in (1, 2):
            try:
                async with self.use() as con:
                    cursor = con.cursor(binary=True)
                    await cursor.execute(sql.encode(), params)
                    return await cursor.fetchall()
            except psycopg.OperationalError as error:
                if attempt == 2 or error.sqlstate not in {None, *MOVED}:  # noqa: PLR2004
                    raise explained(error, sent=False) from None
            except psycopg.Error as error:
                raise explained(error, sent=False) from None
        raise AssertionError("it returns, or raises")

    def connect(self) -> psycopg.Connection[Row]:
        """Return a new connection for this thread."""
        con = psycopg.connect(self.settings.dsn, autocommit=True, **self.settings.parameters)
        try:
            con.execute(NOTE_GENERATION)
            con.autocommit = False
        except BaseException:
            con.close()
            raise
        return con

    def here(self) -> psycopg.Connection[Row]:
        """Return this thread's connection for loads: each transaction of it reads one snapshot."""
        if self.closed:
            raise Unavailable(f"the store is closed; {NOTHING}")
        con: psycopg.Connection[Row] | None = getattr(self._local, "con", None)
        if con is None or con.closed:
            con = self._local.con = self.connect()
            con.isolation_level, con.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
            self._loading.append(con)
            if self.closed:  # meanwhile: who closes has not seen this one
                con.close()
                raise Unavailable(f"the store is closed; {NOTHING}")
        return con

    async def close(self) -> None:
        """Let go of all of them."""
        self.closed = True
        if self._pool is not None:
            await self._pool.close()
        for con in self._loading:
            con.close()
