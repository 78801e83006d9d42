"""The recallable memories of one owner, read in one transaction: what an index is built from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from memoryd.model.batch import NEVER, Batch, Provenance, Times, VectorBatch, VectorsWanted
from memoryd.model.change import Entry
from memoryd.model.commits import Snapshot
from memoryd.model.entity import Entity
from memoryd.model.memory import Kind, Memory
from memoryd.model.memory_columns import memory_of
from memoryd.model.scope import Owner
from memoryd.store.duckdb import queries
from memoryd.store.duckdb.columns import plain
from memoryd.store.duckdb.pieces import (
    WEIGHT,
    Query,
    apart,
    bytes_of,
    in_order,
    integers,
    reading,
    rows_in,
    stacked,
)
from memoryd.store.duckdb.vectors import column_of
from memoryd.store.loading import FacetTexts, Rows
from memoryd.store.rows import TABLE_COLUMNS, datetime_of, entity_of

__all__ = ["entities_of", "entry_of", "read_snapshot"]

T = TypeVar("T")
# What is told by the column that windows are found by, and all else: see `pieces.apart`.
TIMES = "id, epoch_us(create_time) AS create_time"
TIME_COLUMNS = ("create_time", "event_time", "expire_time", "supersede_time")  # as Times tells them
NOTED = " OR ".join(f"contains(memories.details, '\"{name}\"')" for name in ("mentions", "claims", "contested_with"))
SAID = ", ".join(
    f"CASE WHEN kind = '{Kind.EPISODE.value}' THEN coalesce(memories.details->>'$.{path}', '') END AS {name}"
    for name, path in (
        ("thread_id", "source.thread_id"),
        ("session_id", "source.session_id"),
        ("speaker", "source.speaker"),
        ("category", "category"),
    )
)
READ = [f"{plain(name)} AS {name}" for name in TABLE_COLUMNS if name != "create_time"]
TEXTS = (
    f"{', '.join(READ)}, text_digest, facets, traits, terms, length(content) AS characters,"
    f" CASE memories.details->>'$.trust'{WEIGHT} END AS trust,"
    f" (memories.details->>'$.confidence')::DOUBLE AS confidence, {NOTED} AS noted, {SAID}"
)


def entities_of(cursor: duckdb.DuckDBPyConnection, owner: Owner) -> list[Entity]:
    """Return what was decided of an owner's entities by hand, by id."""
    where, params = queries.of_owner(owner)
    rows = cursor.execute(f"SELECT id, details, create_time FROM entities WHERE {where} ORDER BY id", params).fetchall()
    return [entity_of(owner, *row) for row in rows]


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
    where, params = queries.of_owner(owner)
    with reading(cursor) as seq:
        known = rows_in(cursor, "epoch_us(create_time)", f"memories WHERE {where} AND delete_time IS NULL", params)
        entities = entities_of(cursor, owner)
        stones = cursor.execute(f"SELECT digest FROM tombstones WHERE {where}", params).fetchall()
        return build(
            Snapshot(
                seq,
                len(known.numbers),
                int(known.text_bytes.sum()),
                partial(_batches, cursor, owner, known, dimensions),
                entities,
                frozenset(bytes.fromhex(digest) for (digest,) in stones),
                int(known.token_bytes.sum()),
                partial(_vectors, query, owner, known, dimensions),
            )
        )


def _windows(owner: Owner, known: Rows) -> Iterator[tuple[str, list[Any]]]:
    """Yield conditions by create_time for all of an owner's memories."""
    where, params = queries.of_owner(owner)
    for first, last in known.windows():
        bounds = [datetime_of(first), datetime_of(last)]
        yield f"{where} AND create_time >= ? AND create_time <= ? AND delete_time IS NULL", [*params, *bounds]


def _batches(
    cursor: duckdb.DuckDBPyConnection,
    owner: Owner,
    known: Rows,
    dimensions: Sequence[int],
    wanted: VectorsWanted,
) -> Iterator[Batch]:
    """Yield an owner's memories, oldest first."""
    has_vectors = wanted.texts and wanted.dimensions in dimensions
    vector = f"CASE WHEN fingerprint = ? THEN {column_of(wanted.dimensions)} END" if has_vectors else "NULL"
    tokens = "CASE WHEN fingerprint = ? THEN token_vectors END" if has_vectors and wanted.tokens else "NULL::BLOB"
    windows = "CASE WHEN fingerprint = ? THEN window_vectors END" if has_vectors else "NULL::BLOB"
    given = [wanted.fingerprint] * (2 * has_vectors + (has_vectors and wanted.tokens))
    texts = f"{TEXTS}, {vector} AS vector, {tokens} AS tokens, {windows} AS windows"
    uses = _Uses(cursor, owner)
    facets = FacetTexts()
    read = partial(memory_of, owner)
    for where, params in _windows(owner, known):
        sql = apart(texts, TIMES, "memories", where, key="id")
        columns = in_order(cursor.execute(sql, [*given, *params, *params]).fetchnumpy(), "create_time")
        created = integers(columns["create_time"])
        recalls, recalled = uses.of(created)
        values = {name: columns[name].tolist() for name in columns if name not in {"vector", "tokens", "windows"}}
        rows = list(zip(*(values[name] for name in TABLE_COLUMNS), *recalled, strict=True))
        yield Batch(
            order=created,
            ids=values["id"],
            rows=rows,
            read=read,
            digests=np.frombuffer(bytes.fromhex("".join(values["text_digest"])), dtype="<u8").reshape(-1, 2),
            keys=values["key"],
            kinds=values["kind"],
            times=Times(*(integers(columns[name], NEVER) for name in TIME_COLUMNS)),
            trusts=np.asarray(columns["trust"], dtype=np.uint8),
            confidences=np.asarray(columns["confidence"], dtype=np.float64),
            recalls=recalls,
            facets=[facets[text] for text in values["facets"]],
            traits=values["traits"],
            characters=integers(columns["characters"]),
            noted=[(n, read(rows[n])) for n in np.flatnonzero(columns["noted"]).tolist()],
            said=_said(*(values[name] for name in Provenance._fields)),
            terms=values["terms"],
            vectors=stacked(columns["vector"], wanted.dimensions) if wanted.texts else None,
            tokens=[bytes_of(one) for one in columns["tokens"]] if has_vectors and wanted.tokens else None,
            windows=_held(columns["windows"]),
        )


def _vectors(
    query: Query,
    owner: Owner,
    known: Rows,
    dimensions: Sequence[int],
    wanted: VectorsWanted,
) -> Iterator[VectorBatch]:
    """Yield the vectors of an owner's memories of those times that have any."""
    if wanted.dimensions not in dimensions:
        return
    tokens = "token_vectors" if wanted.tokens else "NULL::BLOB"
    for where, params in _windows(owner, known):
        columns = query(
            f"SELECT epoch_us(create_time) AS created, {column_of(wanted.dimensions)} AS vector, {tokens} AS tokens,"
            f" window_vectors AS windows FROM memories WHERE {where} AND fingerprint = ?",
            [*params, wanted.fingerprint],
        )
        columns = in_order(columns, "created")
        held = [bytes_of(one) for one in columns["tokens"]] if wanted.tokens else []
        order = integers(columns["created"])
        windows = [(int(order[n]), codes) for n, codes in _held(columns["windows"])]
        yield VectorBatch(order, stacked(columns["vector"], wanted.dimensions), held, windows)


def _held(column: NDArray[Any]) -> list[tuple[int, bytes]]:
    """Return what a column of BLOBs holds, with its place, of those that are not empty."""
    there = np.flatnonzero(~np.ma.getmaskarray(column))
    return [(n, codes) for n in there.tolist() if (codes := bytes_of(column[n]))]


def _said(*columns: Sequence[str | None]) -> list[tuple[int, Provenance]]:
    return [(n, Provenance(*row)) for n, row in enumerate(zip(*columns, strict=True)) if row[0] is not None]


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
        self._created, self._count = integers(found["created"]), integers(found["count"])
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


def entry_of(
    memory: Memory,
    terms: str,
    fingerprint: str = "",
    vector: Any = None,
    tokens: Any = None,
    windows: Any = None,
) -> Entry:
    """Return the entry of a row; its vectors are masked or None where there are none."""
    return Entry(
        memory,
        terms,
        np.asarray(vector, dtype=np.float32) if isinstance(vector, np.ndarray | tuple | list) else None,
        fingerprint,
        bytes_of(tokens),
        bytes_of(windows),
    )
