"""How the DuckDB store takes change sets, and tells of them: the promises of `store.commits`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.commits import Applied, Head, Snapshot
from memoryd.model.scope import Owner
from memoryd.store import rows
from memoryd.store.commits import check_owners
from memoryd.store.duckdb.episodes import read_episodes
from memoryd.store.duckdb.note_entries import read_notes
from memoryd.store.duckdb.pieces import reading
from memoryd.store.duckdb.readers import Readers
from memoryd.store.duckdb.receipts import NAMES
from memoryd.store.duckdb.snapshot import read_snapshot
from memoryd.store.duckdb.writer import Writer
from memoryd.store.receipt_rows import recorded_of
from memoryd.store.recent import RecentChanges

__all__ = ["DuckDBCommits"]

T = TypeVar("T")


class _Feed:
    """The commits of memories, of messages or of notes."""

    def __init__(self, readers: Readers, recent: RecentChanges, read: Callable[..., Any]) -> None:
        self._readers, self._recent, self._read = readers, recent, read

    def follow(self, callback: Callable[[Applied], None]) -> None:
        self._recent.followers.append(callback)

    async def head(self, owner: Owner) -> Head:
        return self._recent.heads.of(owner)

    async def changes(self, owner: Owner, since: int) -> Applied | None:
        return self._recent.since(owner, since)

    def snapshot(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        return cast("T", self._readers.read_here(lambda: self._read(self._readers.cursor(), owner, build)))


class DuckDBCommits:
    """Takes change sets."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers, self._writer = readers, writer
        vectors, of_messages, columns = writer.vectors, writer.message_vectors, readers.columns
        self.memories = _Feed(
            readers,
            writer.recent,
            lambda cursor, owner, build: read_snapshot(cursor, owner, vectors.dimensions, columns, build),
        )
        self.messages = _Feed(
            readers,
            writer.recent_episodes,
            lambda cursor, owner, build: read_episodes(cursor, owner, of_messages.dimensions, columns, build),
        )
        self.notes = _Feed(readers, writer.recent_notes, read_notes)

    async def write(self, *changes: ChangeSet) -> None:
        check_owners(changes)
        await self._writer.commit(changes)

    async def recorded(self, owner: Owner, method: str, request_id: str) -> RecordedRequest | None:
        name = rows.request_name(owner, method, request_id)

        def read() -> RecordedRequest | None:
            found = self._readers.rows("SELECT 1 FROM requests WHERE name = ?", [name])
            if not found:
                return None
            with reading(self._readers.cursor()):  # what is erased meanwhile is in both tables or in none
                found = self._readers.rows("SELECT answer, create_time FROM requests WHERE name = ?", [name])
                named = self._readers.rows(NAMES, [name])
            return recorded_of(owner, method, request_id, *found[0], named=named) if found else None

        return await self._readers.read(read)
