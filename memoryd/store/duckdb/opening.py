"""
Opening a database, or refusing to: what DuckDB would overlook is looked for here.

Files of a store at PATH: PATH itself, PATH.wal (DuckDB's log), PATH.seq (the side file), PATH.wal.aside (a copy of the
log while it is being replayed), PATH.compact (a copy while the database is rewritten), PATH.before-schema-N (as it
was before a migration), PATH.reserve (space for deletes on a full disk) and PATH.lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import duckdb

from memoryd.model import filter_terms
from memoryd.store.duckdb.damage import damage_of, read_everything
from memoryd.store.duckdb.facets import Tell, refresh_filter_terms
from memoryd.store.duckdb.migrations import MIGRATIONS, Migration, migrate
from memoryd.store.duckdb.reserve import RESERVE
from memoryd.store.duckdb.watermark import CommitWatermark, read_watermark
from memoryd.store.refusal import StoreInUse, StoreRefused

__all__ = ["STORAGE_VERSION", "Opened", "beside", "check_database", "open_database", "unreadable"]

STORAGE_VERSION = "v1.5.0"  # of new files: readable by DuckDB 1.5 and later
# The part of DuckDB's memory that the log may take. A checkpoint stalls the writer, so it is made when idle; this is
# for a busy day. Rows of no checkpoint lie in memory: where they fill it, a commit fails, and DuckDB with it.
WAL_SHARE = 4


@dataclass(slots=True)
class Opened:
    """A database that is open and proven."""

    path: Path
    connection: duckdb.DuckDBPyConnection
    watermark: CommitWatermark
    lock: int
    store_id: str
    schema_version: int
    commit_seq: int
    secret: bytes
    memory_limit_bytes: int

    def reconnect(self) -> None:
        """Open the database again, after its connection was closed."""
        self.connection = _connect(self.path, self.memory_limit_bytes)

    def close(self) -> None:
        """Let go of the files; a log that is left is folded in by DuckDB."""
        try:
            self.connection.close()
        finally:
            try:
                self.watermark.close()
            finally:
                os.close(self.lock)


def beside(path: Path, suffix: str) -> Path:
    """Return the file of a store whose name is the database's and a suffix: .wal, .seq, .lock, …"""
    return path.with_name(path.name + suffix)


def _lock(path: Path) -> int:
    if path.is_dir():
        raise StoreRefused(f"{path} is a directory; name the database file in store.path")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and path.stat().st_uid != os.geteuid():
            raise StoreRefused(
                f"{path} belongs to user {path.stat().st_uid}; run"
                " memoryd as that user (sudo -u), or it would leave files that the daemon cannot open"
            )
        handle = os.open(beside(path, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreRefused(
            f"cannot write in {path.parent}: {error.strerror}; give memoryd a directory of its own"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise StoreInUse(f"{path} is in use by another memoryd; stop it, or name another --data-dir") from None
    return handle


def open_database(
    path: Path,
    *,
    memory_limit_bytes: int,
    random_bytes: Callable[[int], bytes],
    migrations: tuple[Migration, ...] = MIGRATIONS,
    adopt: bool = False,
    accept_loss: int | None = None,
    tell: Tell = lambda _done, _total: None,
) -> Opened:
    """
    Open the database, or create it where none of its files exist, with an id and a secret of `random_bytes`.

    Memories whose filter terms an older version has written get new ones; `tell` is told how far that is.

    With adopt, a database without its side file is taken as it is; with accept_loss, one whose last transaction has
    exactly that number. Raises StoreRefused, before anything is changed, if the files are not what they should be.
    """
    lock = _lock(path)
    try:
        opened = _open_locked(
            path, lock, memory_limit_bytes, random_bytes, migrations, adopt=adopt, accept_loss=accept_loss
        )
    except BaseException:
        os.close(lock)
        raise
    try:
        refresh_filter_terms(opened.connection, tell)
    except BaseException as error:
        with contextlib.suppress(duckdb.Error):
            opened.close()
        if isinstance(error, duckdb.Error):
            raise unreadable(path, error) from None
        raise
    return opened


def check_database(
    path: Path,
    *,
    memory_limit_bytes: int,
    random_bytes: Callable[[int], bytes],
    adopt: bool = False,
    accept_loss: int | None = None,
) -> int:
    """Open a database and read all of it; return the number of its last transaction. Raises StoreRefused."""
    opened = open_database(
        path, memory_limit_bytes=memory_limit_bytes, random_bytes=random_bytes, adopt=adopt, accept_loss=accept_loss
    )
    try:
        read_everything(opened.connection)
    except duckdb.Error as error:
        raise unreadable(path, error) from None
    finally:
        with contextlib.suppress(duckdb.Error):  # a damaged one cannot be folded in
            opened.close()
    return opened.commit_seq


def _open_locked(
    path: Path,
    lock: int,
    memory_limit_bytes: int,
    random_bytes: Callable[[int], bytes],
    migrations: tuple[Migration, ...],
    *,
    adopt: bool,
    accept_loss: int | None,
) -> Opened:
    side, wal, aside = beside(path, ".seq"), beside(path, ".wal"), beside(path, ".wal.aside")
    try:
        noted = read_watermark(side)
    except OSError as error:
        raise StoreRefused(f"{side} cannot be read: {error.strerror}; put the right file back") from None
    begun = noted is not None and noted[1] == 0  # the side file is written first, so a crash may leave it alone
    if not path.exists():
        _check_new(path, noted, repair=adopt or accept_loss is not None)
        store_id = noted[0] if noted is not None else UUID(bytes=random_bytes(16), version=4)
        CommitWatermark(side, store_id, 0).close()
        noted, begun = (store_id, 0), True
    elif noted is None and side.exists() and not adopt:
        raise StoreRefused(f"{side} is damaged; if {path} is complete, run: memoryd check --adopt")
    elif noted is None and not adopt:
        raise StoreRefused(
            f"{side} is missing, so no one can tell whether {path} is complete; put it back, or, if you know the"
            " database is whole, run: memoryd check --adopt"
        )
    beside(path, ".compact").unlink(missing_ok=True)  # a copy that was not finished; see compact.py
    beside(path, ".compact.wal").unlink(missing_ok=True)
    kept = wal.exists() and not aside.exists()
    if kept:
        _copy(wal, aside, beside(path, RESERVE))
    con = _connect(path, memory_limit_bytes)
    try:
        _check_size(con, path)
        store_id, version, commit_seq, secret = _prove(
            con, path, noted, latest=len(migrations), begun=begun, accept_loss=accept_loss
        )
        if 0 < version < len(migrations):
            con.execute("CHECKPOINT")
            shutil.copyfile(path, beside(path, f".before-schema-{version + 1}"))
        migrate(con, version, migrations, store_id=str(store_id), random_bytes=random_bytes)
        secret = secret or bytes.fromhex(con.execute("SELECT value FROM meta WHERE name = 'secret'").fetchall()[0][0])
    except duckdb.Error as error:
        _let_go(con)
        raise unreadable(path, error) from None
    except BaseException:
        _let_go(con)
        raise
    watermark = CommitWatermark(side, store_id, commit_seq)
    aside.unlink(missing_ok=True)
    path.chmod(0o600)
    return Opened(path, con, watermark, lock, str(store_id), len(migrations), commit_seq, secret, memory_limit_bytes)


def _check_new(path: Path, noted: tuple[UUID, int] | None, *, repair: bool) -> None:
    """Raise StoreRefused where a database that is not there is to be repaired, or has left other files."""
    if repair:
        raise StoreRefused(f"{path} does not exist, so there is nothing to repair; name the --data-dir")
    left = beside(path, ".wal").exists() or beside(path, ".wal.aside").exists()
    if left or (noted is not None and noted[1]):
        raise StoreRefused(
            f"{path} is missing, but its log or side file is there, so it held data"
            f"{'' if noted is None else f' up to transaction {noted[1]}'}; put the database back, or restore a"
            f" backup; to start over, move {path.name}.* away"
        )


def _copy(source: Path, target: Path, reserve: Path) -> None:
    part = target.with_name(target.name + ".part")
    try:
        try:
            shutil.copyfile(source, part)
        except OSError as error:
            if error.errno != errno.ENOSPC or not reserve.exists():
                raise
            reserve.unlink()
            shutil.copyfile(source, part)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreRefused(f"cannot copy the log {source} aside before replaying it: {error.strerror}") from None
    part.replace(target)


def _connect(path: Path, memory_limit_bytes: int) -> duckdb.DuckDBPyConnection:
    try:
        con = duckdb.connect(
            str(path),
            config={
                "storage_compatibility_version": STORAGE_VERSION,
                "memory_limit": f"{memory_limit_bytes}B",
                "temp_directory": str(beside(path, ".tmp")),
                "threads": 1,
                "wal_autocheckpoint": f"{memory_limit_bytes // WAL_SHARE}B",
                "enable_external_access": True,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            },
        )
        con.execute("SELECT 1 FROM duckdb_tables()").fetchall()
    except duckdb.Error as error:
        raise unreadable(path, error) from None
    return con


def unreadable(path: Path, error: duckdb.Error) -> StoreRefused:
    """Return why a database is not served that cannot be read, and the way out."""
    fault = damage_of(path, error) or f"{path} cannot be read: {str(error).splitlines()[0]}; restore a backup"
    aside = beside(path, ".wal.aside")
    return StoreRefused(f"{fault} (the log as it was found is {aside.name})" if aside.exists() else fault)


def _let_go(con: duckdb.DuckDBPyConnection) -> None:
    with contextlib.suppress(duckdb.Error):  # a damaged database cannot be folded in; it was refused already
        con.close()


def _check_size(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Refuse a file too short for its used blocks: DuckDB would notice when it reads there, days later."""
    blocks, size = con.execute("SELECT used_blocks, block_size FROM pragma_database_size()").fetchall()[0]
    needed, found = blocks * size, path.stat().st_size
    if found < needed:
        raise StoreRefused(f"{path} is cut off: it has {found} of at least {needed} bytes; restore a backup")


def _prove(
    con: duckdb.DuckDBPyConnection,
    path: Path,
    noted: tuple[UUID, int] | None,
    *,
    latest: int,
    begun: bool,
    accept_loss: int | None,
) -> tuple[UUID, int, int, bytes]:
    """Return uuid, schema version, commit_seq and secret; StoreRefused if the database is not the one that it was."""
    tables = {row[0] for row in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    if "meta" not in tables or "commits" not in tables:
        if tables or not begun or noted is None:
            raise StoreRefused(f"{path} is not a memoryd database; name another --data-dir")
        return noted[0], 0, 0, b""
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
            raise StoreRefused(
                f"{path} ends at transaction {commit_seq}, but {noted[1]} was acknowledged: {noted[1] - commit_seq}"
                f" are missing. Restore a backup (the log as it was found is {path.name}.wal.aside), or give them up"
                f" with: memoryd check --accept-loss {commit_seq}"
            )
    return store_id, version, commit_seq, bytes.fromhex(meta["secret"])
