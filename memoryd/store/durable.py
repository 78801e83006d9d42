"""Files that are on disk, whole, before they have their name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["copy_file", "open_new", "put_in_place", "sync_file", "sync_folder", "write_all", "write_file"]


def write_file(path: Path, data: bytes) -> None:
    """Write a file for its owner alone, in place of one of that name; OSError, and then nothing has changed."""
    part = _part_of(path)
    try:
        handle = open_new(part)
        try:
            write_all(handle, data)
        finally:
            os.close(handle)
        put_in_place(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def copy_file(source: Path, target: Path) -> None:
    """Copy a file for its owner alone, in place of one of that name; OSError, and then nothing has changed."""
    part = _part_of(target)
    try:
        with source.open("rb") as read, os.fdopen(open_new(part), "wb") as written:
            shutil.copyfileobj(read, written, 1 << 20)
        put_in_place(part, target)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def open_new(path: Path) -> int:
    """
    Make a file for its owner alone, in place of what has the name, and open it to be written; OSError.

    A link of that name, which someone else may have put there, is removed, and what it leads to is left alone.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def put_in_place(part: Path, path: Path) -> None:
    """Give a file that was written its name, once it is on disk."""
    sync_file(part)
    part.replace(path)
    sync_folder(path.parent)


def write_all(handle: int, data: bytes) -> None:
    """Write all of some bytes; OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def sync_file(path: Path) -> None:
    """Bring a file to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Bring what is named in a folder to the disk."""
    sync_file(folder)


def _part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")
