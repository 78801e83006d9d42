"""What the DuckDB store answers about memories: the promises of `store.memories`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
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
from memoryd.store.duckdb import queries
from memoryd.store.duckdb.readers import Readers
from memoryd.store.duckdb.snapshot import entry_of
from memoryd.store.duckdb.vectors import column_of
from memoryd.store.duckdb.writer import Writer
from memoryd.store.memories import Cursor, Graces, MemorySelector, Order, Vectors

__all__ = ["DuckDBMemories"]

BEFORE_ALL = datetime(1, 1, 2)  # noqa: DTZ001  as the columns hold times
_STATE = """CASE WHEN delete_time IS NOT NULL THEN 'deleted' WHEN supersede_time IS NOT NULL THEN 'superseded'
 WHEN expire_time <= ? THEN 'expired' ELSE 'live' END"""


class DuckDBMemories:
    """Memories as rows."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers, self._writer = readers, writer

    async def _query(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return await self._readers.read(self._readers.rows, sql, params)

    async def _memories(self, sql: str, params: Sequence[Any]) -> list[Memory]:
        return await self._readers.read(lambda: [rows.memory_of(row) for row in self._readers.rows(sql, params)])

    async def page(
        self,
        visible: Visibility,
        wanted: Filter,
        *,
        now: datetime,
        limit: int,
        after: Cursor | None = None,
    ) -> list[Memory]:
        return await self._memories(*queries.paged(visible, wanted, now, limit, after))

    async def find(self, visible: Visibility, prefix: str, *, deleted: bool = False) -> list[Memory]:
        state = "" if deleted else " AND delete_time IS NULL"
        source, params = queries.union_of_owners(visible, (f"id = ?{state}", [prefix]))
        memories = await self._memories(queries.select_memories(source), params)
        if memories:
            return memories
        end = prefix + "\x7f"  # above every character of an id
        source, params = queries.union_of_owners(visible, (f"id >= ? AND id < ?{state}", [prefix, end]), " LIMIT 2")
        return await self._memories(queries.select_memories(source) + " ORDER BY m.id LIMIT 2", params)

    async def entries(self, owner: Owner, ids: Collection[str], vectors: Vectors = Vectors.NONE) -> list[Entry]:
        if not ids:
            return []
        where, params = queries.of_owner(owner)
        one_id, *more = places = {memory_id: n for n, memory_id in enumerate(dict.fromkeys(ids))}
        source = f"(SELECT * FROM memories WHERE {where} AND id IN (SELECT unnest(?::VARCHAR[])))"
        values: list[Any] = [*params, list(places)]
        if not more:  # found by its key, which any other condition would make a scan of the table
            source, values = "(SELECT * FROM memories WHERE id = ?)", [one_id]
        columns = self._vector_columns(vectors)
        sql = queries.select_memories(source, "m.terms", *columns)
        width = len(columns) + 1

        def read() -> list[Entry]:
            found = self._readers.rows(sql, values)
            entries = [entry_of(rows.memory_of(row[:-width]), *row[-width:]) for row in found]
            own = [entry for entry in entries if entry.memory.owner == owner]
            return sorted(own, key=lambda entry: places[entry.memory.id])

        return await self._readers.read(read)

    def _vector_columns(self, vectors: Vectors) -> tuple[str, ...]:
        """Return fingerprint and vectors of a memory m, as far as they are wanted."""
        if vectors is Vectors.NONE:
            return ()
        tokens = "m.token_vectors" if vectors is Vectors.ALL else "NULL::BLOB"
        vector = f"{self._writer.vectors.expression} AS vector"
        return "m.fingerprint", vector, f"{tokens} AS token_vectors", "m.window_vectors"

    async def alike(self, owner: Owner, now: datetime, *, digest: bytes = b"", key: str = "") -> list[Memory]:
        where, params = queries.of_owner(owner)
        condition, value = ("key = ?", key) if key else ("text_digest = ?", digest.hex())
        return await self._memories(
            queries.select_memories("memories")
            + f" WHERE {where} AND {condition} AND delete_time IS NULL AND supersede_time IS NULL"
            f" AND (expire_time IS NULL OR expire_time > ?) ORDER BY create_time LIMIT {limits.MOST_ALIKE}",
            [*params, value, rows.naive(now)],
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
        where, params = queries.admitted(wanted, now)
        source, values = queries.union_of_owners(visible, (f"{where} AND fingerprint = ?", [*params, fingerprint]))
        if len(vector) not in self._writer.vectors.dimensions:
            return []  # nothing was embedded so far
        cosine = f"array_cosine_similarity(m.{column_of(len(vector))}, ?::FLOAT[{len(vector)}]) AS similarity"
        select = queries.select_memories(source, cosine)
        found = await self._query(
            f"{select} ORDER BY similarity DESC, m.create_time LIMIT {int(limit)}",
            [vector, *values],
        )
        return [(rows.memory_of(row[:-1]), float(row[-1])) for row in found]

    async def stats(self, visible: Visibility, now: datetime) -> Stats:
        source, params = queries.union_of_owners(visible, ("true", []))
        found = await self._query(
            f"SELECT kind, {_STATE} AS state, chat_id IS NOT NULL AS shared, count(*), max(create_time),"
            f" sum(strlen(content)) FROM {source} GROUP BY ALL ORDER BY kind, state, shared",
            [rows.naive(now), *params],
        )
        counts = tuple(MemoryCount(Kind(row[0]), State(row[1]), row[2], row[3]) for row in found)
        newest = max((row[4].replace(tzinfo=UTC) for row in found), default=None)
        return Stats(counts, newest, sum(int(row[5]) for row in found))

    async def tombstones(self, owner: Owner, digests: Sequence[bytes]) -> frozenset[bytes]:
        where, params = queries.of_owner(owner)
        found = await self._query(
            f"SELECT digest FROM tombstones WHERE digest IN (SELECT unnest(?::VARCHAR[])) AND {where}",
            [[digest.hex() for digest in digests], *params],
        )
        return frozenset(bytes.fromhex(digest) for (digest,) in found)

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
        return int((await self._query(f"SELECT count(*) FROM memories WHERE {where}", params))[0][0])

    async def collectable(self, graces: Graces, *, limit: int) -> tuple[GcReport, list[Memory]]:
        groups: dict[str, tuple[str, list[Any]]] = {
            "deleted": ("delete_time IS NOT NULL AND purge_time <= ?", [rows.naive(graces.purge_due)]),
            "superseded": (
                "delete_time IS NULL AND supersede_time < ?",
                [rows.naive(graces.superseded_before) if graces.superseded_before else BEFORE_ALL],
            ),
            "expired": (
                "delete_time IS NULL AND supersede_time IS NULL AND expire_time < ?",
                [rows.naive(graces.expired_before)],
            ),
        }
        counts: dict[str, int] = {}
        memories: list[Memory] = []
        for name, (where, params) in groups.items():
            count = await self._query(f"SELECT count(*) FROM memories WHERE {where}", params)
            counts[name] = count[0][0]
            if counts[name] and len(memories) < limit:
                source = f"(SELECT * FROM memories WHERE {where} LIMIT {limit - len(memories)})"
                memories += await self._memories(queries.select_memories(source), params)
        requests = await self._query(
            "SELECT count(*) FROM requests WHERE create_time < ?",
            [rows.naive(graces.requests_before)],
        )
        report = GcReport(counts["expired"], counts["superseded"], counts["deleted"], requests[0][0])
        return report, memories

    async def note_recalls(self, recalls: Mapping[Owner, Mapping[str, Recalled]]) -> None:
        flat = {memory_id: noted for known in recalls.values() for memory_id, noted in known.items()}
        if flat:
            await self._writer.run(lambda con: self._writer.note_recalls(con, flat))
