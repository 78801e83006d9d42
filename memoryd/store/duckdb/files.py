"""
The files of a database, and the connection to it.

Files of a store at PATH: PATH itself, PATH.wal (DuckDB's log), PATH.seq (the side file), PATH.wal.aside (a copy of the
log while it is being replayed), PATH.compact (a copy while the database is rewritten), PATH.before-schema-N (as it
was before a migration), PATH.reserve (space for deletes on a full disk) and PATH.lock.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import duckdb

from memoryd.store.duckdb.damage import damage_of
from memoryd.store.refusal import StoreRefused

__all__ = ["STORAGE_VERSION", "WAL_SHARE", "beside", "connect", "let_go", "log_size", "size_of", "unreadable"]

STORAGE_VERSION = "v2.0.0"  # of new files: with an older one the rows that were deleted never leave a file
# The part of DuckDB's memory that the log may take. A checkpoint stalls the writer, so it is made when idle; this is
# for a busy day. Rows of no checkpoint lie in memory: where they fill it, a commit fails, and DuckDB with it.
WAL_SHARE = 4


def beside(path: Path, suffix: str) -> Path:
    """Return the file of a store whose name is the database's and a suffix: .wal, .seq, .lock, …"""
    return path.with_name(path.name + suffix)


def log_size(path: Path) -> int:
    """Return the bytes of a database's log; 0: there is none."""
    try:
        return beside(path, ".wal").stat().st_size
    except FileNotFoundError:
        return 0


def size_of(path: Path) -> int:
    """Return the bytes of a database and its log."""
    return (path.stat().st_size if path.exists() else 0) + log_size(path)


def connect(path: Path, memory_limit_bytes: int, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """
    Open a database, or make it where there is none.

    Read-only, its log is replayed in memory, and no file is changed or made. Raises StoreRefused.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{memory_limit_bytes}B",
        "threads": 1,
        "enable_external_access": True,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if not read_only:
        config |= {
            "storage_compatibility_version": STORAGE_VERSION,
            "temp_directory": str(beside(path, ".tmp")),
            "wal_autocheckpoint": f"{memory_limit_bytes // WAL_SHARE}B",
        }
    try:
        con = duckdb.connect(str(path), read_only=read_only, config=config)
        con.execute("SELECT 1 FROM duckdb_tables()").fetchall()
    except duckdb.Error as error:
        raise unreadable(path, error) from None
    return con


def let_go(con: duckdb.DuckDBPyConnection) -> None:
    """Close a connection that may be to a damaged database: that cannot be folded in, and was refused already."""
    with contextlib.suppress(duckdb.Error):
        con.close()


def unreadable(path: Path, error: duckdb.Error) -> StoreRefused:
    """Return why a database is not served that cannot be read, and the way out."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return StoreRefused(f"reading {path} takes more memory than store.memory_limit_bytes; raise that")
    if "No space left" in str(error):
        return StoreRefused(f"the disk of {path} is full: make room, and start again")
    if "Permission denied" in str(error):
        return StoreRefused(f"{path} may not be read; look at its owner and mode")
    fault = damage_of(path, error) or f"{path} cannot be read: {str(error).splitlines()[0]}; restore a backup"
    aside = beside(path, ".wal.aside")
    return StoreRefused(f"{fault} (the log as it was found is {aside.name})" if aside.exists() else fault)
