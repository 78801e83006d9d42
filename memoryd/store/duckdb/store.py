"""The DuckDB store: a writer thread, some readers, and the promises of `store.base`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from memoryd.errors import StoreDamaged, Unavailable
from memoryd.model import limits
from memoryd.model.call_context import Journal
from memoryd.model.change import ChangeSet, Entry, RecordedRequest
from memoryd.model.commits import Applied, Head, Recalled, Snapshot
from memoryd.model.entity import Entity
from memoryd.model.filter_terms import entity_terms
from memoryd.model.grant import Grant, GrantUsage, TokenKey
from memoryd.model.memory import DECAYED, Kind, Memory, State
from memoryd.model.query import Filter
from memoryd.model.reports import Compaction, GcReport, OwnerContents
from memoryd.model.results import MemoryCount, Stats
from memoryd.model.scope import Owner, Visibility
from memoryd.store.base import Cursor, Graces, StoreInfo, check_owners
from memoryd.store.duckdb import queries, rows
from memoryd.store.duckdb.compact import remains_of
from memoryd.store.duckdb.compactor import Compactor, size_of
from memoryd.store.duckdb.conversation_reads import ConversationReads
from memoryd.store.duckdb.opening import Opened, unreadable
from memoryd.store.duckdb.purges import contents_of, owners_of_user
from memoryd.store.duckdb.readers import Readers
from memoryd.store.duckdb.receipts import NAMES, recorded_of
from memoryd.store.duckdb.reserve import RESERVE
from memoryd.store.duckdb.snapshot import entities_of, entry_of, read_snapshot
from memoryd.store.duckdb.traces import traces_of
from memoryd.store.duckdb.vectors import column_of
from memoryd.store.duckdb.work import WorkReads
from memoryd.store.duckdb.writer import Writer

__all__ = ["DuckDBStore"]

T = TypeVar("T")
SELF_CHECK_S = 10.0

_STATE = """CASE WHEN delete_time IS NOT NULL THEN 'deleted' WHEN supersede_time IS NOT NULL THEN 'superseded'
 WHEN expire_time <= ? THEN 'expired' ELSE 'live' END"""


class DuckDBStore(ConversationReads, WorkReads):
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
        try:
            self._writer = Writer(opened, min_free_bytes=min_free_bytes, on_fatal=on_fatal, journal=journal)
        except duckdb.Error as error:
            raise unreadable(opened.path, error) from None
        self._readers = Readers(opened, self._writer)
        self._compactor = Compactor(opened, self._writer, self._readers, min_free_bytes=min_free_bytes)

    def _select_entries(self, source: str, *, tokens: bool = True) -> str:
        """Return the select of memories with terms, fingerprint and vectors; without those of tokens NULL for them."""
        vector = f"{self._writer.vectors.expression} AS vector"
        held = f"{'m.token_vectors' if tokens else 'NULL::BLOB'} AS token_vectors"
        return queries.select_memories(source, "m.terms", "m.fingerprint", vector, held, "m.window_vectors")

    async def _query(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return await self._readers.read(self._readers.rows, sql, params)

    async def _memories(self, sql: str, params: Sequence[Any]) -> list[Memory]:
        return await self._readers.read(lambda: [rows.memory_of(row) for row in self._readers.rows(sql, params)])

    # --- writing ---

    def on_commit(self, callback: Callable[[Applied], None]) -> None:
        self._writer.on_commit(callback)

    async def head(self, owner: Owner) -> Head:
        return self._writer.recent.heads.of(owner)

    async def changes(self, owner: Owner, since: int) -> list[Applied] | None:
        return self._writer.recent.since(owner, since)

    async def commit(self, *changes: ChangeSet) -> None:
        check_owners(changes)
        await self._writer.commit(changes)

    async def note_recalls(self, recalls: Mapping[Owner, Mapping[str, Recalled]]) -> None:
        flat = {memory_id: noted for known in recalls.values() for memory_id, noted in known.items()}
        if flat:
            await self._writer.run(lambda con: self._writer.note_recalls(con, flat))

    async def close(self) -> None:
        if self._readers.closed:
            return
        self._readers.closed = True  # at once: reads that come from here on are refused
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._readers.close)  # the cursors go before the last checkpoint
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
        found = await self._query(self._select_entries("memories") + " WHERE m.id = ?", [memory.id])
        return entry_of(rows.memory_of(found[0][:-5]), *found[0][-5:]) if found else None

    async def faded(self, owner: Owner, as_of: datetime, *, limit: int) -> list[Entry]:
        where, params = queries.of_owner(owner)
        source = (
            f"(SELECT * FROM memories WHERE {where} AND create_time <= ? AND delete_time > ?"
            f" AND contains(details, ?) ORDER BY create_time DESC LIMIT {int(limit)})"
        )
        sql = self._select_entries(source, tokens=False) + " ORDER BY m.create_time DESC"
        said = json.dumps({"delete_reason": DECAYED})[1:-1]
        found = await self._query(sql, [*params, rows.naive(as_of), rows.naive(as_of), said])
        entries = [entry_of(rows.memory_of(row[:-5]), *row[-5:]) for row in found]
        return [entry for entry in entries if entry.memory.delete_reason == DECAYED]

    async def entries(self, owner: Owner, ids: Collection[str]) -> list[Entry]:
        if not ids:
            return []
        where, params = queries.of_owner(owner)
        source = f"(SELECT * FROM memories WHERE {where} AND id IN (SELECT unnest(?::VARCHAR[])))"
        sql = queries.select_memories(source, "m.terms")
        places = {memory_id: n for n, memory_id in enumerate(dict.fromkeys(ids))}

        def read() -> list[Entry]:
            found = self._readers.rows(sql, [*params, list(places)])
            entries = [Entry(rows.memory_of(row), terms) for *row, terms in found]
            return sorted(entries, key=lambda entry: places[entry.memory.id])

        return await self._readers.read(read)

    async def locate(self, memory_id: str) -> Memory | None:
        found = await self._memories(queries.select_memories("memories") + " WHERE m.id = ?", [memory_id])
        return found[0] if found else None

    async def recorded(self, owner: Owner, method: str, request_id: str) -> RecordedRequest | None:
        name = rows.request_name(owner, method, request_id)

        def read() -> RecordedRequest | None:
            found = self._readers.rows("SELECT answer, create_time FROM requests WHERE name = ?", [name])
            if not found:
                return None
            answer, create_time = found[0]
            return recorded_of(owner, method, request_id, answer, create_time, self._readers.rows(NAMES, [name]))

        return await self._readers.read(read)

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
        found = await self._query(
            f"{select} ORDER BY similarity DESC, m.create_time LIMIT {int(limit)}",
            [vector, *values],
        )
        return [(rows.memory_of(row[:-1]), float(row[-1])) for row in found]

    def read_owner(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        return self._readers.read_here(
            lambda: read_snapshot(
                self._readers.cursor(), owner, self._writer.vectors.dimensions, self._readers.columns, build
            )
        )

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
        found = await self._query(
            f"SELECT 1 FROM memories WHERE {where} AND ({condition})"
            " AND id NOT IN (SELECT unnest(?::VARCHAR[])) LIMIT 1",
            [*params, *(f'"{entity_id}"' for entity_id in entity_ids), list(but)],
        )
        return bool(found)

    async def entities(self, owner: Owner) -> list[Entity]:
        return await self._readers.read(lambda: entities_of(self._readers.cursor(), owner))

    async def tombstones(self, owner: Owner, digests: Sequence[bytes]) -> frozenset[bytes]:
        where, params = queries.of_owner(owner)
        found = await self._query(
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

    async def unembedded(self, fingerprint: str, *, limit: int, after: str = "") -> list[Memory]:
        source = f"(SELECT * FROM memories WHERE fingerprint <> ? AND id > ? ORDER BY id LIMIT {int(limit)})"
        return await self._memories(queries.select_memories(source) + " ORDER BY m.id", [fingerprint, after])

    async def unenriched(self, *, limit: int) -> list[Memory]:
        source = queries.UNENRICHED_IN_TURNS.format(int(limit))
        return await self._memories(queries.select_memories(source) + " ORDER BY m.create_time", [])

    async def unenriched_count(self) -> int:
        return int((await self._query(f"SELECT count(*) FROM memories WHERE {queries.UNENRICHED}"))[0][0])

    async def contents(self, owner: Owner, *, limit: int) -> OwnerContents:
        return await self._readers.read(contents_of, self._readers.rows, owner, limit)

    async def owners_of_user(self, user_id: str, agent_id: str = "") -> list[Owner]:
        return await self._readers.read(owners_of_user, self._readers.rows, user_id, agent_id)

    async def traces(self, text: str) -> list[str]:
        return await self._readers.read(lambda: traces_of(self._readers.cursor(), self._opened.path, text))

    async def grants(self) -> list[Grant]:
        found = await self._query("SELECT id, details, create_time FROM grants ORDER BY create_time, id")
        return [rows.grant_of(*row) for row in found]

    async def token_keys(self) -> list[TokenKey]:
        found = await self._query("SELECT id, secret, create_time FROM token_keys ORDER BY create_time, id")
        return [TokenKey(key_id, bytes.fromhex(secret), time.replace(tzinfo=UTC)) for key_id, secret, time in found]

    async def usage(self, grant_id: str, day: date) -> GrantUsage:
        if not self._writer.usage.knows(day):
            await self._writer.count_day(day)
        return self._writer.usage.of(grant_id, day)

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
            store_bytes=size_of(self._opened.path),
            secret=self._opened.secret,
        )
        try:
            newest = (await self._query("SELECT newest_create_time FROM commits"))[0][0]
            made_by = "SELECT fingerprint, count(*) FROM memories GROUP BY fingerprint ORDER BY fingerprint"
            fingerprints = dict(await self._query(made_by))
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

    async def compact(self) -> Compaction:
        return await self._compactor.compact()

    @property
    def damage(self) -> str:
        """What is damaged of the file, as far as anybody has seen; empty: nothing."""
        return self._writer.damage

    @property
    def ended_by_damage(self) -> bool:
        """Whether the database was given up because of damage."""
        return self._writer.ended_by_damage

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
                await self._query("SELECT max(commit_seq) FROM commits")
        except TimeoutError:
            raise Unavailable(f"the store did not answer within {SELF_CHECK_S:.0f} s") from None
