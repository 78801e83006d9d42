"""The DuckDB store: a writer thread, some readers, and the promises of `store.base`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC
from functools import partial
from pathlib import Path

import duckdb

from memoryd.errors import StoreDamaged, Unavailable
from memoryd.model.call_context import Journal
from memoryd.model.erasure import Erasures, Purged
from memoryd.model.measures import NO_MEASURES, Measures
from memoryd.model.reports import Compaction
from memoryd.store.base import FileBacked, FileFigures, LogTail, Shipping, Spool, StoreInfo
from memoryd.store.duckdb import Opened, unreadable
from memoryd.store.duckdb.commits import DuckDBCommits
from memoryd.store.duckdb.compact import remains_of
from memoryd.store.duckdb.compactor import Compactor
from memoryd.store.duckdb.conversations import DuckDBConversations
from memoryd.store.duckdb.files import log_size, size_of
from memoryd.store.duckdb.memories import DuckDBMemories
from memoryd.store.duckdb.notes import DuckDBNotes
from memoryd.store.duckdb.owners import DuckDBGrants, DuckDBOwners, DuckDBPeople
from memoryd.store.duckdb.purges import note_purge
from memoryd.store.duckdb.readers import Readers
from memoryd.store.duckdb.reserve import RESERVE
from memoryd.store.duckdb.restoring import SANDBOXES_CLOSED
from memoryd.store.duckdb.shipping import LogTails
from memoryd.store.duckdb.traces import traces_of
from memoryd.store.duckdb.work import DuckDBWork
from memoryd.store.duckdb.writer import Writer
from memoryd.store.ledger import PurgeLedger

__all__ = ["DuckDBStore"]

SELF_CHECK_S = 10.0


class DuckDBFiles:
    """The files of an open database."""

    def __init__(
        self, opened: Opened, readers: Readers, writer: Writer, compactor: Compactor, ledger: PurgeLedger | None
    ) -> None:
        self._opened, self._readers, self._writer, self._compactor = opened, readers, writer, compactor
        self._ledger = ledger
        self._ever_purged: tuple[int, Purged] | None = None
        self.backups: Callable[[], Sequence[str]] = tuple

    @property
    def damage(self) -> str:
        """What is damaged of the file, as far as anybody has seen; empty: nothing."""
        return self._writer.damage

    @property
    def ended_by_damage(self) -> bool:
        """Whether the database was given up because of damage."""
        return self._writer.ended_by_damage

    def paths(self) -> list[Path]:
        path = self._opened.path
        paths = (path, *path.parent.glob(f"{path.name}.*"), *path.parent.glob(f"{path.name}.tmp/*"))
        return sorted(item for item in paths if item.is_file() and item.suffix != RESERVE)

    def copies(self) -> list[str]:
        return [str(path) for path in remains_of(self._opened.path)]

    def figures(self) -> FileFigures:
        path = self._opened.path
        free, waiting = self._writer.space.known_bytes, self._writer.waiting
        return FileFigures(path.stat().st_size, log_size(path), free, waiting, self._readers.waiting)

    async def traces(self, text: str) -> list[str]:
        return await self._readers.read(lambda: traces_of(self._readers.cursor(), self._opened.path, text))

    async def compact(self) -> Compaction:
        return await self._compactor.compact()

    async def open_sandboxes(self) -> None:
        await self._writer.run(lambda con: con.execute("DELETE FROM meta WHERE name = ?", [SANDBOXES_CLOSED]))

    def missed_purges(self) -> Erasures | None:
        ledger = self._ledger
        return ledger.missed() if ledger is not None and ledger.is_behind else None

    async def ever_purged(self) -> Purged | None:
        ledger = self._ledger
        if ledger is None:
            return None
        known = self._ever_purged
        if known is None or known[0] != ledger.size:
            known = self._ever_purged = ledger.size, await asyncio.to_thread(ledger.ever_erased)
        return known[1]

    async def purges_caught_up(self) -> None:
        ledger = self._ledger
        if ledger is not None:
            await self._writer.run(lambda con: note_purge(con, ledger.catch_up()))
            ledger.caught_up()

    @property
    def shipping(self) -> Shipping:
        return DuckDBShipping(self._opened, self._writer)


class DuckDBShipping:
    """How an open database is copied while it is served."""

    def __init__(self, opened: Opened, writer: Writer) -> None:
        self._opened, self._writer = opened, writer

    @property
    def opened_seq(self) -> int:
        return self._opened.commit_seq

    @property
    def path(self) -> Path:
        return self._opened.path

    @property
    def lost(self) -> int:
        return 0 if self._writer.checkpoints.tails is None else self._writer.checkpoints.tails.lost

    async def take(self, generation: int) -> tuple[list[LogTail], int, int]:
        def take(_: duckdb.DuckDBPyConnection) -> tuple[list[LogTail], int, int]:
            tails = self._tails
            taken = tails.take(generation)
            tails.is_copied = tails.generation != generation
            return taken, tails.generation, self._writer.commit_seq

        return await self._writer.run(take)

    async def release(self) -> bool:
        return await self._writer.run(lambda _: self._writer.checkpoints.release())

    def waiting(self) -> list[LogTail]:
        return self._tails.take_waiting()

    @property
    def _tails(self) -> LogTails:
        if self._writer.checkpoints.tails is None:
            raise Unavailable("the log is not kept for a backup; name backup.directory")
        return self._writer.checkpoints.tails


class DuckDBStore:
    """One open database."""

    is_shared = False  # the engine holds its file alone

    def __init__(
        self,
        opened: Opened,
        *,
        min_free_bytes: int = 0,
        on_fatal: Callable[[str], None] = lambda _: None,
        journal: Journal | None = None,
        ledger: PurgeLedger | None = None,
        spool: Spool | None = None,
        measures: Measures = NO_MEASURES,
    ) -> None:
        """
        Take over a database and its ledger of purges.

        on_fatal is called, in the writer's thread, when DuckDB declares it dead; the journal is told of each change
        set before it is committed. With a spool the log is kept for who ships it.
        """
        self._opened, self._ledger = opened, ledger
        try:
            self._writer = Writer(
                opened,
                min_free_bytes=min_free_bytes,
                on_fatal=on_fatal,
                journal=journal,
                ledger=ledger,
                spool=spool,
                measures=measures,
            )
        except duckdb.Error as error:
            raise unreadable(opened.path, error) from None
        self._readers = Readers(opened, self._writer, measures)
        compactor = Compactor(opened, self._writer, self._readers)
        self.files: FileBacked | None = DuckDBFiles(opened, self._readers, self._writer, compactor, ledger)
        self.commits = DuckDBCommits(self._readers, self._writer)
        self.memories = DuckDBMemories(self._readers, self._writer)
        self.conversations = DuckDBConversations(self._readers, self._writer)
        self.people = DuckDBPeople(self._readers)
        self.notes = DuckDBNotes(self._readers)
        self.grants = DuckDBGrants(self._readers, self._writer)
        self.work = DuckDBWork(self._readers)
        self.owners = DuckDBOwners(self._readers)

    @property
    def warnings(self) -> Sequence[str]:
        of_ledger = "" if self._ledger is None else self._ledger.fault or self._ledger.gap
        return [text for text in (self._writer.space.warning, of_ledger) if text]

    async def info(self) -> StoreInfo:
        try:
            noted = dict(await self._readers.read(self._readers.rows, "SELECT name, value FROM meta"))
        except StoreDamaged:
            noted = {}
        known = partial(
            StoreInfo,
            history_id=noted.get("history_id", ""),
            sandboxes_closed=SANDBOXES_CLOSED in noted,
            path=str(self._opened.path),
            store_id=self._opened.store_id,
            schema_version=self._opened.schema_version,
            commit_seq=self._writer.commit_seq,
            store_bytes=size_of(self._opened.path),
            secret=self._opened.secret,
        )
        try:
            newest = (await self._readers.read(self._readers.rows, "SELECT newest_create_time FROM commits"))[0][0]
            made_by = "SELECT fingerprint, count(*) FROM memories GROUP BY fingerprint ORDER BY fingerprint"
            fingerprints = dict(await self._readers.read(self._readers.rows, made_by))
        except StoreDamaged:
            return known(
                memory_count=0,
                fingerprints={},
                newest_create_time=None,
                damage=self._writer.damage,
            )
        return known(
            memory_count=sum(fingerprints.values()),
            fingerprints=fingerprints,
            newest_create_time=None if newest is None else newest.replace(tzinfo=UTC),
            damage=self._writer.damage,
        )

    async def ping(self) -> None:
        try:
            async with asyncio.timeout(SELF_CHECK_S):
                await self._writer.run(lambda con: con.execute("SELECT 1").fetchall())
                await self._readers.read(self._readers.rows, "SELECT max(commit_seq) FROM commits")
        except TimeoutError:
            raise Unavailable(f"the store did not answer within {SELF_CHECK_S:.0f} s") from None

    async def close(self) -> None:
        if self._readers.closed:
            return
        self._readers.closed = True  # at once: reads that come from here on are refused
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._readers.close)  # the cursors go before the last checkpoint
        await loop.run_in_executor(None, self._writer.close)
        if self._ledger is not None:
            self._ledger.close()
        await loop.run_in_executor(None, self._opened.close)
