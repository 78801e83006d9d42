"""Columns of many rows as one value each, so that no row becomes an object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.adapt import Transformer
from psycopg.pq import Format

from memoryd.model.batch import NEVER
from memoryd.store.loading import Rows
from memoryd.store.postgres.connect import Row

__all__ = ["blobs_of", "integers_of", "one_row", "rows_in", "times_of"]

SINCE_1970 = 946_684_800_000_000  # microseconds until 2000, from when the server counts
TEXTS = 1009  # the number of text[]
HEAD = 20  # bytes before the first element of an array of one dimension, as the server sends it
_ELEMENT = np.dtype([("length", ">i4"), ("value", ">i8")])
# of a text and its words, which are about as long, and of the vectors of its tokens: see `duckdb.pieces`
SIZES = ("2 * text_bytes", "least(254, text_bytes / 4 + 2) * 128")


def integers_of(array: bytes | None) -> NDArray[np.int64]:
    """Return an int8[] without nulls as it comes in binary: 20 bytes, then of each its length and its value."""
    if array is None or len(array) <= HEAD:
        return np.zeros(0, dtype=np.int64)
    return np.frombuffer(array, dtype=_ELEMENT, offset=HEAD)["value"].astype(np.int64)


def times_of(array: bytes | None) -> NDArray[np.int64]:
    """Return a timestamp[] without nulls as microseconds since 1970; NEVER where one is infinity."""
    held = integers_of(array)
    return np.where(held == NEVER, NEVER, held + SINCE_1970)


def blobs_of(array: bytes | None) -> list[bytes]:
    """Return what a bytea[] holds; b"" where an element is null."""
    found, at = [], HEAD
    while array is not None and at < len(array):
        size = int.from_bytes(array[at : at + 4], "big", signed=True)
        at += 4
        found.append(bytes(array[at : at + size]) if size > 0 else b"")
        at += max(size, 0)
    return found


def one_row(con: psycopg.Connection[Row], sql: str, params: Sequence[Any], texts: int) -> tuple[Any, ...]:
    """Return the one row of a query: its first `texts` columns as lists, the rest as the bytes that came, or None."""
    cursor = con.cursor(binary=True)
    cursor.execute(sql.encode(), params)
    result = cursor.pgresult
    assert result is not None  # noqa: S101  the query was carried out
    loaded = Transformer(con).get_loader(TEXTS, Format.BINARY)
    held = [result.get_value(0, n) for n in range(result.nfields)]
    lists = [[] if one is None else loaded.load(one) for one in held[:texts]]
    return (*lists, *held[texts:])


def rows_in(
    con: psycopg.Connection[Row],
    number: str,
    source: str,
    params: Sequence[Any],
    read: Callable[[bytes | None], NDArray[np.int64]] = integers_of,
) -> Rows:
    """Return the rows of a table that meet a condition, in the order of a number, or of a time that `read` reads."""
    columns = ", ".join(f"array_agg({name})" for name in ("number", "bytes", "tokens"))
    told = f"SELECT {number} AS number, {SIZES[0]} AS bytes, {SIZES[1]} AS tokens FROM {source} ORDER BY 1"
    numbers, *sizes = one_row(con, f"SELECT {columns} FROM ({told}) AS told", params, 0)
    return Rows(read(numbers), *map(integers_of, sizes))
