"""Telling a damaged file from every other fault of the engine."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb

__all__ = ["damage_of", "read_everything"]

_SIGNS = ("corrupt", "checksum", "could not read enough bytes", "deserialize", "serialization error")
"""What DuckDB's messages hold where a block is not what was written; most come as plain duckdb.Error."""


_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_OF_THE_STATEMENT = (
    duckdb.ConstraintException,
    duckdb.ConversionException,
    duckdb.InvalidInputException,
    duckdb.BinderException,
    duckdb.ParserException,
)


FEW_ROWS = 32  # of the largest messages some 50 MiB


def damage_of(path: Path, error: BaseException) -> str:
    """Return what to tell of a damaged file, with the way out; empty if the error is of another kind."""
    if not isinstance(error, duckdb.Error) or isinstance(error, _OF_THE_STATEMENT):
        return ""
    lines = [_QUOTED.sub("…", line) for line in str(error).splitlines()]  # no path, and nothing that someone wrote
    text = next((line for line in lines if any(sign in line.lower() for sign in _SIGNS)), "")
    if not text:
        return ""
    return (
        f"the file {path} is damaged ({text[:160]}); stop memoryd, look at the disk, keep a copy of {path.name}*, and"
        " put back the last good copy; memoryd check reads all of it"
    )


def read_everything(con: duckdb.DuckDBPyConnection, *, threads: int = 1) -> None:
    """
    Read every column of every table, so that a block that cannot be read is found; duckdb.Error.

    DuckDB reads 2,048 rows at once, however long they are; where they need too much memory, a few are read at a time.
    Each thread reads columns of its own: the rows of a table lie in too few groups to be shared.
    """
    found = con.execute(
        "SELECT c.table_name, c.column_name FROM duckdb_columns() AS c JOIN duckdb_tables() AS t USING (table_oid)"
        " WHERE NOT t.internal ORDER BY t.estimated_size DESC, c.table_name, c.column_index DESC"
    )
    columns = iter([(str(table), str(column)) for table, column in found.fetchall()])
    with ThreadPoolExecutor(threads) as pool:
        long = list(pool.map(_read, [con.cursor() for _ in range(threads)], [columns] * threads))
    for table, column in itertools.chain(*long):
        last = con.execute(f'SELECT max(rowid) FROM "{table}"').fetchall()[0][0]
        for first in range(0, int(last) + 1, FEW_ROWS):
            rows = f'"{table}" WHERE rowid BETWEEN {first} AND {first + FEW_ROWS - 1}'
            con.execute(f'SELECT bit_xor(hash("{column}")) FROM {rows}').fetchall()


def _read(cursor: duckdb.DuckDBPyConnection, columns: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    """Read columns that no one has begun with, and return those that need too much memory."""
    long = []
    with cursor:
        for table, column in columns:
            try:
                cursor.execute(f'SELECT bit_xor(hash("{column}")) FROM "{table}"').fetchall()
            except duckdb.OutOfMemoryException:
                long.append((table, column))
    return long
