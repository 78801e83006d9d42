"""The recallable memories of one owner, read in one transaction: what an index is built from."""

from __future__ import annotations

import contextlib
import json
import marshal
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from memoryd.model.batch import NEVER, Batch, Said, Times, VectorBatch, VectorsWanted
from memoryd.model.change import Entry, Snapshot
from memoryd.model.entity import Entity
from memoryd.model.memory import Kind, Memory
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.store.duckdb import queries, rows
from memoryd.store.duckdb.vectors import column_of

__all__ = [
    "CHUNK", "WEIGHT", "Query", "bytes_of", "datetime_of", "entities_of", "entry_of", "integers", "piece_sizes",
    "read_snapshot", "stacked",
]  # fmt: skip

T = TypeVar("T")
Query = Callable[[str, Sequence[Any]], dict[str, NDArray[Any]]]
"""Runs a query with its parameters; returns columns."""
# of a text, and of the vectors of its tokens, roughly: its word pieces, four characters each, and 128 bytes for each
SIZES = (
    "strlen(content) + strlen(details) + strlen(terms) AS bytes, least(254, strlen(content) // 4 + 2) * 128 AS tokens"
)
CHUNK = 4096  # memories that a load holds as rows at a time: 6 MB; others wait for 6 ms while they become objects
# what is packed of a memory whose owner is known, in the order of `_unpacked`; then its recalls
RECORD = (
    "id, content, kind, key, nullif(details, ?) AS details, epoch_us(create_time) AS created,"
    " epoch_us(nullif(event_time, create_time)) AS own_happened, epoch_us(expire_time) AS expires,"
    " epoch_us(supersede_time) AS superseded, grant_id"
)
# what is made of it at once, beside the record
WEIGHT = "".join(f" WHEN '{trust.value}' THEN {trust.weight}" for trust in Trust)
NOTED = " OR ".join(f"contains(details, '\"{name}\"')" for name in ("mentions", "claims", "contested_with"))
SAID = ", ".join(
    f"CASE WHEN kind = '{Kind.EPISODE.value}' THEN coalesce(details->>'$.{path}', '') END AS {name}"
    for name, path in (
        ("thread_id", "source.thread_id"),
        ("session_id", "source.session_id"),
        ("speaker", "source.speaker"),
        ("category", "category"),
    )
)
MORE = (
    "epoch_us(event_time) AS happened, text_digest, facets, traits, terms, length(content) AS characters,"
    f" CASE details->>'$.trust'{WEIGHT} END AS trust, (details->>'$.confidence')::DOUBLE AS confidence,"
    f" {NOTED} AS noted, {SAID}"
)
PLAIN = rows.details_of(Trust.HOST, 1.0)  # what most memories have, and no record repeats
PACKED = ("id", "content", "kind", "key", "details", "created", "own_happened", "expires", "superseded", "grant_id")
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  as the columns hold times


def entities_of(cursor: duckdb.DuckDBPyConnection, owner: Owner) -> list[Entity]:
    """Return what was decided of an owner's entities by hand, by id."""
    where, params = queries.of_owner(owner)
    found = cursor.execute(
        f"SELECT id, details, create_time FROM entities WHERE {where} ORDER BY id", params
    ).fetchall()
    return [rows.entity_of(owner, *row) for row in found]


def read_snapshot(
    cursor: duckdb.DuckDBPyConnection,
    owner: Owner,
    dimensions: Sequence[int],
    query: Query,
    build: Callable[[Snapshot], T],
) -> T:
    """
    Call build with a snapshot of an owner, and return its result; the batches are read while build consumes them.

    `dimensions` are those of the vector columns; `query` reads outside of the snapshot, also when it is over.
    """
    cursor.execute("BEGIN")
    try:
        seq = cursor.execute("SELECT max(commit_seq) FROM commits").fetchall()[0][0]
        where, params = queries.of_owner(owner)
        text_bytes, token_bytes = piece_sizes(cursor, f"memories WHERE {where} AND delete_time IS NULL", params)
        times = _times(cursor, where, params)
        entities = entities_of(cursor, owner)
        stones = cursor.execute(f"SELECT digest FROM tombstones WHERE {where}", params).fetchall()
        return build(
            Snapshot(
                seq,
                len(times),
                text_bytes,
                partial(_batches, cursor, owner, times, dimensions),
                entities,
                frozenset(bytes.fromhex(digest) for (digest,) in stones),
                token_bytes,
                partial(_vectors, query, owner, times, dimensions),
            )
        )
    finally:
        with contextlib.suppress(duckdb.Error):  # a dead database cannot roll back; the first error is told
            cursor.execute("ROLLBACK")


def piece_sizes(cursor: duckdb.DuckDBPyConnection, source: str, params: Sequence[Any]) -> tuple[int, int]:
    """Return the bytes of texts, and roughly those of the vectors of their tokens."""
    sums = f"SELECT sum(bytes)::BIGINT, sum(tokens)::BIGINT FROM (SELECT {SIZES} FROM {source})"
    texts, tokens = cursor.execute(sums, params).fetchall()[0]
    return texts or 0, tokens or 0


def _times(cursor: duckdb.DuckDBPyConnection, where: str, params: Sequence[Any]) -> NDArray[np.int64]:
    """Return the create times of an owner's memories in microseconds, in order."""
    found = cursor.execute(
        f"SELECT epoch_us(create_time) AS created FROM memories WHERE {where} AND delete_time IS NULL", params
    ).fetchnumpy()
    times = integers(found["created"], 0)
    times.sort()
    return times


def _windows(owner: Owner, times: NDArray[np.int64]) -> Iterator[tuple[str, list[Any]]]:
    """Yield conditions by create_time, which the zone maps make cheap to find, for all of an owner's memories."""
    where, params = queries.of_owner(owner)
    for n in range(0, len(times), CHUNK):
        window = times[n : n + CHUNK]
        bounds = [datetime_of(int(window[0])), datetime_of(int(window[-1]))]
        yield f"{where} AND create_time >= ? AND create_time <= ? AND delete_time IS NULL", [*params, *bounds]


def _batches(
    cursor: duckdb.DuckDBPyConnection,
    owner: Owner,
    times: NDArray[np.int64],
    dimensions: Sequence[int],
    wanted: VectorsWanted,
) -> Iterator[Batch]:
    """Yield an owner's memories, oldest first."""
    has_vectors = wanted.texts and wanted.dimensions in dimensions
    vector = f"CASE WHEN fingerprint = ? THEN {column_of(wanted.dimensions)} END" if has_vectors else "NULL"
    tokens = "CASE WHEN fingerprint = ? THEN token_vectors END" if has_vectors and wanted.tokens else "NULL::BLOB"
    given = [PLAIN] + [wanted.fingerprint] * (has_vectors + (has_vectors and wanted.tokens))
    sql = f"SELECT {RECORD}, {MORE}, {vector} AS vector, {tokens} AS tokens FROM memories WHERE"
    uses = _Uses(cursor, owner)
    facets = _Facets()
    unpack = partial(_unpacked, owner)
    for where, params in _windows(owner, times):
        columns = _in_order(cursor.execute(f"{sql} {where}", [*given, *params]).fetchnumpy())
        created = integers(columns["created"], 0)
        recalls, recalled = uses.of(created)
        values = {name: columns[name].tolist() for name in columns if name not in {"vector", "tokens"}}
        packed = [*(values[name] for name in PACKED), *recalled]
        records = [marshal.dumps(row) for row in zip(*packed, strict=True)]
        yield Batch(
            order=created,
            ids=values["id"],
            records=records,
            unpack=unpack,
            digests=np.frombuffer(bytes.fromhex("".join(values["text_digest"])), dtype="<u8").reshape(-1, 2),
            keys=values["key"],
            kinds=values["kind"],
            times=Times(*(integers(columns[name], NEVER) for name in ("created", "happened", "expires", "superseded"))),
            trusts=np.asarray(columns["trust"], dtype=np.uint8),
            confidences=np.asarray(columns["confidence"], dtype=np.float64),
            recalls=recalls,
            facets=[facets[text] for text in values["facets"]],
            traits=values["traits"],
            characters=integers(columns["characters"], 0),
            noted=[(n, unpack(records[n])) for n in np.flatnonzero(columns["noted"]).tolist()],
            said=_said(*(values[name] for name in Said._fields)),
            terms=values["terms"],
            vectors=stacked(columns["vector"], wanted.dimensions) if wanted.texts else None,
            tokens=[bytes_of(one) for one in columns["tokens"]] if has_vectors and wanted.tokens else None,
        )


def _vectors(
    query: Query,
    owner: Owner,
    times: NDArray[np.int64],
    dimensions: Sequence[int],
    wanted: VectorsWanted,
) -> Iterator[VectorBatch]:
    """Yield the vectors of an owner's memories of those times that have any."""
    if wanted.dimensions not in dimensions:
        return
    tokens = "token_vectors" if wanted.tokens else "NULL::BLOB"
    for where, params in _windows(owner, times):
        columns = query(
            f"SELECT epoch_us(create_time) AS created, {column_of(wanted.dimensions)} AS vector, {tokens} AS tokens"
            f" FROM memories WHERE {where} AND fingerprint = ?",
            [*params, wanted.fingerprint],
        )
        columns = _in_order(columns)
        held = [bytes_of(one) for one in columns["tokens"]] if wanted.tokens else []
        yield VectorBatch(integers(columns["created"], 0), stacked(columns["vector"], wanted.dimensions), held)


def _said(*columns: Sequence[str | None]) -> list[tuple[int, Said]]:
    return [(n, Said(*row)) for n, row in enumerate(zip(*columns, strict=True)) if row[0] is not None]


def _in_order(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return rows oldest first. To sort them in SQL takes half as long again: the vectors are moved twice."""
    created = columns["created"]
    if (np.diff(created) > 0).all():
        return columns
    order = np.argsort(created, kind="stable")
    return {name: column[order] for name, column in columns.items()}


class _Uses:
    """When an owner's memories were recalled, and how often: read at once, as a join with each piece reads all uses."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, owner: Owner) -> None:
        where, params = queries.of_owner(owner)
        found = cursor.execute(
            "SELECT epoch_us(m.create_time) AS created, u.recall_count AS count, epoch_us(u.recall_time) AS time,"
            " epoch_us(u.trusted_recall_time) AS trusted_time FROM uses AS u JOIN"
            f" (SELECT id, create_time FROM memories WHERE {where} AND delete_time IS NULL) AS m ON m.id = u.memory_id"
            " ORDER BY created",
            params,
        ).fetchnumpy()
        self._created, self._count = integers(found["created"], 0), integers(found["count"], 0)
        self._times = integers(found["time"], NEVER), integers(found["trusted_time"], NEVER)

    def of(self, created: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[list[int | None]]]:
        """Return how often memories of some create times, rising, were recalled; and the columns of that to pack."""
        size = len(created)
        counts = np.zeros(size, dtype=np.int64)
        packed: list[list[int | None]] = [[None] * size for _ in range(3)]
        first, after = np.searchsorted(self._created, [created[0], created[-1] + 1]).tolist() if size else (0, 0)
        for n, place in enumerate(np.searchsorted(created, self._created[first:after]).tolist(), first):
            if created[place] != self._created[n]:
                continue
            counts[place] = self._count[n]
            times = [None if time == NEVER else int(time) for time in (column[n] for column in self._times)]
            for column, value in zip(packed, (times[0], int(self._count[n]), times[1]), strict=True):
                column[place] = value
        return counts, packed


class _Facets(dict[str, tuple[str, ...]]):
    """The filter terms of the columns `facets` that were met; each is read once."""

    def __missing__(self, text: str) -> tuple[str, ...]:
        terms = self[text] = tuple(json.loads(one) for one in text.split(rows.SEPARATOR) if one)
        return terms


def integers(column: NDArray[Any], instead: int = 0) -> NDArray[np.int64]:
    """Return a column of numbers with another number for what is null."""
    return np.asarray(np.ma.filled(column, instead), dtype=np.int64)


def bytes_of(value: Any) -> bytes:
    """Return what a BLOB holds; nothing where it is null."""
    return bytes(value) if isinstance(value, bytearray | bytes) else b""


def stacked(column: NDArray[Any], dimensions: int) -> NDArray[np.float32]:
    """Return a column of vectors as rows, zeros for what is null: shape (len(column), dimensions)."""
    if len(column) and not np.ma.is_masked(column) and isinstance(column[0], np.ndarray):
        return np.stack(column.tolist())
    found = np.zeros((len(column), dimensions), dtype=np.float32)
    for n, vector in enumerate(column):
        if isinstance(vector, np.ndarray | tuple | list):
            found[n] = vector
    return found


def _unpacked(owner: Owner, record: bytes) -> Memory:
    """Return the memory of a record: PACKED, then when it was recalled, how often, and when by the host."""
    (
        memory_id, content, kind, key, details, created, own_happened, expires, superseded, grant_id, recalled, count,
        trusted_recalled,
    ) = marshal.loads(record)  # noqa: S302  packed in this process, never read from outside  # fmt: skip
    scope, happened = owner.scope, created if own_happened is None else own_happened
    details = PLAIN if details is None else details
    times = (created, happened, expires, superseded, None, None)
    return rows.memory_of((
        memory_id, owner.agent_id, scope.user_id, scope.chat_id, content, kind, key, details, *map(datetime_of, times),
        grant_id, datetime_of(recalled), count, datetime_of(trusted_recalled),
    ))  # fmt: skip


def datetime_of(value: int | None) -> datetime | None:
    """Return a time of so many microseconds since 1970 as the columns hold it."""
    return None if value is None else EPOCH + timedelta(microseconds=value)


def entry_of(memory: Memory, terms: str, fingerprint: str, vector: Any, tokens: Any) -> Entry:
    """Return the entry of a row; its vector and tokens are masked or None where there are none."""
    return Entry(
        memory,
        terms,
        np.asarray(vector, dtype=np.float32) if isinstance(vector, np.ndarray | tuple | list) else None,
        fingerprint,
        bytes_of(tokens),
    )
