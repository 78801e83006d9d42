"""
Rewriting the database without the bytes of what was purged.

A copy is made while calls go on, brought up to the last transaction while writers wait, and takes the place of the file
in one rename: before it the old file is whole, after it the new one. A crash leaves at most the unfinished copy, which
the next start removes.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import duckdb

from memoryd.errors import Unavailable
from memoryd.model.change import PURGE
from memoryd.store.duckdb.files import beside
from memoryd.store.durable import put_in_place

__all__ = ["COPY", "catch_up", "copy_small", "copy_to", "detach", "remains_of", "swap"]

COPY = ".compact"
NAME = "compacted"
LARGE = {
    "memories": "id",
    "messages": "number",
    "long_texts": "number",
    "notes": "name",
    "note_texts": "key",
    "message_vectors": "(thread || id || '/' || commit_seq)",
}
"""Tables whose rows of later commits alone are copied again, and what tells their rows apart."""
NOTES = ("notes", "note_texts")
"""Of them, those whose rows also go where nothing is purged: with a former version, or a move."""


class Copied(NamedTuple):
    """Up to where a copy was made."""

    commit_seq: int
    """The number of its last change set."""
    purge: str
    """What the database noted of its last purge; empty: there was none."""


def copy_to(con: duckdb.DuckDBPyConnection, path: Path, *, storage_version: str) -> Copied:
    """
    Copy the large tables to a new file, attached as `compacted`, and return up to where.

    They are on disk then. What goes from the small ones would leave its bytes there: they are for `copy_small`.
    """
    path.unlink(missing_ok=True)
    # without a log, which would take as many bytes again; a copy that is not finished is of no use
    options = f"STORAGE_VERSION '{storage_version}', RECOVERY_MODE 'no_wal_writes'"
    con.execute(f"ATTACH '{_quoted(path)}' AS {NAME} ({options})")
    con.execute("BEGIN")
    try:
        copied = Copied(int(con.execute("SELECT max(commit_seq) FROM commits").fetchall()[0][0]), _last_purge(con))
        con.execute(f'COPY FROM DATABASE "{_main(con)}" TO {NAME} (SCHEMA)')
        for name in LARGE.keys() & set(_tables(con)):  # a state of a backup may be of an earlier schema
            con.execute(f"INSERT INTO {NAME}.{name} BY NAME SELECT * FROM {name}")
        con.execute("COMMIT")
    except BaseException:
        con.execute("ROLLBACK")
        raise
    con.execute(f"CHECKPOINT {NAME}")
    return copied


def copy_small(con: duckdb.DuckDBPyConnection) -> None:
    """Copy all other tables too, and let go of the copy, which is whole then; Unavailable where it is not."""
    names = _tables(con)
    for name in names:
        if name not in LARGE:
            con.execute(f"INSERT INTO {NAME}.{name} BY NAME SELECT * FROM {name}")
    for name in names:
        counted = f"SELECT (SELECT count(*) FROM {name}), (SELECT count(*) FROM {NAME}.{name})"
        if len(set(con.execute(counted).fetchall()[0])) != 1:
            raise Unavailable(f"the copy of table {name!r} is not whole; nothing was changed")
    con.execute(f"CHECKPOINT {NAME}")
    con.execute(f"DETACH {NAME}")


def catch_up(con: duckdb.DuckDBPyConnection, copied: Copied, *, takes_any: bool = False) -> None:
    """
    Bring the copy up to the last transaction, and let go of it.

    Raises Unavailable if the tables have changed meanwhile, and, unless it takes any, if the copy holds bytes of what
    was purged since it was made.
    """
    tables = (
        "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = ? AND NOT internal ORDER BY ALL"
    )
    if con.execute(tables, [_main(con)]).fetchall() != con.execute(tables, [NAME]).fetchall():
        raise Unavailable("the tables changed while they were copied; compact again")
    gone = int(copied.purge != _last_purge(con))  # rows that were changed by what was purged, too, leave their bytes
    for name, key in LARGE.items():
        counted = f"SELECT count(*) FROM {NAME}.{name} WHERE {key} NOT IN (SELECT {key} FROM {name})"
        if name not in NOTES:
            gone += con.execute(counted).fetchall()[0][0]
        con.execute(
            f"DELETE FROM {NAME}.{name} WHERE {key} NOT IN (SELECT {key} FROM {name})"
            f" OR {key} IN (SELECT {key} FROM {name} WHERE commit_seq > {copied.commit_seq})"
        )
        con.execute(f"INSERT INTO {NAME}.{name} BY NAME SELECT * FROM {name} WHERE commit_seq > {copied.commit_seq}")
    if gone and not takes_any:
        raise Unavailable("something was purged while it was copied")
    copy_small(con)


def _last_purge(con: duckdb.DuckDBPyConnection) -> str:
    noted = con.execute("SELECT value FROM meta WHERE name = 'purge'").fetchall()
    if "marks" in _tables(con):  # a state of a backup may be of an earlier schema
        noted += con.execute("SELECT time FROM marks WHERE name = ?", [PURGE]).fetchall()
    return " ".join(str(value) for (value,) in noted)


def _tables(con: duckdb.DuckDBPyConnection) -> list[str]:
    found = con.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = ? AND NOT internal ORDER BY 1", [_main(con)]
    ).fetchall()
    return [name for (name,) in found]


def _main(con: duckdb.DuckDBPyConnection) -> str:
    return str(con.execute("SELECT current_database()").fetchall()[0][0])


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
