"""What the store answers about memories: the promises of `store.memories`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import psycopg
from numpy.typing import NDArray

from memoryd.model import limits
from memoryd.model.change import Entry
from memoryd.model.commits import Recalled
from memoryd.model.memory import Kind, Memory, State
from memoryd.model.query import Filter
from memoryd.model.reports import GcReport
from memoryd.model.results import MemoryCount, Stats
from memoryd.model.scope import Owner, Visibility
from memoryd.store import rows
from memoryd.store.memories import Cursor, Graces, MemorySelector, Order, Vectors
from memoryd.store.postgres import queries
from memoryd.store.postgres.connect import Connections, explained
from memoryd.store.postgres.statements import owner_key

__all__ = ["PostgresMemories"]

BEFORE_ALL = datetime(1, 1, 2)  # noqa: DTZ001  as the columns hold times
AT_ONCE = 4096  # vectors that are compared at a time
_STATE = """CASE WHEN delete_time IS NOT NULL THEN 'deleted' WHEN supersede_time IS NOT NULL THEN 'superseded'
 WHEN expire_time <= %s THEN 'expired' ELSE 'live' END"""


class PostgresMemories:
    """Memories as rows."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def _memories(self, sql: str, params: Sequence[object]) -> list[Memory]:
        return [rows.memory_of(row) for row in await self._connections.rows(sql, params)]

    async def page(
        self,
        visible: Visibility,
        wanted: Filter,
        *,
        now: datetime,
        limit: int,
        after: Cursor | None = None,
    ) -> list[Memory]:
        where, params = queries.past(queries.admitted(wanted, now), after)
        order = f"ORDER BY m.create_time DESC, m.id DESC LIMIT {int(limit)}"
        one = f"(SELECT * FROM memories AS m WHERE m.owner_id = %s AND {where} {order})"
        sources, given = [], []
        for owner in visible.owners:
            sources.append(one)
            given += [owner_key(owner), *params]
        if not sources:
            return []
        select = queries.select_memories(f"({' UNION ALL '.join(sources)})")
        return await self._memories(f"{select} {order}", given)

    async def find(self, visible: Visibility, prefix: str, *, deleted: bool = False) -> list[Memory]:
        state = "" if deleted else " AND m.delete_time IS NULL"
        select = f"{queries.select_memories('memories')} WHERE m.owner_id = ANY(%s){state}"
        keys = [owner_key(owner) for owner in visible.owners]
        memories = await self._memories(f"{select} AND m.id = %s", [keys, prefix])
        if memories:
            return memories
        end = prefix + "\x7f"  # above every character of an id
        return await self._memories(f"{select} AND m.id >= %s AND m.id < %s ORDER BY m.id LIMIT 2", [keys, prefix, end])

    async def entries(self, owner: Owner, ids: Collection[str], vectors: Vectors = Vectors.NONE) -> list[Entry]:
        if not ids:
            return []
        places = {memory_id: n for n, memory_id in enumerate(dict.fromkeys(ids))}
        columns = queries.ENTRY
        if vectors is Vectors.NONE:
            columns = ("m.terms", "''", "NULL::bytea", "NULL::bytea", "NULL::bytea")
        elif vectors is Vectors.TEXTS:
            columns = ("m.terms", "m.fingerprint", "m.vector", "NULL::bytea", "m.window_vectors")
        found = await self._connections.rows(
            f"{queries.select_memories('memories', *columns)} WHERE m.owner_id = %s AND m.id = ANY(%s)",
            [owner_key(owner), list(places)],
        )
        return sorted(map(queries.entry_of, found), key=lambda entry: places[entry.memory.id])

    async def alike(self, owner: Owner, now: datetime, *, digest: bytes = b"", key: str = "") -> list[Memory]:
        condition, value = ("m.key = %s AND m.key <> ''", key) if key else ("m.text_digest = %s", digest.hex())
        return await self._memories(
            f"{queries.select_memories('memories')} WHERE m.owner_id = %s AND {condition} AND m.delete_time IS NULL"
            " AND m.supersede_time IS NULL AND (m.expire_time IS NULL OR m.expire_time > %s)"
            f" ORDER BY m.create_time LIMIT {limits.MOST_ALIKE}",
            [owner_key(owner), value, rows.naive(now)],
        )

    async def nearest(
        self,
        visible: Visibility,
        vector: NDArray[np.float32],
        fingerprint: str,
        wanted: Filter,
        *,
        now: datetime,
        limit: int,
    ) -> list[tuple[Memory, float]]:
        """Return the most similar memories: all vectors are compared, some at a time, and only the best rows read."""
        where, params = queries.admitted(wanted, now)
        best: list[tuple[float, datetime, Owner, str]] = []
        sql = (
            f"SELECT m.id, m.create_time, m.vector FROM memories AS m WHERE m.owner_id = %s AND {where}"
            " AND m.fingerprint = %s AND length(m.vector) = %s"
        )
        query = np.asarray(vector, dtype=np.float32)
        try:
            for owner in visible.owners:
                given = [owner_key(owner), *params, fingerprint, 4 * len(vector)]
                async with (
                    self._connections.use() as con,
                    con.transaction(),
                    con.cursor("nearest", binary=True) as cursor,
                ):
                    await cursor.execute(sql.encode(), given)
                    while found := await cursor.fetchmany(AT_ONCE):
                        held = np.frombuffer(b"".join(row[2] for row in found), dtype="<f4")
                        cosines = held.reshape(len(found), -1) @ query
                        places = np.argsort(-cosines, kind="stable")[:limit].tolist()
                        best += [(float(cosines[n]), found[n][1], owner, found[n][0]) for n in places]
                        best = sorted(best, key=lambda hit: (-hit[0], hit[1]))[:limit]
        except psycopg.Error as error:
            raise explained(error, sent=False) from None
        memories: dict[str, Memory] = {}
        for owner in visible.owners:
            ids = [memory_id for _, _, whose, memory_id in best if whose == owner]
            memories |= {entry.memory.id: entry.memory for entry in await self.entries(owner, ids)}
        return [(memories[memory_id], cosine) for cosine, _, _, memory_id in best if memory_id in memories]

    async def stats(self, visible: Visibility, now: datetime) -> Stats:
        found = await self._connections.rows(
            f"SELECT kind, {_STATE} AS state, chat_id IS NOT NULL AS shared, count(*), max(create_time),"
            " sum(octet_length(content))::int8 FROM memories WHERE owner_id = ANY(%s)"
            " GROUP BY 1, 2, 3",
            [rows.naive(now), [owner_key(owner) for owner in visible.owners]],
        )
        counts = sorted(
            (MemoryCount(Kind(row[0]), State(row[1]), row[2], row[3]) for row in found),
            key=lambda count: (count.kind.value, count.state.value, count.shared),
        )
        newest = max((row[4].replace(tzinfo=UTC) for row in found), default=None)
        return Stats(tuple(counts), newest, sum(int(row[5]) for row in found))

    async def tombstones(self, owner: Owner, digests: Sequence[bytes]) -> frozenset[bytes]:
        found = await self._connections.rows(
            "SELECT digest FROM tombstones WHERE owner_id = %s AND digest = ANY(%s) AND NOT is_lifted",
            [owner_key(owner), list(digests)],
        )
        return frozenset(bytes(digest) for (digest,) in found)

    async def scan(
        self,
        selector: MemorySelector,
        *,
        limit: int,
        after: str = "",
        order: Order = Order.OWNERS,
    ) -> list[Memory]:
        return await self._memories(*queries.scanned(selector, limit, after, order))

    async def count(self, selector: MemorySelector) -> int:
        where, params = queries.selected(selector)
        return int((await self._connections.rows(f"SELECT count(*) FROM memories AS m WHERE {where}", params))[0][0])

    async def collectable(self, graces: Graces, *, limit: int) -> tuple[GcReport, list[Memory]]:
        superseded = rows.naive(graces.superseded_before) if graces.superseded_before else BEFORE_ALL
        groups = {
            "deleted": ("m.delete_time IS NOT NULL AND m.purge_time <= %s", rows.naive(graces.purge_due)),
            "superseded": ("m.delete_time IS NULL AND m.supersede_time < %s", superseded),
            "expired": (
                "m.delete_time IS NULL AND m.supersede_time IS NULL AND m.expire_time < %s",
                rows.naive(graces.expired_before),
            ),
        }
        counts: dict[str, int] = {}
        memories: list[Memory] = []
        for name, (where, time) in groups.items():
            found = await self._connections.rows(f"SELECT count(*) FROM memories AS m WHERE {where}", [time])
            counts[name] = found[0][0]
            if counts[name] and len(memories) < limit:
                source = f"(SELECT * FROM memories AS m WHERE {where} LIMIT {limit - len(memories)})"
                memories += await self._memories(queries.select_memories(source), [time])
        requests = await self._connections.rows(
            "SELECT count(*) FROM requests WHERE create_time < %s", [rows.naive(graces.requests_before)]
        )
        report = GcReport(counts["expired"], counts["superseded"], counts["deleted"], requests[0][0])
        return report, memories

    async def note_recalls(self, recalls: Mapping[Owner, Mapping[str, Recalled]]) -> None:
        flat = sorted(
            (owner_key(owner), memory_id, rows.naive(time), count, rows.naive(trusted))
            for owner, known in recalls.items()
            for memory_id, (time, count, trusted) in known.items()
        )
        if not flat:
            return
        try:
            async with self._connections.use() as con:
                await con.execute(
                    "INSERT INTO uses AS u SELECT c.* FROM unnest(%s::uuid[], %s::text[], %s::timestamp[], %s::int8[],"
                    " %s::timestamp[]) AS c(owner_id, id, time, count, trusted) JOIN memories AS m"
                    " ON m.owner_id = c.owner_id AND m.id = c.id"  # what was purged meanwhile leaves nothing
                    " ON CONFLICT (owner_id, memory_id) DO UPDATE SET recall_time = excluded.recall_time,"
                    " recall_count = u.recall_count + excluded.recall_count,"
                    " trusted_recall_time = coalesce(excluded.trusted_recall_time, u.trusted_recall_time)",
                    list(map(list, zip(*flat, strict=True))),
                )
        except psycopg.Error as error:
            raise explained(error, sent=False) from None
