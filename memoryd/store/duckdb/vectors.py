"""
Where vectors lie: one column a dimension, `vector_384 FLOAT[384]`, added when the first such vector is written.

An array of fixed size, as a list of 384 numbers makes a commit up to four times dearer (DuckDB reads the lists before
it to find the place of the last one), and next to its memory, as columns are stored apart anyway and a load needs no
join.
"""

from __future__ import annotations

import re

import duckdb

__all__ = ["VectorColumns", "column_of"]

_NAME = re.compile(r"vector_(\d+)")


def column_of(dimensions: int) -> str:
    """Return the column of vectors of so many dimensions."""
    return f"vector_{dimensions}"


class VectorColumns:
    """The vector columns that a table has."""

    def __init__(self, con: duckdb.DuckDBPyConnection, table: str = "memories") -> None:
        self._table = table
        names = con.execute(
            "SELECT column_name FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index", [table]
        ).fetchall()
        matches = [_NAME.fullmatch(name) for (name,) in names]
        self.dimensions = tuple(int(match[1]) for match in matches if match)

    def ensure(self, con: duckdb.DuckDBPyConnection, dimensions: int) -> None:
        """Add the column for so many dimensions, where it is missing."""
        if dimensions not in self.dimensions:
            con.execute(f"ALTER TABLE {self._table} ADD COLUMN {column_of(dimensions)} FLOAT[{int(dimensions)}]")
            self.dimensions = (*self.dimensions, dimensions)

    @property
    def expression(self) -> str:
        """The vector of a row m, of whatever length, or NULL."""
        if len(self.dimensions) == 1:
            return f"m.{column_of(self.dimensions[0])}"
        if not self.dimensions:
            return "NULL::FLOAT[]"
        return f"coalesce({', '.join(f'm.{column_of(size)}::FLOAT[]' for size in self.dimensions)})"
