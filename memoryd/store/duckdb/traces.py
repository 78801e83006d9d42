"""Where a text stands in the tables, and in the copies that lie next to the database."""

from __future__ import annotations

from pathlib import Path

import duckdb

from memoryd.store.duckdb.compact import remains_of

__all__ = ["traces_of"]

MOST_CHARACTERS = 256  # of a text that is looked for in pieces, whose edges have to fit into memory
ACROSS = """
    WITH edges AS (
        SELECT number, name, piece, text[:len($text)] AS start, text[-len($text):] AS rest FROM long_texts
    )
    SELECT 1 FROM edges JOIN edges AS next
    ON next.number = edges.number AND next.name = edges.name AND next.piece = edges.piece + 1
    WHERE contains(edges.rest || next.start, $text) LIMIT 1"""
"""Finds a text that stands in two pieces of a long one."""


def _places_of(con: duckdb.DuckDBPyConnection, text: str) -> set[str]:
    """Return the tables and columns of a database in which a text stands."""
    columns = con.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal AND data_type = 'VARCHAR'"
    ).fetchall()
    places = set()
    for table, column in columns:
        in_pieces = (table, column) == ("long_texts", "text")
        part = text[:MOST_CHARACTERS] if in_pieces else text
        found = con.execute(f"SELECT 1 FROM {table} WHERE contains({column}, ?) LIMIT 1", [part]).fetchall()
        if found or (in_pieces and con.execute(ACROSS, {"text": part}).fetchall()):
            places.add(f"{table}.{column}")
    return places


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
