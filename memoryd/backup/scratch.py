"""Folders for what is only of use while something is made of it; those of a process that was killed are removed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["remove_stale", "scratch"]

PREFIX = ".memoryd-scratch-"


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """Make a folder that is held while it is used, and remove it; OSError."""
    remove_stale(parent)
    folder, held = _held(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _held(parent: Path) -> tuple[Path, int]:
    """Make a folder, and hold it: one that another process took for stale before it was held is made again."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        try:
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        fcntl.flock(held, fcntl.LOCK_EX)
        if folder.exists():
            return folder, held
        os.close(held)


def remove_stale(parent: Path) -> None:
    """Remove the folders that no one holds: whole copies of a database may lie there, with what was purged since."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # it has just gone, or is another's
            continue
        try:
            if os.fstat(held).st_uid == os.geteuid():
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(held)
