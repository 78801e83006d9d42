"""The PostgreSQL store: a pool of connections, and the promises of `store.base`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from psycopg.conninfo import conninfo_to_dict

from memoryd.errors import Unavailable
from memoryd.model.call_context import Journal
from memoryd.store import rows
from memoryd.store.base import FileBacked, StoreInfo
from memoryd.store.postgres.commits import PostgresCommits
from memoryd.store.postgres.connect import Connections, Settings
from memoryd.store.postgres.conversations import PostgresConversations
from memoryd.store.postgres.memories import PostgresMemories
from memoryd.store.postgres.notes import PostgresNotes
from memoryd.store.postgres.opening import Opened
from memoryd.store.postgres.owners import PostgresGrants, PostgresOwners, PostgresPeople
from memoryd.store.postgres.skew import Skew
from memoryd.store.postgres.work import PostgresWork

__all__ = ["PostgresStore"]

SELF_CHECK_S = 10.0


class PostgresStore:
    """One database on a server, which other daemons may be before too."""

    files: FileBacked | None = None
    is_shared = True

    def __init__(
        self,
        settings: Settings,
        opened: Opened,
        *,
        journal: Journal | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Take a database that was opened; nothing is connected before the first call."""
        skew = Skew(clock)
        self.opened = opened
        self.connections = Connections(settings)
        self.commits = PostgresCommits(self.connections, journal, skew)
        self.memories = PostgresMemories(self.connections)
        self.conversations = PostgresConversations(self.connections)
        self.people = PostgresPeople(self.connections)
        self.notes = PostgresNotes(self.connections)
        self.grants = PostgresGrants(self.connections)
        self.work = PostgresWork(self.connections, skew)
        self.owners = PostgresOwners(self.connections)

    @property
    def warnings(self) -> Sequence[str]:
        return self.opened.warnings

    async def info(self) -> StoreInfo:
        read = self.connections.rows
        [(seq, newest)] = await read("SELECT coalesce(sum(commit_seq), 0)::int8, max(newest_create_time) FROM heads")
        [(size,)] = await read("SELECT pg_database_size(current_database())")
        fingerprints: dict[str, int] = dict(
            await read("SELECT fingerprint, count(*) FROM memories GROUP BY 1 ORDER BY 1")
        )
        return StoreInfo(
            path=self.place,
            store_id=self.opened.store_id,
            schema_version=self.opened.schema_version,
            commit_seq=seq,
            store_bytes=size,
            memory_count=sum(fingerprints.values()),
            fingerprints=fingerprints,
            newest_create_time=None if newest is None else rows.aware(newest),
            secret=self.opened.secret,
        )

    @property
    def place(self) -> str:
        """Where it is, without what a password may be."""
        held = conninfo_to_dict(self.connections.settings.dsn)
        return f"postgresql://{held.get('host', 'localhost')}/{held.get('dbname', '')}"

    async def ping(self) -> None:
        try:
            async with asyncio.timeout(SELF_CHECK_S):
                await self.connections.rows("SELECT 1 FROM meta LIMIT 1")
        except TimeoutError:
            raise Unavailable(f"the database server did not answer within {SELF_CHECK_S:.0f} s") from None

    async def close(self) -> None:
        await self.connections.close()
