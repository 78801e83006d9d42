"""
Faults of single files under a real daemon: no space, I/O errors, short writes, syncs that fail or take long.

libfiu makes calls fail by their name; here it is one file at a time, so a small library of our own is preloaded
(`shim.c`, with the C compiler of the machine).
"""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

__all__ = ["FaultControl", "FaultKind", "compiler"]

_CONTROL = struct.Struct("ii248s")
SOURCE = Path(__file__).with_name("shim.c")


class FaultKind(IntEnum):
    """What goes wrong; as in `shim.c`."""

    FULL = 1
    WRITE_ERROR = 2
    SYNC_ERROR = 3
    SHORT_WRITE = 4
    SLOW_SYNC = 5


def compiler() -> str | None:
    """Return the C compiler; None: there is none."""
    return shutil.which("cc") or shutil.which("gcc")


class FaultControl:
    """Switches the faults of a process that runs with `env`."""

    def __init__(self, folder: Path) -> None:
        """Build the library in a folder."""
        library, path = folder / "shim.so", folder / "control"
        subprocess.run([str(compiler()), "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
        path.write_bytes(bytes(_CONTROL.size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _CONTROL.size)
        self.env = {"LD_PRELOAD": str(library), "FAULT_CONTROL": str(path)}

    @contextmanager
    def fault(self, kind: FaultKind, pattern: str) -> Iterator[None]:
        """Let calls on files whose path matches go wrong."""
        self._memory[:] = _CONTROL.pack(0, 0, pattern.encode())
        self._memory[:4] = struct.pack("i", kind)
        try:
            yield
        finally:
            self._memory[:4] = struct.pack("i", 0)

    @property
    def hits(self) -> int:
        """How many calls have gone wrong since the last fault began."""
        return int(_CONTROL.unpack(self._memory[:])[1])
