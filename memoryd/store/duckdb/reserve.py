"""
Space that is kept back so that a full disk does not keep anybody from deleting.

A delete makes the log longer before anything gets smaller. So a file takes up some space while there is enough, and
gives it back when deletes need it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["RESERVE", "Reserve"]

RESERVE = ".reserve"  # next to the database
MOST_BYTES = 16 << 20


class Reserve:
    """The file that takes up the space."""

    def __init__(self, path: Path, min_free_bytes: int) -> None:
        """Keep a sixteenth of what must stay free, at most 16 MiB."""
        self._path = path
        self._size = min(MOST_BYTES, min_free_bytes // 16)
        self._min_free = min_free_bytes

    def take(self, free_bytes: int) -> None:
        """Take the space up, if it is not yet, and twice as much is there besides what must stay free."""
        if not self._size or free_bytes < self._min_free + 2 * self._size or self._is_taken():
            return
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(handle, 0, self._size)
            finally:
                os.close(handle)
        except OSError:  # a file system that cannot, or someone was faster: there is no reserve then
            self.release()

    def _is_taken(self) -> bool:
        try:
            stat = self._path.stat()
        except OSError:
            return False
        return stat.st_size == self._size and stat.st_blocks * 512 >= self._size

    def release(self) -> None:
        """Give the space back."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
