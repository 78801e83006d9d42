"""Looking at a database without serving it: whether it is whole, and what a start would change."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

from memoryd.model import filter_terms
from memoryd.store.base import StoreCheck
from memoryd.store.duckdb.files import beside, unreadable
from memoryd.store.duckdb.migrations import MIGRATIONS
from memoryd.store.duckdb.opening import lock_database, open_database
from memoryd.store.duckdb.proof import Header, noted_of, prove_unchanged, refuse_lost
from memoryd.store.duckdb.watermark import CommitWatermark
from memoryd.store.refusal import StoreInUse, StoreRefused

__all__ = ["check_database", "migrate_database", "repair_database"]


def check_database(path: Path, *, memory_limit_bytes: int) -> StoreCheck:
    """
    Read all of a database and change nothing, in a folder that cannot be written as well.

    Raises StoreInUse, or StoreRefused where it would not be served.
    """
    with _kept_from_daemons(path):
        noted = noted_of(path)
        refuse_lost(path, noted)
        return _checked(
            prove_unchanged(path, noted, memory_limit_bytes, latest=len(MIGRATIONS)) if path.exists() else None
        )


def migrate_database(path: Path, *, memory_limit_bytes: int, random_bytes: Callable[[int], bytes]) -> StoreCheck:
    """
    Bring a database to the schema of this version, as a start would, and read all of it.

    One that needs nothing is not changed, and where there is none, none is made.
    """
    checked = check_database(path, memory_limit_bytes=memory_limit_bytes)
    if not checked.migrates and not checked.rewrites_filter_terms:
        return checked
    try:
        open_database(path, memory_limit_bytes=memory_limit_bytes, random_bytes=random_bytes).close()
    except duckdb.Error as error:
        raise unreadable(path, error) from None
    return check_database(path, memory_limit_bytes=memory_limit_bytes)


def repair_database(
    path: Path, *, memory_limit_bytes: int, adopt: bool = False, accept_loss: int | None = None
) -> StoreCheck:
    """
    Write the side file anew, so that a database is served as it is; nothing else is changed.

    With adopt, one without its side file; with accept_loss, one whose last transaction has that number, though more
    was acknowledged. Raises StoreRefused.
    """
    if not path.exists():
        raise StoreRefused(f"{path} does not exist, so there is nothing to repair; name the --data-dir")
    lock = lock_database(path)
    try:
        noted = noted_of(path)
        refuse_lost(path, noted, adopt=adopt)
        header = prove_unchanged(path, noted, memory_limit_bytes, latest=len(MIGRATIONS), accept_loss=accept_loss)
        CommitWatermark(beside(path, ".seq"), header.store_id, header.commit_seq).close()
    finally:
        os.close(lock)
    return _checked(header)


def _checked(header: Header | None) -> StoreCheck:
    """Return what is told of a database; of one that is still to be made, too."""
    latest = len(MIGRATIONS)
    if header is None or not header.schema_version:
        return StoreCheck(0, 0, latest, rewrites_filter_terms=False)
    is_old = header.filter_terms != filter_terms.VERSION
    return StoreCheck(
        header.commit_seq,
        header.schema_version,
        latest,
        rewrites_filter_terms=is_old,
        store_id=str(header.store_id),
    )


@contextlib.contextmanager
def _kept_from_daemons(path: Path) -> Iterator[None]:
    """Keep a daemon from starting meanwhile; where no lock file lies, none has ever run there. StoreInUse."""
    lock = beside(path, ".lock")
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        yield
        return
    except OSError as error:
        raise StoreRefused(f"{lock} cannot be read: {error.strerror}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreInUse(f"{path} is in use by another memoryd; stop it, or name another --data-dir") from None
        yield
    finally:
        os.close(handle)
