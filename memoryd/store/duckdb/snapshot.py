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
from memoryd.model.memory import Memory
from memoryd.model.scope import Owner
from memoryd.store.duckdb import queries, rows

__all__ = ["SIZES", "entities_of", "entry_of", "read_snapshot"]

T = TypeVar("T")
# of a text, and of the vectors of its tokens, roughly: its word pieces, four characters each, and 128 bytes for each
SIZES = (
    "strlen(content) + strlen(details) + strlen(terms) AS bytes, least(254, strlen(content) // 4 + 2) * 128 AS tokens"
)
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
    select_entries: Callable[..., str],
    build: Callable[[Snapshot], T],
) -> T:
    """Call build with a snapshot of an owner, and return its result; the chunks are read while build consumes them."""
    cursor.execute("BEGIN")
    try:
        seq = cursor.execute("SELECT max(commit_seq) FROM commits").fetchall()[0][0]
        where, params = queries.of_owner(owner)
        found = cursor.execute(
            f"SELECT create_time, {SIZES} FROM memories WHERE {where} AND delete_time IS NULL ORDER BY create_time",
            params,
        ).fetchnumpy()
        times, text_bytes = found["create_time"], int(found["bytes"].sum())
        entities = entities_of(cursor, owner)
        stones = cursor.execute(f"SELECT digest FROM tombstones WHERE {where}", params).fetchall()
        whole, bare = (_chunks(cursor, select_entries, where, params, times, tokens=wanted) for wanted in (True, False))
        return build(
            Snapshot(
                seq,
                len(times),
                text_bytes,
                whole,
                entities,
                frozenset(bytes.fromhex(digest) for (digest,) in stones),
                bare,
                int(found["tokens"].sum()),
            )
        )
    finally:
        with contextlib.suppress(duckdb.Error):  # a dead database cannot roll back; the first error is told
            cursor.execute("ROLLBACK")


def _chunks(
    cursor: duckdb.DuckDBPyConnection,
    select_entries: Callable[..., str],
    where: str,
    params: list[Any],
    times: NDArray[np.datetime64],
    *,
    tokens: bool,
) -> Iterator[list[Entry]]:
    """Yield an owner's entries, oldest first, by windows of create_time, which the zone maps make cheap to find."""
    source = f"(SELECT * FROM memories WHERE {where} AND create_time >= ? AND create_time <= ? AND delete_time IS NULL)"
    sql = select_entries(source, tokens=tokens) + " ORDER BY m.create_time"
    for n in range(0, len(times), CHUNK):
        window = times[n : n + CHUNK]
        bounds = [window[0].astype("datetime64[us]").item(), window[-1].astype("datetime64[us]").item()]
        columns = cursor.execute(sql, [*params, *bounds]).fetchnumpy()
        vectors, held = columns.pop("vector"), columns.pop("token_vectors")
        yield [
            entry_of(rows.memory_of(row[:-2]), row[-2], row[-1], vector, tokens)
            for row, vector, tokens in zip(rows.rows_of(columns), vectors, held, strict=True)
        ]


def entry_of(memory: Memory, terms: str, fingerprint: str, vector: Any, tokens: Any) -> Entry:
    """Return the entry of a row; its vector and tokens are masked or None where there are none."""
    return Entry(
        memory,
        terms,
        np.asarray(vector, dtype=np.float32) if isinstance(vector, np.ndarray | tuple | list) else None,
        fingerprint,
        bytes(tokens) if isinstance(tokens, bytearray | bytes) else b"",
    )
