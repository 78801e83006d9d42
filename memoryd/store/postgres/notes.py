"""What the store answers about notes: the promises of `store.notes`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from memoryd.model.note import Note, NoteVersion
from memoryd.model.scope import Owner
from memoryd.store.note_rows import NOTE_COLUMNS, note_of
from memoryd.store.postgres.connect import Connections
from memoryd.store.postgres.statements import owner_key
from memoryd.store.rows import naive

__all__ = ["PostgresNotes"]


class PostgresNotes:
    """Notes as rows."""

    def __init__(self, connections: Connections) -> None:
        self._rows = connections.rows

    async def _notes(self, where: str, params: Sequence[Any]) -> list[Note]:
        return [note_of(row) for row in await self._rows(f"SELECT {NOTE_COLUMNS} FROM notes WHERE {where}", params)]

    async def get(self, owner: Owner, path: str) -> Note | None:
        found = await self._notes("owner_id = %s AND path = %s", [owner_key(owner), path])
        return found[0] if found else None

    async def page(
        self, owner: Owner, *, prefix: str = "", after: str = "", limit: int, live_at: datetime | None = None
    ) -> list[Note]:
        where, params = _live(owner, live_at)
        return await self._notes(
            f"{where} AND starts_with(path, %s) AND path > %s ORDER BY path LIMIT {int(limit)}",
            [*params, prefix, after],
        )

    async def with_ids(self, owner: Owner, ids: Collection[str]) -> list[Note]:
        return await self._notes("owner_id = %s AND id = ANY(%s) ORDER BY path", [owner_key(owner), list(ids)])

    async def texts(self, owner: Owner, versions: Collection[NoteVersion]) -> Mapping[str, str]:
        if not versions:
            return {}
        return dict(
            await self._rows(
                "SELECT version_id, text FROM note_texts WHERE owner_id = %s AND version_id = ANY(%s)",
                [owner_key(owner), [version.id for version in versions]],
            )
        )

    async def unembedded(self, fingerprint: str, *, limit: int, after: str = "") -> list[Note]:
        where = f"is_searched AND fingerprint <> %s AND id > %s ORDER BY id LIMIT {int(limit)}"
        return await self._notes(where, [fingerprint, after])

    async def count(self, owner: Owner, *, live_at: datetime | None = None) -> int:
        return await self._count(*_live(owner, live_at))

    async def expired(self, now: datetime, *, limit: int) -> list[Note]:
        where = f"expire_time <= %s ORDER BY expire_time, owner_id, path LIMIT {int(limit)}"
        return await self._notes(where, [naive(now)])

    async def expired_count(self, now: datetime) -> int:
        return await self._count("expire_time <= %s", [naive(now)])

    async def _count(self, where: str, params: Sequence[Any]) -> int:
        return int((await self._rows(f"SELECT count(*) FROM notes WHERE {where}", params))[0][0])


def _live(owner: Owner, at: datetime | None) -> tuple[str, list[Any]]:
    """Return the condition that a note is an owner's, and with a time that it has not expired then."""
    if at is None:
        return "owner_id = %s", [owner_key(owner)]
    return "owner_id = %s AND (expire_time IS NULL OR expire_time > %s)", [owner_key(owner), naive(at)]
