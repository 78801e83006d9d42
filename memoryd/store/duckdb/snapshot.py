"""The recallable memories of one owner, read in one transaction: what an index is built from."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from memoryd.model.change import Entry, Snapshot
from memoryd.model.entity import Entity
from memoryd.model.scope import Owner
from memoryd.store.duckdb import queries, rows

__all__ = ["entities_of", "read_snapshot"]

T = TypeVar("T")
CHUNK = 4096  # memories that a load holds as rows at a time: a few MB


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
    select_entries: Callable[[str], str],
    build: Callable[[Snapshot], T],
) -> T:
    """Call build with a snapshot of an owner, and return its result; the chunks are read while build consumes them."""
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
        entities = entities_of(cursor, owner)
        stones = cursor.execute(f"SELECT digest FROM tombstones WHERE {where}", params).fetchall()
        chunks = _chunks(cursor, select_entries, where, params, times)
        return build(
            Snapshot(seq, len(times), text_bytes, chunks, entities, frozenset(bytes.fromhex(s) for (s,) in stones))
        )
    finally:
        with contextlib.suppress(duckdb.Error):  # a dead database cannot roll back; the first error is told
            cursor.execute("ROLLBACK")


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
