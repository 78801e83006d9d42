"""Whether the files of a store are what they were: what DuckDB would overlook is looked for here."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import duckdb

from memoryd.model import filter_terms
from memoryd.store.duckdb.damage import read_everything
from memoryd.store.duckdb.files import beside, connect, let_go, unreadable
from memoryd.store.duckdb.watermark import read_watermark
from memoryd.store.refusal import StoreRefused

__all__ = ["Header", "Noted", "noted_of", "prove", "prove_unchanged", "refuse_lost"]

Noted = tuple[UUID, int] | None
"""Id and last transaction by the side file; None: it is missing, or damaged."""


class Header(NamedTuple):
    """What a database says of itself."""

    store_id: UUID
    schema_version: int
    """0: it has no tables yet."""
    commit_seq: int
    secret: bytes
    filter_terms: int


def noted_of(path: Path) -> Noted:
    """Read the side file of a database; StoreRefused if it cannot be read."""
    side = beside(path, ".seq")
    try:
        return read_watermark(side)
    except OSError as error:
        raise StoreRefused(f"{side} cannot be read: {error.strerror}; put the right file back") from None


def refuse_lost(path: Path, noted: Noted, *, adopt: bool = False) -> None:
    """Raise StoreRefused where a database has lost its side file, or left one behind."""
    side = beside(path, ".seq")
    if not path.exists():
        left = beside(path, ".wal").exists() or beside(path, ".wal.aside").exists()
        if left or (noted is not None and noted[1]):
            raise StoreRefused(
                f"{path} is missing, but its log or side file is there, so it held data"
                f"{'' if noted is None else f' up to transaction {noted[1]}'}; put the database back, or restore a"
                f" backup; to start over, move {path.name}.* away"
            )
    elif noted is None and not adopt:
        if side.exists():
            raise StoreRefused(f"{side} is damaged; if {path} is complete, run: memoryd check --adopt")
        raise StoreRefused(
            f"{side} is missing, so no one can tell whether {path} is complete; put it back, or, if you know the"
            " database is whole, run: memoryd check --adopt"
        )


def prove_unchanged(
    path: Path,
    noted: Noted,
    memory_limit_bytes: int,
    *,
    latest: int,
    accept_loss: int | None = None,
    readers: int = 1,
) -> Header:
    """
    Prove a database as `prove` does, and change no file: its log is replayed in memory.

    All of it is read, by so many threads; 0: it is not read.
    Closing a connection that may write would fold the log in, also one that is refused. Raises StoreRefused.
    """
    con = connect(path, memory_limit_bytes, read_only=True)
    try:
        header = prove(con, path, noted, latest=latest, accept_loss=accept_loss)
        if readers:
            read_everything(con, threads=readers)
    except duckdb.Error as error:
        raise unreadable(path, error) from None
    finally:
        let_go(con)
    return header


def prove(
    con: duckdb.DuckDBPyConnection, path: Path, noted: Noted, *, latest: int, accept_loss: int | None = None
) -> Header:
    """
    Return what a database says of itself; StoreRefused if it is not the one that it was.

    `latest` is the last schema that is known. With accept_loss, one whose last transaction has that number is taken.
    """
    _check_size(con, path)
    tables = {row[0] for row in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    if "meta" not in tables or "commits" not in tables:
        if tables or noted is None or noted[1]:  # the side file is written first, so a crash may leave it alone
            raise StoreRefused(f"{path} is not a memoryd database; name another --data-dir")
        return Header(noted[0], 0, 0, b"", filter_terms.VERSION)
    meta = dict(con.execute("SELECT name, value FROM meta").fetchall())
    store_id, version = UUID(meta["store_id"]), int(meta["schema_version"])
    if version > latest:
        raise StoreRefused(
            f"{path} has schema {version}; this memoryd knows up to {latest}. Install the newer memoryd again"
        )
    terms = int(meta.get("filter_terms", 0))
    if terms > filter_terms.VERSION:
        raise StoreRefused(
            f"{path} has filter terms of version {terms}; this memoryd knows up to {filter_terms.VERSION}. Install the"
            " newer memoryd again"
        )
    commit_seq = int(con.execute("SELECT max(commit_seq) FROM commits").fetchall()[0][0])
    if accept_loss is not None and accept_loss != commit_seq:
        raise StoreRefused(f"{path} ends at transaction {commit_seq}, not at {accept_loss}; nothing was changed")
    if noted is not None:
        if noted[0] != store_id:
            raise StoreRefused(
                f"{path} is database {store_id}, but {path.name}.seq belongs to {noted[0]}; put the right one back"
            )
        if commit_seq < noted[1] and accept_loss is None:
            aside = beside(path, ".wal.aside")
            found = f" (the log as it was found is {aside.name})" if aside.exists() else ""
            raise StoreRefused(
                f"{path} ends at transaction {commit_seq}, but {noted[1]} was acknowledged: {noted[1] - commit_seq}"
                f" are missing. Restore a backup{found}, or give them up with: memoryd check --accept-loss {commit_seq}"
            )
    return Header(store_id, version, commit_seq, bytes.fromhex(meta["secret"]), terms)


def _check_size(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Refuse a file too short for its used blocks: DuckDB would notice when it reads there, days later."""
    blocks, size = con.execute("SELECT used_blocks, block_size FROM pragma_database_size()").fetchall()[0]
    needed, actual = blocks * size, path.stat().st_size
    if actual < needed:
        raise StoreRefused(f"{path} is cut off: it has {actual} of at least {needed} bytes; restore a backup")
