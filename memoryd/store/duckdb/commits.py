"""How the DuckDB store takes change sets, and tells of them: the promises of `store.commits`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.commits import Applied, Head, Snapshot
from memoryd.model.scope import Owner
from memoryd.store.commits import check_owners
from memoryd.store.duckdb import rows
from memoryd.store.duckdb.episodes import read_episodes
from memoryd.store.duckdb.pieces import reading
from memoryd.store.duckdb.readers import Readers
from memoryd.store.duckdb.receipts import NAMES, recorded_of
from memoryd.store.duckdb.snapshot import read_snapshot
from memoryd.store.duckdb.writer import Writer

__all__ = ["DuckDBCommits"]

T = TypeVar("T")


class _Memories:
    """The commits of memories."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers, self._writer = readers, writer

    def follow(self, callback: Callable[[Applied], None]) -> None:
        self._writer.on_commit(callback)

    async def head(self, owner: Owner) -> Head:
        return self._writer.recent.heads.of(owner)

    async def changes(self, owner: Owner, since: int) -> Applied | None:
        return self._writer.recent.since(owner, since)

    def snapshot(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        return self._readers.read_here(
            lambda: read_snapshot(
                self._readers.cursor(),
                owner,
                self._writer.vectors.dimensions,
                self._readers.columns,
                build,
            ),
        )


class _Messages:
    """The commits of messages."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers, self._writer = readers, writer

    def follow(self, callback: Callable[[Applied], None]) -> None:
        self._writer.on_episodes(callback)

    async def head(self, owner: Owner) -> Head:
        return self._writer.recent_episodes.heads.of(owner)

    async def changes(self, owner: Owner, since: int) -> Applied | None:
        return self._writer.recent_episodes.since(owner, since)

    def snapshot(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        return self._readers.read_here(
            lambda: read_episodes(
                self._readers.cursor(),
                owner,
                self._writer.message_vectors.dimensions,
                self._readers.columns,
                build,
            ),
        )


class DuckDBCommits:
    """Takes change sets."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers, self._writer = readers, writer
        self.memories = _Memories(readers, writer)
        self.messages = _Messages(readers, writer)

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
