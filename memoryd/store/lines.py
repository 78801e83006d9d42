"""Files of lines that are added one by one: JSON with a checksum each, on disk before the next step."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoryd.paths import open_regular
from memoryd.store.durable import write_all
from memoryd.store.refusal import StoreRefused

__all__ = ["Line", "LineFile", "read_line", "whole_lines"]

Line = Mapping[str, Any]


class LineFile:
    """An open file of lines; what was written in part when a process died is cut off."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it for its owner alone; OSError."""
        self.path = path
        self._file = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(self._file, whole)
        self.lines = whole_lines(data)
        """The lines that were there, undecoded."""

    def write(self, line: Line) -> bytes:
        """Add a line to the file, and return it without its end; OSError, and then nothing of it is there."""
        size = os.fstat(self._file).st_size
        body = json.dumps(line, separators=(",", ":"))[:-1]
        try:
            raw = f'{body},"crc":{zlib.crc32(body.encode())}}}'.encode()
            write_all(self._file, raw + b"\n")
        except OSError:
            os.ftruncate(self._file, size)
            raise
        return raw

    def sync(self) -> None:
        """Bring all lines to the disk; OSError, and then no one knows how many have reached it."""
        os.fdatasync(self._file)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def whole_lines(data: bytes) -> list[bytes]:
    """Return the lines of a file without their ends; one that is written just now, or was torn, is left out."""
    return data[: data.rfind(b"\n") + 1].splitlines()


def read_line(raw: bytes, path: Path, number: int) -> Line:
    """Return a line; StoreRefused where its checksum, CRC-32 of what stands before it, is another."""
    body, _, crc = raw.rpartition(b',"crc":')
    try:
        if zlib.crc32(body) == int(crc.removesuffix(b"}")):
            line: Line = json.loads(body + b"}")
            return line
    except ValueError:
        pass
    raise StoreRefused(
        f"{path} is damaged in line {number}; put the right file back, or move it away to begin a new one"
    )
