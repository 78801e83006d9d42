"""Files of lines that are added one by one: JSON with a checksum each, on disk before the next step."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from memoryd.paths import open_regular
from memoryd.store.durable import write_all
from memoryd.store.refusal import StoreRefused

__all__ = ["STEP_BYTES", "Line", "LineFile", "parse_line", "read_line", "whole_lines"]

Line = Mapping[str, Any]
STEP_BYTES = 1 << 16


class LineFile:
    """An open file of lines; what was written in part when a process died is cut off."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it for its owner alone; OSError."""
        self.path = path
        self._file = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        size = os.fstat(self._file).st_size
        self.end = size - len(next(self._pieces(size), b""))
        """The bytes of the whole lines that were there; those that are added come after them."""
        if self.end < size:
            os.ftruncate(self._file, self.end)

    def first(self) -> bytes:
        """Return the first line as it stands, without its end; empty: there was none. OSError."""
        if not self.end:
            return b""
        line = b""
        while not line.endswith(b"\n"):
            line += os.pread(self._file, min(STEP_BYTES, self.end - len(line)), len(line))
            line = line[: line.find(b"\n") + 1] or line
        return line[:-1]

    def backwards(self) -> Iterator[tuple[Line, bytes]]:
        """
        Yield the lines that were there, read and as they stand, the last first; not the first one.

        Raises StoreRefused where one is damaged, OSError.
        """
        place = self.end
        for raw in self._pieces(self.end - 1) if self.end else ():
            place -= len(raw) + 1
            if not place:
                return
            yield self._read(raw, place), raw

    def _read(self, raw: bytes, place: int) -> Line:
        line = parse_line(raw)
        if line is None:
            raise damaged(self.path, 1 + sum(piece.count(b"\n") for piece in self._forwards(place)))
        return line

    def _forwards(self, end: int) -> Iterator[bytes]:
        """Yield what is before some place."""
        for place in range(0, end, STEP_BYTES):
            yield os.pread(self._file, min(STEP_BYTES, end - place), place)

    def _pieces(self, end: int) -> Iterator[bytes]:
        """Yield what stands between the ends of lines before some place, the last first; the first line as well."""
        rest = b""
        while end:
            begin = max(0, end - STEP_BYTES)
            parts = (os.pread(self._file, end - begin, begin) + rest).split(b"\n")
            yield from reversed(parts[1:])
            rest, end = parts[0], begin
        yield rest

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
    """Return a line; StoreRefused where it is not what was written."""
    line = parse_line(raw)
    if line is None:
        raise damaged(path, number)
    return line


def parse_line(raw: bytes) -> Line | None:
    """Return a line; None where its checksum, CRC-32 of what stands before it, is another."""
    body, _, crc = raw.rpartition(b',"crc":')
    try:
        return cast("Line", json.loads(body + b"}")) if zlib.crc32(body) == int(crc.removesuffix(b"}")) else None
    except ValueError:
        return None


def damaged(path: Path, number: int) -> StoreRefused:
    """Return why a file of lines is not used."""
    return StoreRefused(
        f"{path} is damaged in line {number}; put the right file back, or move it away to begin a new one"
    )
