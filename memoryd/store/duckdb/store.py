"""The DuckDB store: a writer thread, some readers, and the promises of `store.base`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from memoryd.errors import StoreDamaged, Unavailable
from memoryd.model import limits
from memoryd.model.call_context import Journal
from memoryd.model.change import Applied, ChangeSet, Entry, Recalled, RecordedRequest, Snapshot
from memoryd.model.entity import Entity
from memoryd.model.filter_terms import entity_terms
from memoryd.model.grant import Grant, GrantUsage, TokenKey
from memoryd.model.memory import Kind, Memory, State
from memoryd.model.query import Filter
from memoryd.model.results import Compaction, GcReport, MemoryCount, Stats
from memoryd.model.scope import Owner, Visibility
from memoryd.store.base import Cursor, Graces, StoreInfo
from memoryd.store.duckdb import queries, rows
from memoryd.store.duckdb.compact import COPY, catch_up, copy_to, detach, remains_of, swap
from memoryd.store.duckdb.gate import ReadGate
from memoryd.store.duckdb.opening import STORAGE_VERSION, Opened, StoreRefused, beside, unreadable
from memoryd.store.duckdb.reserve import RESERVE
from memoryd.store.duckdb.vectors import column_of
from memoryd.store.duckdb.writer import Writer

__all__ = ["DuckDBStore"]

T = TypeVar("T")
READERS = 4
CHUNK = 4096  # memories that a load holds as rows at a time: a few MB
SELF_CHECK_S = 10.0
COMPACT_ATTEMPTS = 5
PAUSE_S = 0.5  # so long may the new file wait for reads that are under way

_STATE = """CASE WHEN delete_time IS NOT NULL THEN 'deleted' WHEN supersede_time IS NOT NULL THEN 'superseded'
 WHEN expire_time <= ? THEN 'expired' ELSE 'live' END"""


class DuckDBStore:
    """One open database."""

    def __init__(
        self,
        opened: Opened,
        *,
        min_free_bytes: int = 0,
        on_fatal: Callable[[str], None] = lambda _: None,
        journal: Journal | None = None,
    ) -> None:
        """
        Take over a database.

        on_fatal is called, in the writer's thread, when DuckDB declares it dead; the journal is told of each change
        set before it is committed.
        """
        self._opened = opened
        self._min_free = min_free_bytes
        try:
            self._writer = Writer(opened, min_free_bytes=min_free_bytes, on_fatal=on_fatal, journal=journal)
        except duckdb.Error as error:
            raise unreadable(opened.path, error) from None
        self._readers = ThreadPoolExecutor(READERS, "store-read")
        self._local = threading.local()
        self._gate = ReadGate()
        self._cursors: list[duckdb.DuckDBPyConnection] = []
        self._compacting = False
        self._closed = False

    # --- plumbing ---

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor: duckdb.DuckDBPyConnection | None = getattr(self._local, "cursor", None)
        if cursor is None or getattr(self._local, "epoch", -1) != self._gate.epoch:
            cursor = self._local.cursor = self._opened.connection.cursor()
            self._local.epoch = self._gate.epoch
            self._cursors.append(cursor)
        return cursor

    def _rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._cursor().execute(sql, list(params)).fetchall()

    async def _read(self, function: Callable[..., T], *args: Any) -> T:
        if self._closed:
            raise Unavailable("the daemon is shutting down")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, self._guarded, function, *args)
        except duckdb.Error as error:
            raise self._writer.explain(error) from None

    def _guarded(self, function: Callable[..., T], *args: Any) -> T:
        with self._gate.reading():
            return function(*args)

    def _select_entries(self, source: str) -> str:
        """Return the select of memories with terms, fingerprint and vector."""
        return queries.select_memories(
            source, "m.terms", "m.fingerprint", f"{self._writer.vectors.expression} AS vector"
        )

    async def _memories(self, sql: str, params: Sequence[Any]) -> list[Memory]:
        return await self._read(lambda: [rows.memory_of(row) for row in self._rows(sql, params)])

    # --- writing ---

    def on_commit(self, callback: Callable[[Applied], None]) -> None:
        self._writer.on_commit(callback)

    async def commit(self, change: ChangeSet) -> int:
        return await self._writer.commit(change)

    async def note_recalls(self, recalls: Mapping[Owner, Mapping[str, Recalled]]) -> None:
        flat = {memory_id: noted for known in recalls.values() for memory_id, noted in known.items()}
        if flat:
            await self._writer.run(lambda con: self._writer.note_recalls(con, flat))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._cursors.clear()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._readers.shutdown)
        self._local = threading.local()  # the cursors go before the last checkpoint
        await loop.run_in_executor(None, self._writer.close)
        await loop.run_in_executor(None, self._opened.close)

    # --- reading ---

    async def page(
        self, visible: Visibility, wanted: Filter, *, now: datetime, limit: int, after: Cursor | None = None
    ) -> list[Memory]:
        return await self._memories(*queries.paged(visible, wanted, now, limit, after))

    async def find(self, visible: Visibility, prefix: str, *, deleted: bool = False) -> list[Memory]:
        state = "" if deleted else " AND delete_time IS NULL"
        source, params = queries.union_of_owners(visible, (f"id = ?{state}", [prefix]))
        found = await self._memories(queries.select_memories(source), params)
        if found:
            return found
        end = prefix + "\x7f"  # above every character of an id
        source, params = queries.union_of_owners(visible, (f"id >= ? AND id < ?{state}", [prefix, end]), " LIMIT 2")
        return await self._memories(queries.select_memories(source) + " ORDER BY m.id LIMIT 2", params)

    async def entry(self, memory: Memory) -> Entry | None:
        found = await self._read(self._rows, self._select_entries("memories") + " WHERE m.id = ?", [memory.id])
        if not found:
            return None
        *row, terms, fingerprint, vector = found[0]
        return Entry(rows.memory_of(row), terms, None if vector is None else np.array(vector, np.float32), fingerprint)

    async def entries(self, owner: Owner, ids: Collection[str]) -> list[Entry]:
        if not ids:
            return []
        where, params = queries.of_owner(owner)
        source = f"(SELECT * FROM memories WHERE {where} AND id IN (SELECT unnest(?::VARCHAR[])))"
        sql = queries.select_memories(source, "m.terms")
        return await self._read(
            lambda: [Entry(rows.memory_of(row), terms) for *row, terms in self._rows(sql, [*params, list(ids)])]
        )

    async def locate(self, memory_id: str) -> Memory | None:
        found = await self._memories(queries.select_memories("memories") + " WHERE m.id = ?", [memory_id])
        return found[0] if found else None

    async def recorded(self, owner: Owner, method: str, request_id: str) -> RecordedRequest | None:
        name = rows.request_name(owner, method, request_id)
        found = await self._read(self._rows, "SELECT answer, create_time FROM requests WHERE name = ?", [name])
        return rows.recorded_of(owner, method, request_id, *found[0]) if found else None

    async def stats(self, visible: Visibility, now: datetime) -> Stats:
        source, params = queries.union_of_owners(visible, ("true", []))
        found = await self._read(
            self._rows,
            f"SELECT kind, {_STATE} AS state, chat_id IS NOT NULL AS shared, count(*), max(create_time),"
            f" sum(strlen(content)) FROM {source} GROUP BY ALL ORDER BY kind, state, shared",
            [rows.naive(now), *params],
        )
        counts = tuple(MemoryCount(Kind(row[0]), State(row[1]), row[2], row[3]) for row in found)
        newest = max((row[4].replace(tzinfo=UTC) for row in found), default=None)
        return Stats(counts, newest, sum(int(row[5]) for row in found))

    async def same_text(self, owner: Owner, digest: bytes, now: datetime) -> list[Memory]:
        return await self._live(owner, "text_digest = ?", digest.hex(), now)

    async def of_key(self, owner: Owner, key: str, now: datetime) -> list[Memory]:
        return await self._live(owner, "key = ?", key, now)

    async def _live(self, owner: Owner, condition: str, value: str, now: datetime) -> list[Memory]:
        where, params = queries.of_owner(owner)
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
        found = await self._read(
            self._rows,
            f"{select} ORDER BY similarity DESC, m.create_time LIMIT {int(limit)}",
            [vector, *values],
        )
        return [(rows.memory_of(row[:-1]), float(row[-1])) for row in found]

    def read_owner(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        try:
            with self._gate.reading():
                return self._read_owner(self._cursor(), owner, build)
        except duckdb.Error as error:
            raise self._writer.explain(error) from None

    def _read_owner(self, cursor: duckdb.DuckDBPyConnection, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        cursor.execute("BEGIN")
        try:
            seq = cursor.execute("SELECT max(commit_seq) FROM commits").fetchall()[0][0]
            where, params = queries.of_owner(owner)
            found = cursor.execute(
                "SELECT create_time, strlen(content) + strlen(details) + strlen(terms) AS bytes FROM memories"
                f" WHERE {where} AND delete_time IS NULL ORDER BY create_time",
                params,
            ).fetchnumpy()
            times, text_bytes = found["create_time"], int(found["bytes"].sum())
            entities = _entities(cursor, owner, where, params)
            stones = cursor.execute(f"SELECT digest FROM tombstones WHERE {where}", params).fetchall()
            chunks = _chunks(cursor, self._select_entries, where, params, times)
            return build(
                Snapshot(seq, len(times), text_bytes, chunks, entities, frozenset(bytes.fromhex(s) for (s,) in stones))
            )
        finally:
            with contextlib.suppress(duckdb.Error):  # a dead database cannot roll back; the first error is told
                cursor.execute("ROLLBACK")

    async def collectable(self, graces: Graces, *, limit: int) -> tuple[GcReport, list[Memory]]:
        groups: dict[str, tuple[str, list[Any]]] = {
            "deleted": ("delete_time IS NOT NULL AND purge_time <= ?", [rows.naive(graces.purge_due)]),
            "superseded": (
                "delete_time IS NULL AND supersede_time < ?",
                [rows.naive(graces.superseded_before) if graces.superseded_before else datetime(1, 1, 2)],  # noqa: DTZ001  before all
            ),
            "expired": (
                "delete_time IS NULL AND supersede_time IS NULL AND expire_time < ?",
                [rows.naive(graces.expired_before)],
            ),
        }
        counts: dict[str, int] = {}
        memories: list[Memory] = []
        for name, (where, params) in groups.items():
            count = await self._read(self._rows, f"SELECT count(*) FROM memories WHERE {where}", params)
            counts[name] = count[0][0]
            if counts[name] and len(memories) < limit:
                source = f"(SELECT * FROM memories WHERE {where} LIMIT {limit - len(memories)})"
                memories += await self._memories(queries.select_memories(source), params)
        requests = await self._read(
            self._rows, "SELECT count(*) FROM requests WHERE create_time < ?", [rows.naive(graces.requests_before)]
        )
        report = GcReport(counts["expired"], counts["superseded"], counts["deleted"], requests[0][0])
        return report, memories

    async def misdated(self, after: datetime, *, limit: int) -> list[Memory]:
        source = f"(SELECT * FROM memories WHERE delete_time > ? OR supersede_time > ? LIMIT {int(limit)})"
        return await self._memories(queries.select_memories(source), [rows.naive(after)] * 2)

    async def naming(self, owner: Owner, entity_ids: Iterable[str]) -> list[Memory]:
        facets = [rows.filter_term_pattern(facet) for facet in entity_terms(entity_ids)]
        if not facets:
            return []
        where, params = queries.of_owner(owner)
        condition = " OR ".join("contains(facets, ?)" for _ in facets)
        source = f"(SELECT * FROM memories WHERE {where} AND ({condition}))"
        select = queries.select_memories(source) + " ORDER BY m.create_time DESC, m.id DESC"
        return await self._memories(select, [*params, *facets])

    async def is_named(self, owner: Owner, entity_ids: Collection[str], *, but: Collection[str]) -> bool:
        where, params = queries.of_owner(owner)
        condition = " OR ".join("contains(json_extract(details, '$.mentions')::VARCHAR, ?)" for _ in entity_ids)
        found = await self._read(
            self._rows,
            f"SELECT 1 FROM memories WHERE {where} AND ({condition})"
            " AND id NOT IN (SELECT unnest(?::VARCHAR[])) LIMIT 1",
            [*params, *(f'"{entity_id}"' for entity_id in entity_ids), list(but)],
        )
        return bool(found)

    async def entities(self, owner: Owner) -> list[Entity]:
        where, params = queries.of_owner(owner)
        return await self._read(lambda: _entities(self._cursor(), owner, where, params))

    async def tombstones(self, owner: Owner, digests: Sequence[bytes]) -> frozenset[bytes]:
        where, params = queries.of_owner(owner)
        found = await self._read(
            self._rows,
            f"SELECT digest FROM tombstones WHERE digest IN (SELECT unnest(?::VARCHAR[])) AND {where}",
            [[digest.hex() for digest in digests], *params],
        )
        return frozenset(bytes.fromhex(digest) for (digest,) in found)

    async def live_page(self, *, limit: int, after: str = "") -> list[Memory]:
        source = (
            "(SELECT * FROM memories WHERE id > ? AND delete_time IS NULL AND supersede_time IS NULL"
            f" ORDER BY id LIMIT {int(limit)})"
        )
        return await self._memories(queries.select_memories(source) + " ORDER BY m.id", [after])

    async def unenriched(self, *, limit: int) -> list[Memory]:
        source = (
            "(SELECT * FROM memories WHERE kind = 'fact' AND delete_time IS NULL AND supersede_time IS NULL"
            f" AND NOT contains(details, '\"enrich_time\"') ORDER BY create_time LIMIT {int(limit)})"
        )
        return await self._memories(queries.select_memories(source) + " ORDER BY m.create_time", [])

    async def jobs(self) -> dict[str, datetime]:
        found = await self._read(self._rows, "SELECT name, run_time FROM jobs")
        return {name: time.replace(tzinfo=UTC) for name, time in found}

    async def traces(self, text: str) -> list[str]:
        found = await self._read(self._traces, text)
        return sorted(found)

    def _traces(self, text: str) -> set[str]:
        places = _places_of(self._cursor(), text)
        for copy in remains_of(self._opened.path):  # its blocks are compressed: no search of its bytes would find it
            try:
                with duckdb.connect(str(copy), read_only=True) as con:
                    places |= {f"{copy.name}:{place}" for place in _places_of(con, text)}
            except duckdb.Error:
                places.add(f"{copy.name}:unreadable")
        return places

    async def grants(self) -> list[Grant]:
        found = await self._read(self._rows, "SELECT id, details, create_time FROM grants ORDER BY create_time, id")
        return [rows.grant_of(*row) for row in found]

    async def token_keys(self) -> list[TokenKey]:
        found = await self._read(self._rows, "SELECT id, secret, create_time FROM token_keys ORDER BY create_time, id")
        return [TokenKey(key_id, bytes.fromhex(secret), time.replace(tzinfo=UTC)) for key_id, secret, time in found]

    async def grant_usage(self, day: datetime) -> dict[str, GrantUsage]:
        found = await self._read(
            self._rows,
            "SELECT grant_id, count(*) FILTER (create_time >= ? AND create_time < ?), count(*), sum(text_bytes)"
            " FROM memories WHERE grant_id <> '' GROUP BY grant_id",
            [rows.naive(day), rows.naive(day + timedelta(days=1))],
        )
        return {grant_id: GrantUsage(today, count, int(size)) for grant_id, today, count, size in found}

    async def of_grant(
        self, grant_id: str, *, limit: int, after: Cursor | None = None, deleted: bool = False
    ) -> list[Memory]:
        state = "" if deleted else " AND delete_time IS NULL"
        where, params = queries.past((f"grant_id = ?{state}", [grant_id]), after)
        source = f"(SELECT * FROM memories WHERE {where} ORDER BY create_time DESC, id DESC LIMIT {int(limit)})"
        return await self._memories(queries.select_memories(source) + " ORDER BY m.create_time DESC, m.id DESC", params)

    async def info(self) -> StoreInfo:
        known = partial(
            StoreInfo,
            path=str(self._opened.path),
            store_id=self._opened.store_id,
            schema_version=self._opened.schema_version,
            commit_seq=self._writer.commit_seq,
            store_bytes=self._size(),
            secret=self._opened.secret,
        )
        try:
            counted = await self._read(self._rows, "SELECT count(*), count(*) FILTER (fingerprint = '') FROM memories")
            newest = (await self._read(self._rows, "SELECT newest_create_time FROM commits"))[0][0]
            fingerprints = await self._read(
                self._rows, "SELECT DISTINCT fingerprint FROM memories WHERE fingerprint <> '' ORDER BY fingerprint"
            )
        except StoreDamaged:
            return known(
                memory_count=0,
                unembedded_count=0,
                fingerprints=(),
                newest_create_time=None,
                damage=self._writer.damage,
            )
        return known(
            memory_count=counted[0][0],
            unembedded_count=counted[0][1],
            fingerprints=tuple(row[0] for row in fingerprints),
            newest_create_time=None if newest is None else newest.replace(tzinfo=UTC),
            damage=self._writer.damage,
        )

    async def compact(self) -> Compaction:
        if self._compacting:
            raise Unavailable("the database is being compacted already")
        path = self._opened.path
        before = self._size()
        free = os.statvfs(path.parent)
        needed = path.stat().st_size + self._min_free
        if free.f_bavail * free.f_frsize < needed:
            raise Unavailable(f"compacting needs {needed >> 20} MiB of free space beside the database")
        self._compacting = True
        pauses: list[float] = []
        try:
            for attempt in range(COMPACT_ATTEMPTS):
                seq = await self._read(self._copy)
                last = attempt + 1 == COMPACT_ATTEMPTS
                try:
                    await self._writer.run(partial(self._take_copy, seq, pauses))
                except Unavailable:
                    if last:
                        raise
                finally:
                    if not pauses and not self._closed:
                        await self._writer.run(detach)
                if pauses:
                    break
        finally:
            self._compacting = False
            beside(path, COPY).unlink(missing_ok=True)
        return Compaction(before, self._size(), timedelta(seconds=pauses[-1]))

    @property
    def damage(self) -> str:
        """What is damaged of the file, as far as anybody has seen; empty: nothing."""
        return self._writer.damage

    @property
    def ended_by_damage(self) -> bool:
        """Whether the database was given up because of damage."""
        return self._writer.ended_by_damage

    def _size(self) -> int:
        files = [self._opened.path, beside(self._opened.path, ".wal")]
        return sum(file.stat().st_size for file in files if file.exists())

    def _copy(self) -> int:
        cursor = self._cursor()
        detach(cursor)
        return copy_to(cursor, beside(self._opened.path, COPY), storage_version=STORAGE_VERSION)

    def _take_copy(self, seq: int, pauses: list[float], con: duckdb.DuckDBPyConnection) -> None:
        """In the writer's thread: bring the copy up to date and put it into the database's place."""
        began = time.monotonic()
        if catch_up(con, seq):
            raise Unavailable("something was purged while it was copied")
        if not self._gate.shut(PAUSE_S):
            raise Unavailable("long reads are under way; compact again")
        try:
            con.execute("CHECKPOINT")
            for cursor in self._cursors:
                cursor.close()
            self._cursors.clear()
            con.close()
            try:
                swap(self._opened.path)
                pauses.append(time.monotonic() - began)
            finally:
                self._reopen()
        finally:
            self._gate.open()

    def _reopen(self) -> None:
        try:
            self._opened.reconnect()
        except Exception as error:  # noqa: BLE001  whatever it is, there is no database to serve from
            reason = str(error) if isinstance(error, StoreRefused) else type(error).__name__
            self._writer.fail(f"the database could not be opened again: {reason}")
            raise Unavailable("the database could not be opened again; memoryd is restarting") from None
        self._writer.rebind()

    def backups(self) -> list[str]:
        return [str(path) for path in remains_of(self._opened.path)]

    def files(self) -> list[Path]:
        path = self._opened.path
        found = (path, *path.parent.glob(f"{path.name}.*"))
        return sorted(item for item in found if item.is_file() and item.suffix != RESERVE)

    async def ping(self) -> None:
        try:
            async with asyncio.timeout(SELF_CHECK_S):
                await self._writer.run(lambda con: con.execute("SELECT 1").fetchall())
                await self._read(self._rows, "SELECT max(commit_seq) FROM commits")
        except TimeoutError:
            raise Unavailable(f"the store did not answer within {SELF_CHECK_S:.0f} s") from None


def _places_of(con: duckdb.DuckDBPyConnection, text: str) -> set[str]:
    """Return the tables and columns of a database in which a text stands."""
    columns = con.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal AND data_type = 'VARCHAR'"
    ).fetchall()
    return {
        f"{table}.{column}"
        for table, column in columns
        if con.execute(f"SELECT 1 FROM {table} WHERE contains({column}, ?) LIMIT 1", [text]).fetchall()
    }


def _entities(cursor: duckdb.DuckDBPyConnection, owner: Owner, where: str, params: list[Any]) -> list[Entity]:
    found = cursor.execute(
        f"SELECT id, details, create_time FROM entities WHERE {where} ORDER BY id", params
    ).fetchall()
    return [rows.entity_of(owner, *row) for row in found]


def _chunks(
    cursor: duckdb.DuckDBPyConnection,
    select_entries: Callable[[str], str],
    where: str,
    params: list[Any],
    times: NDArray[np.datetime64],
) -> Iterator[list[Entry]]:
    """Yield an owner's entries, oldest first, by windows of create_time, which the zone maps make cheap to find."""
    source = f"(SELECT * FROM memories WHERE {where} AND create_time >= ? AND create_time <= ? AND delete_time IS NULL)"
    sql = select_entries(source) + " ORDER BY m.create_time"
    for n in range(0, len(times), CHUNK):
        window = times[n : n + CHUNK]
        bounds = [window[0].astype("datetime64[us]").item(), window[-1].astype("datetime64[us]").item()]
        columns = cursor.execute(sql, [*params, *bounds]).fetchnumpy()
        vectors = columns.pop("vector")
        yield [
            Entry(rows.memory_of(row[:-2]), row[-2], _vector(vector), row[-1])
            for row, vector in zip(rows.rows_of(columns), vectors, strict=True)
        ]


def _vector(value: Any) -> NDArray[np.float32] | None:
    return np.asarray(value, dtype=np.float32) if isinstance(value, np.ndarray) else None
