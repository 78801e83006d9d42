"""What loads of memories and of messages share: a snapshot, windows of rows that fit into memory, and their columns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from memoryd.model.trust import Trust
from memoryd.store.loading import Rows

__all__ = [
    "WEIGHT", "Query", "apart", "bytes_of", "in_order", "integers", "reading", "rows_in",
    "stacked",
]  # fmt: skip

Query = Callable[[str, Sequence[Any]], dict[str, NDArray[Any]]]
"""Runs a query with its parameters; returns columns."""
# of a text and its words, which are about as long, and of the vectors of its tokens: its word pieces, four characters
# each, and 128 bytes for each. Texts are not measured here: DuckDB would read 2,048 of them at once, however long.
SIZES = "2 * text_bytes AS bytes, least(254, text_bytes // 4 + 2) * 128 AS tokens"
WEIGHT = "".join(f" WHEN '{trust.value}' THEN {trust.weight}" for trust in Trust)


@contextlib.contextmanager
def reading(cursor: duckdb.DuckDBPyConnection) -> Iterator[int]:
    """Read the database as of one commit; yields its number."""
    cursor.execute("BEGIN")
    try:
        yield cursor.execute("SELECT max(commit_seq) FROM commits").fetchall()[0][0]
    finally:
        with contextlib.suppress(duckdb.Error):  # a dead database cannot roll back; the first error is told
            cursor.execute("ROLLBACK")


def rows_in(cursor: duckdb.DuckDBPyConnection, number: str, source: str, params: Sequence[Any]) -> Rows:
    """Return the rows of a table that meet a condition, in the order of an expression."""
    found = cursor.execute(f"SELECT {number} AS number, {SIZES} FROM {source}", list(params)).fetchnumpy()
    columns = [integers(found[name]) for name in ("number", "bytes", "tokens")]
    order = np.argsort(columns[0], kind="stable")
    return Rows(*(column[order] for column in columns))


def apart(texts: str, order: str, table: str, where: str, *, key: str) -> str:
    """
    Return a select of rows, with the parameters of `texts`, then those of `where` twice.

    Where a column is filtered and returned, DuckDB 2.0 reads 2,048 texts at once, however long, before it filters: 512
    MB of texts of 160 KB. So what is told by that column is read apart, and joined by a key.
    """
    return (
        f"SELECT * FROM (SELECT {texts} FROM {table} WHERE {where}) JOIN (SELECT {order} FROM {table} WHERE {where})"
        f" USING ({key})"
    )


def in_order(columns: dict[str, NDArray[Any]], name: str) -> dict[str, NDArray[Any]]:
    """Return rows in the order of one column. To sort them in SQL takes half as long again: vectors are moved twice."""
    numbers = columns[name]
    if (np.diff(numbers) > 0).all():
        return columns
    order = np.argsort(numbers, kind="stable")
    return {name: column[order] for name, column in columns.items()}


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
