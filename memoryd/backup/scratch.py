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

PREFIX = ".scratch-"


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """Make a folder that is held while it is used, and remove it; OSError."""
    remove_stale(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def remove_stale(parent: Path) -> None:
    """Remove the folders that no one holds: whole copies of a database may lie there, with what was purged since."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:  # it has just gone
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(held)
