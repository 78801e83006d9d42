"""Making a store of a database that was put together from a backup: proved, and with a history of its own."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import duckdb

from memoryd.errors import Unavailable
from memoryd.store.duckdb.compact import copy_small, copy_to
from memoryd.store.duckdb.files import STORAGE_VERSION, beside, connect, let_go, unreadable
from memoryd.store.duckdb.migrations import MIGRATIONS
from memoryd.store.duckdb.proof import Header, prove, prove_unchanged
from memoryd.store.duckdb.watermark import CommitWatermark
from memoryd.store.refusal import StoreRefused

__all__ = ["SANDBOXES_CLOSED", "begin_history", "history_id", "prove_copy", "rewrite_copy"]

JUMP = 1_000_000
"""So far the numbers of transactions jump, that none is given twice: what others remember of the old ones is theirs."""
SANDBOXES_CLOSED = "sandboxes_closed"


def prove_copy(path: Path, store_id: UUID, commit_seq: int, *, memory_limit_bytes: int, readers: int = 1) -> Header:
    """
    Read all of a database that must be this store up to this transaction, and change nothing. StoreRefused.

    So many threads read at once.
    """
    noted = (store_id, commit_seq)
    header = prove_unchanged(path, noted, memory_limit_bytes, latest=len(MIGRATIONS), readers=readers)
    if header.commit_seq != commit_seq:
        raise StoreRefused(f"{path} ends at transaction {header.commit_seq}, not at {commit_seq}")
    return header


def rewrite_copy(path: Path, target: Path, store_id: UUID, commit_seq: int, *, memory_limit_bytes: int) -> None:
    """Write all rows of a database to a new file; StoreRefused where it is not this store up to this transaction."""
    con = connect(path, memory_limit_bytes)
    try:
        prove(con, path, (store_id, commit_seq), latest=len(MIGRATIONS))
        copy_to(con, target, storage_version=STORAGE_VERSION)
        copy_small(con)
    except duckdb.Error as error:
        if "No space left" in str(error):
            raise OSError(errno.ENOSPC, "there is no room for two copies of the database", str(target.parent)) from None
        raise unreadable(path, error) from None
    except Unavailable as error:
        raise StoreRefused(f"{path}: {error}") from None
    finally:
        let_go(con)
    target.chmod(0o600)


def begin_history(
    path: Path,
    header: Header,
    *,
    memory_limit_bytes: int,
    random_bytes: Callable[[int], bytes],
    closes_sandboxes: bool,
    above: int = 0,
) -> int:
    """
    Fold the log in, and let a proved copy be served: with an id of its history, and numbers that no one has seen.

    Returns the number that its last transaction has now, past `above`, which others have seen. Raises StoreRefused.
    """
    con = connect(path, memory_limit_bytes)
    commit_seq = (max(header.commit_seq, above) // JUMP + 1) * JUMP
    noted = {"history_id": str(UUID(bytes=random_bytes(16), version=4))}
    if closes_sandboxes:
        noted[SANDBOXES_CLOSED] = "1"
    try:
        con.execute("BEGIN")
        con.execute("UPDATE commits SET commit_seq = ?", [commit_seq])
        for name, value in noted.items():
            con.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", [name, value]
            )
        con.execute("COMMIT")
        con.execute("CHECKPOINT")
    except duckdb.Error as error:
        let_go(con)
        raise unreadable(path, error) from None
    con.close()
    CommitWatermark(beside(path, ".seq"), header.store_id, commit_seq).close()
    for file in (path, beside(path, ".wal")):
        if file.exists():
            file.chmod(0o600)
    return commit_seq


def history_id(con: duckdb.DuckDBPyConnection) -> str:
    """Return the id of the history that a database is of; empty: it was not restored from a backup."""
    noted = con.execute("SELECT value FROM meta WHERE name = 'history_id'").fetchall()
    return str(noted[0][0]) if noted else ""
