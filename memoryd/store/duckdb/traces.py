"""Where a text stands in the tables, and in the copies that lie next to the database."""

from __future__ import annotations

from pathlib import Path

import duckdb

from memoryd.store.duckdb.compact import remains_of

__all__ = ["traces_of"]


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


def traces_of(cursor: duckdb.DuckDBPyConnection, database: Path, text: str) -> list[str]:
    """Return the tables and columns in which a text stands; see FileBacked.traces."""
    places = _places_of(cursor, text)
    for copy in remains_of(database):  # its blocks are compressed: no search of its bytes would find it
        try:
            with duckdb.connect(str(copy), read_only=True) as con:
                places |= {f"{copy.name}:{place}" for place in _places_of(con, text)}
        except duckdb.Error:
            places.add(f"{copy.name}:unreadable")
    return sorted(places)
