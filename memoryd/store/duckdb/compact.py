"""
Rewriting the database without the bytes of what was purged.

A copy is made while calls go on, brought up to the last transaction while writers wait, and takes the place of the file
in one rename: before it the old file is whole, after it the new one. A crash leaves at most the unfinished copy, which
the next start removes.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from memoryd.errors import Unavailable
from memoryd.store.duckdb.files import beside
from memoryd.store.durable import put_in_place

__all__ = ["COPY", "NAME", "catch_up", "copy_to", "detach", "remains_of", "swap"]

COPY = ".compact"
NAME = "compacted"
LARGE = {"memories": "id", "messages": "number", "message_vectors": "(thread || id || '/' || commit_seq)"}
"""Tables whose rows of later commits alone are copied again, and what tells their rows apart."""


def copy_to(con: duckdb.DuckDBPyConnection, path: Path, *, storage_version: str) -> int:
    """
    Copy the database to a new file, attached as `compacted`, and return the number of its last change set.

    All of it is on disk then: what is left for `catch_up`, while writers wait, is what has changed meanwhile.
    """
    path.unlink(missing_ok=True)
    # without a log, which would take as many bytes again; a copy that is not finished is of no use
    options = f"STORAGE_VERSION '{storage_version}', RECOVERY_MODE 'no_wal_writes'"
    con.execute(f"ATTACH '{_quoted(path)}' AS {NAME} ({options})")
    main = con.execute("SELECT current_database()").fetchall()[0][0]
    con.execute("BEGIN")
    try:
        seq = int(con.execute("SELECT max(commit_seq) FROM commits").fetchall()[0][0])
        con.execute(f'COPY FROM DATABASE "{main}" TO {NAME}')
        con.execute("COMMIT")
    except BaseException:
        con.execute("ROLLBACK")
        raise
    con.execute(f"CHECKPOINT {NAME}")
    return seq


def catch_up(con: duckdb.DuckDBPyConnection, seq: int) -> bool:
    """
    Bring the copy up to the last transaction; return whether it holds bytes of what was purged since it was made.

    Raises Unavailable if the tables have changed meanwhile.
    """
    main = con.execute("SELECT current_database()").fetchall()[0][0]
    tables = (
        "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = ? AND NOT internal ORDER BY ALL"
    )
    if con.execute(tables, [main]).fetchall() != con.execute(tables, [NAME]).fetchall():
        raise Unavailable("the tables changed while they were copied; compact again")
    names = sorted({table for table, _ in con.execute(tables, [main]).fetchall()})
    marks = [con.execute(f"SELECT value FROM {of}meta WHERE name = 'purge'").fetchall() for of in ("", f"{NAME}.")]
    gone = int(marks[0] != marks[1])  # rows that were changed by what was purged, too, leave their bytes
    for name, key in LARGE.items():
        counted = f"SELECT count(*) FROM {NAME}.{name} WHERE {key} NOT IN (SELECT {key} FROM {name})"
        gone += con.execute(counted).fetchall()[0][0]
        con.execute(
            f"DELETE FROM {NAME}.{name} WHERE {key} NOT IN (SELECT {key} FROM {name})"
            f" OR {key} IN (SELECT {key} FROM {name} WHERE commit_seq > {int(seq)})"
        )
        con.execute(f"INSERT INTO {NAME}.{name} BY NAME SELECT * FROM {name} WHERE commit_seq > {int(seq)}")
    for name in names:
        if name not in LARGE and not _is_equal(con, name):
            _make_anew(con, main, name)
    for name in names:
        counted = f"SELECT (SELECT count(*) FROM {name}), (SELECT count(*) FROM {NAME}.{name})"
        if len(set(con.execute(counted).fetchall()[0])) != 1:
            raise Unavailable(f"the copy of table {name!r} is not whole; the database stays as it was")
    con.execute(f"CHECKPOINT {NAME}")
    con.execute(f"DETACH {NAME}")
    return bool(gone)


def _make_anew(con: duckdb.DuckDBPyConnection, main: str, name: str) -> None:
    """Put the rows of a small table into the copy: of rows that are only deleted there, a file keeps the bytes."""
    made = con.execute(
        "SELECT sql FROM duckdb_tables() WHERE database_name = ? AND table_name = ?", [main, name]
    ).fetchall()[0][0]
    con.execute(f"DROP TABLE {NAME}.{name}")
    con.execute(f"CREATE TABLE {NAME}.main.{name}({made.partition('(')[2]}")
    con.execute(f"INSERT INTO {NAME}.{name} BY NAME SELECT * FROM {name}")


def _is_equal(con: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether a table of the copy has the rows of the database's; what is written anew makes the file longer."""
    lacking = f"SELECT count(*) FROM (FROM {name} EXCEPT ALL FROM {NAME}.{name})"
    more = f"SELECT count(*) FROM (FROM {NAME}.{name} EXCEPT ALL FROM {name})"
    return con.execute(f"SELECT ({lacking}) + ({more})").fetchall() == [(0,)]


def detach(con: duckdb.DuckDBPyConnection) -> None:
    """Let go of a copy that is not used; one that cannot be folded in, on a full disk, goes the second time."""
    try:
        con.execute(f"DETACH DATABASE IF EXISTS {NAME}")
    except duckdb.Error:
        con.execute(f"DETACH DATABASE IF EXISTS {NAME}")


def swap(path: Path) -> None:
    """Put the copy into the database's place; the database is closed, and its log folded in."""
    wal = beside(path, ".wal")
    if wal.exists():
        raise Unavailable("the log could not be folded in; compact again")
    copy = beside(path, COPY)
    copy.chmod(0o600)
    put_in_place(copy, path)


def remains_of(path: Path) -> list[Path]:
    """Return the files next to a database that are copies of an earlier state of it."""
    copies = (item for item in path.parent.glob(f"{path.name}.before-*") if item.is_file())
    return sorted(item for item in copies if item.suffix not in {".wal", ".seq", ".part"})


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
