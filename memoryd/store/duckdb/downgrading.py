"""Going back to the copy from before an upgrade; the newer files are kept under another name."""

from __future__ import annotations

import os
import re
from pathlib import Path

from memoryd.store.base import Downgrade
from memoryd.store.duckdb.files import beside
from memoryd.store.duckdb.migrations import MIGRATIONS
from memoryd.store.duckdb.opening import lock_database
from memoryd.store.duckdb.proof import noted_of, prove_unchanged
from memoryd.store.duckdb.watermark import CommitWatermark
from memoryd.store.durable import copy_file, sync_folder
from memoryd.store.refusal import StoreRefused

__all__ = ["downgrade_database"]

_COPY = re.compile(r"\.before-schema-(\d+)")


def downgrade_database(
    path: Path, *, memory_limit_bytes: int, schema: int | None = None, dry_run: bool = False
) -> Downgrade:
    """
    Put the copy from before the last upgrade, or from before that of a schema, in the place of a database.

    A crash in between leaves the newer files whole, under one name or both, or a database that no memoryd serves as it
    is, and says so. Raises StoreInUse, or StoreRefused before anything is changed.
    """
    if not path.exists():  # before a lock makes a folder of a wrong name
        raise StoreRefused(f"{path} is not there, so there is nothing to go back from; name the --data-dir")
    lock = lock_database(path)
    try:
        noted = noted_of(path)
        if noted is None:
            raise StoreRefused(f"the side file of {path} is not there, so there is nothing to go back from")
        copy, before = _copy_of(path, schema)
        header = prove_unchanged(copy, None, memory_limit_bytes, latest=len(MIGRATIONS))
        if header.store_id != noted[0]:
            raise StoreRefused(f"{copy} is of database {header.store_id}, not of {noted[0]}")
        kept = beside(path, f".before-downgrade-to-{header.schema_version}")
        done = Downgrade(header.schema_version, before, header.commit_seq, noted[1], str(copy), str(kept))
        if kept.exists() and noted[1] <= header.commit_seq:
            raise StoreRefused(f"{path} has schema {header.schema_version} already; there is nothing to go back from")
        if kept.exists():
            raise StoreRefused(
                f"{kept} is there already, from an earlier way back; if you do not want to return to it, move it away"
            )
        if dry_run:
            return done
        part = beside(path, ".downgrade")
        try:
            copy_file(copy, part)
        except OSError as error:
            raise StoreRefused(
                f"cannot copy {copy}: {error.strerror}; it needs {copy.stat().st_size >> 20} MiB. Nothing was changed"
            ) from None
        _put_in_place(path, part, kept)
        CommitWatermark(beside(path, ".seq"), header.store_id, header.commit_seq).close()
        return done
    finally:
        os.close(lock)


def _copy_of(path: Path, schema: int | None) -> tuple[Path, int]:
    """Return the copy, and the schema that it was made before."""
    copies = {
        int(match[1]): item
        for item in path.parent.glob(f"{path.name}.before-schema-*")
        if (match := _COPY.fullmatch(item.name.removeprefix(path.name)))
    }
    if not copies:
        raise StoreRefused(f"next to {path} there is no copy from before an upgrade ({path.name}.before-schema-N)")
    wanted = max(copies) if schema is None else schema + 1
    if wanted not in copies:
        told = ", ".join(str(number - 1) for number in sorted(copies))
        raise StoreRefused(f"next to {path} there is no copy of schema {schema}; there are those of {told}")
    return copies[wanted], wanted


def _put_in_place(path: Path, part: Path, kept: Path) -> None:
    """Keep the newer files, then give the older one its name; until its side file follows, none is served."""
    copy_file(beside(path, ".seq"), beside(kept, ".seq"))  # a link would be written by the older store, too
    if beside(path, ".wal").exists():
        os.link(beside(path, ".wal"), beside(kept, ".wal"))
    os.link(path, kept)
    sync_folder(path.parent)
    beside(path, ".wal").unlink(missing_ok=True)
    beside(path, ".wal.aside").unlink(missing_ok=True)
    part.replace(path)
    sync_folder(path.parent)
