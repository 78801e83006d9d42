"""Opening a database to write to it, or refusing to: what stands on its files is proved first."""

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

from memoryd.store.duckdb.facets import Tell, refresh_filter_terms
from memoryd.store.duckdb.files import beside, connect, let_go, size_of, unreadable
from memoryd.store.duckdb.migrations import MIGRATIONS, Migration, migrate
from memoryd.store.duckdb.migrations.conversations import long_texts
from memoryd.store.duckdb.proof import Header, noted_of, prove, prove_unchanged, refuse_lost
from memoryd.store.duckdb.watermark import CommitWatermark
from memoryd.store.durable import copy_file
from memoryd.store.refusal import StoreInUse, StoreRefused

__all__ = ["Opened", "lock_database", "open_database"]


MIGRATION_TIMES = 4  # the memory of store.memory_limit_bytes, while an older schema may have very long rows
WRITES_ANEW = 3  # times its size that a database may take while a table is written anew: with a copy and the log
LAST_THAT_WRITES_ANEW = MIGRATIONS.index(long_texts) + 1


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
        self.connection = connect(self.path, self.memory_limit_bytes)

    def close(self) -> None:
        """Let go of the files; a log that is left is folded in by DuckDB."""
        try:
            self.connection.close()
        finally:
            try:
                self.watermark.close()
            finally:
                os.close(self.lock)


def lock_database(path: Path) -> int:
    """Return the handle that keeps every other memoryd away; StoreInUse, StoreRefused."""
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
    tell: Tell = lambda _done, _total: None,
) -> Opened:
    """
    Open the database, or create it where none of its files exist, with an id and a secret of `random_bytes`.

    One of an older schema is migrated, after a copy of it was made; memories whose filter terms an older version has
    written get new ones, and `tell` is told how far that is. Raises StoreRefused, before anything is changed, if the
    files are not what they should be.
    """
    lock = lock_database(path)
    try:
        opened = _open_locked(path, lock, memory_limit_bytes, random_bytes, migrations)
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


def _open_locked(
    path: Path,
    lock: int,
    memory_limit_bytes: int,
    random_bytes: Callable[[int], bytes],
    migrations: tuple[Migration, ...],
) -> Opened:
    side, wal, aside = beside(path, ".seq"), beside(path, ".wal"), beside(path, ".wal.aside")
    noted = noted_of(path)
    refuse_lost(path, noted)
    if not path.exists():
        store_id = noted[0] if noted is not None else UUID(bytes=random_bytes(16), version=4)
        CommitWatermark(side, store_id, 0).close()
        noted = store_id, 0
    for left in (beside(path, ".compact"), beside(path, ".compact.wal"), aside):
        if left.is_dir():
            raise StoreRefused(f"{left} is a folder; memoryd keeps a file of that name, so remove it")
        if left != aside:
            left.unlink(missing_ok=True)  # a copy that was not finished; see compact.py
    shutil.rmtree(beside(path, ".tmp"), ignore_errors=True)  # what a killed process had no memory for, in clear
    if wal.exists() and not aside.exists() and not _copy_log(wal, aside):
        found = prove_unchanged(path, noted, memory_limit_bytes, latest=len(migrations), readers=0)
        _refuse_without_room(path, found, len(migrations))
    con, copy = connect(path, memory_limit_bytes), None
    try:
        header = prove(con, path, noted, latest=len(migrations))
        if 0 < header.schema_version < len(migrations):
            _refuse_without_room(path, header, len(migrations))
            con.execute("CHECKPOINT")
            copy = _copy_before(path, header.schema_version + 1)
            con.execute(f"SET memory_limit = '{MIGRATION_TIMES * memory_limit_bytes}B'")
        try:
            migrate(con, header.schema_version, migrations, store_id=str(header.store_id), random_bytes=random_bytes)
        except duckdb.Error:
            if copy is not None and _schema_of(con) == header.schema_version:
                copy.unlink(missing_ok=True)  # nothing was changed: it is a copy of what is there
            raise
        if copy is not None:
            con.close()
            con = connect(path, memory_limit_bytes)
        made = con.execute("SELECT value FROM meta WHERE name = 'secret'").fetchall()[0][0]
    except duckdb.Error as error:
        let_go(con)
        raise unreadable(path, error) from None
    except BaseException:
        let_go(con)
        raise
    watermark = CommitWatermark(side, header.store_id, header.commit_seq)
    aside.unlink(missing_ok=True)
    path.chmod(0o600)
    return Opened(
        path,
        con,
        watermark,
        lock,
        str(header.store_id),
        len(migrations),
        header.commit_seq,
        bytes.fromhex(made),
        memory_limit_bytes,
    )


def _copy_log(source: Path, target: Path) -> bool:
    """Copy the log aside before it is replayed; return whether there was room for that. StoreRefused."""
    try:
        copy_file(source, target)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return False
        raise StoreRefused(f"cannot copy the log {source} aside before replaying it: {error.strerror}") from None
    return True


def _refuse_without_room(path: Path, header: Header, latest: int) -> None:
    """Raise StoreRefused where a migration needs a copy that there is no room for, before the log is folded in."""
    if not 0 < header.schema_version < latest:
        return
    needed = size_of(path) * (WRITES_ANEW if header.schema_version < LAST_THAT_WRITES_ANEW else 1)
    if shutil.disk_usage(path.parent).free < needed:
        raise StoreRefused(_no_copy(path, header.schema_version + 1, "No space left on device", needed))


def _no_copy(path: Path, version: int, why: str | None, needed: int) -> str:
    return (
        f"cannot keep a copy of {path} before it is migrated to schema {version}: {why}; it needs {needed >> 20} MiB in"
        f" {path.parent}. Nothing was changed"
    )


def _schema_of(con: duckdb.DuckDBPyConnection) -> int:
    """Return the schema of a database, 0 where it cannot be read any more."""
    try:
        return int(con.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchall()[0][0])
    except duckdb.Error:
        return 0


def _copy_before(path: Path, version: int) -> Path:
    """Keep the database as it is before it is migrated to a schema."""
    target = beside(path, f".before-schema-{version}")
    try:
        copy_file(path, target)
    except OSError as error:
        raise StoreRefused(_no_copy(path, version, error.strerror, path.stat().st_size)) from None
    return target
