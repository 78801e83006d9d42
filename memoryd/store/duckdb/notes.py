"""What the DuckDB store answers about notes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from memoryd.errors import StoreDamaged
from memoryd.model.note import Note, NoteVersion
from memoryd.model.scope import Owner
from memoryd.store.duckdb.note_writes import pieces_of
from memoryd.store.duckdb.pieces import reading
from memoryd.store.duckdb.queries import of_owner
from memoryd.store.duckdb.readers import Readers
from memoryd.store.note_rows import NOTE_COLUMNS, note_name, note_of
from memoryd.store.rows import naive

__all__ = ["DuckDBNotes"]

PIECES_MISSING = "the database has lost a piece of a note; put back the last good copy"
MANY = 64  # pieces from which on a scan is cheaper than a look for each


class DuckDBNotes:
    """Notes as rows."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def get(self, owner: Owner, path: str) -> Note | None:
        found = await self._rows(f"SELECT {NOTE_COLUMNS} FROM notes WHERE name = ?", [note_name(owner, path)])
        return found[0] if found else None

    async def page(
        self, owner: Owner, *, prefix: str = "", after: str = "", limit: int, live_at: datetime | None = None
    ) -> list[Note]:
        where, params = _live(owner, live_at)
        return await self._rows(
            f"SELECT {NOTE_COLUMNS} FROM notes WHERE {where} AND starts_with(path, ?) AND path > ?"
            f" ORDER BY path LIMIT {int(limit)}",
            [*params, prefix, after],
        )

    async def with_ids(self, owner: Owner, ids: Collection[str]) -> list[Note]:
        where, params = of_owner(owner)
        return await self._rows(
            f"SELECT {NOTE_COLUMNS} FROM notes WHERE {where} AND id IN (SELECT unnest(?::VARCHAR[])) ORDER BY path",
            [*params, list(ids)],
        )

    async def texts(self, owner: Owner, versions: Collection[NoteVersion]) -> Mapping[str, str]:
        return await self._readers.read(lambda: self._texts(owner, versions)) if versions else {}

    def _texts(self, owner: Owner, versions: Collection[NoteVersion]) -> dict[str, str]:
        where, params = of_owner(owner)
        keys = {version.id: pieces_of(version) for version in versions}
        every = [key for some in keys.values() for key in some]
        with reading(self._readers.cursor()):  # what goes meanwhile is there as a whole or not at all
            if len(every) > MANY:
                sql = f"SELECT key, text FROM note_texts WHERE {where} AND key IN (SELECT unnest(?::VARCHAR[]))"
                held = dict(self._readers.rows(sql, [*params, every]))
            else:
                sql = f"SELECT key, text FROM note_texts WHERE key = ? AND {where}"
                held = dict(row for key in every for row in self._readers.rows(sql, [key, *params]))
        texts = {}
        for version in versions:
            text = "".join(held.get(key, "") for key in keys[version.id])
            if len(text.encode()) == version.text_bytes:
                texts[version.id] = text
            elif text:
                raise StoreDamaged(PIECES_MISSING)
        return texts

    async def unembedded(self, fingerprint: str, *, limit: int, after: str = "") -> list[Note]:
        return await self._rows(
            f"SELECT {NOTE_COLUMNS} FROM notes WHERE is_searched AND fingerprint <> ? AND id > ?"
            f" ORDER BY id LIMIT {int(limit)}",
            [fingerprint, after],
        )

    async def count(self, owner: Owner, *, live_at: datetime | None = None) -> int:
        return await self._count(*_live(owner, live_at))

    async def expired(self, now: datetime, *, limit: int) -> list[Note]:
        return await self._rows(
            f"SELECT {NOTE_COLUMNS} FROM notes WHERE expire_time <= ? ORDER BY expire_time, name LIMIT {int(limit)}",
            [naive(now)],
        )

    async def expired_count(self, now: datetime) -> int:
        return await self._count("expire_time <= ?", [naive(now)])

    async def _count(self, where: str, params: Sequence[Any]) -> int:
        found = await self._readers.read(self._readers.rows, f"SELECT count(*) FROM notes WHERE {where}", params)
        return int(found[0][0])

    async def _rows(self, sql: str, params: Sequence[Any]) -> list[Note]:
        return await self._readers.read(lambda: [note_of(row) for row in self._readers.rows(sql, params)])


def _live(owner: Owner, at: datetime | None) -> tuple[str, list[Any]]:
    """Return the condition that a note is an owner's, and with a time that it has not expired then."""
    where, params = of_owner(owner)
    if at is None:
        return where, [*params]
    return f"{where} AND (expire_time IS NULL OR expire_time > ?)", [*params, naive(at)]
