"""Files of lines that are added one by one: JSON with a checksum each, on disk before the next step."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from memoryd.paths import open_regular, read_regular
from memoryd.store.durable import write_all
from memoryd.store.refusal import StoreRefused

__all__ = ["STEP_BYTES", "Line", "LineFile", "last_line", "parse_line", "read_line", "sound_end", "whole_lines"]

Line = Mapping[str, Any]
STEP_BYTES = 1 << 16


class LineFile:
    """An open file of lines; what was written in part when a process died is cut off."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it for its owner alone; OSError."""
        self.path = path
        self._file = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self.end = _whole_end(self._file)
        """The bytes of the whole lines that were there; those that are added come after them."""
        if self.end < os.fstat(self._file).st_size:
            os.ftruncate(self._file, self.end)

    def cut(self) -> None:
        """Cut off what is damaged at the end, as a loss of power leaves it. OSError."""
        end = _sound_end(self._file, self.end)
        if end < self.end:
            os.ftruncate(self._file, end)
            self.sync()
            self.end = end

    def first(self) -> bytes:
        """Return the first line as it stands, without its end; empty: there was none. OSError."""
        parts: list[bytes] = []
        for part in _forwards(self._file, self.end):
            parts.append(part.partition(b"\n")[0])
            if b"\n" in part:
                break
        return b"".join(parts)

    def backwards(self) -> Iterator[tuple[Line, bytes]]:
        """
        Yield the lines that were there, read and as they stand, the last first; not the first one.

        Raises StoreRefused where one is damaged, OSError.
        """
        for raw, place in _from_the_end(self._file, self.end):
            if not place:
                return
            line = parse_line(raw)
            if line is None:
                number = 1 + sum(part.count(b"\n") for part in _forwards(self._file, place))
                raise damaged(self.path, number)
            yield line, raw

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


def sound_end(path: Path) -> int:
    """Return where the last line of a file ends that is whole, and what was written; OSError."""
    with read_regular(path) as file:
        return _sound_end(file.fileno(), _whole_end(file.fileno()))


def last_line(path: Path) -> tuple[int, bytes]:
    """Return where the whole lines of a file end, and the last of them as it stands; OSError."""
    with read_regular(path) as file:
        end = _whole_end(file.fileno())
        return end, next((raw for raw, _ in _from_the_end(file.fileno(), end)), b"")


def _whole_end(handle: int) -> int:
    """Return where the whole lines of a file end."""
    size = os.fstat(handle).st_size
    return size - len(next(_pieces(handle, size), b""))


def _sound_end(handle: int, end: int) -> int:
    """Return where the last line that is what was written ends, of whole lines up to some place."""
    sound = (place + len(raw) + 1 for raw, place in _from_the_end(handle, end) if parse_line(raw) is not None)
    return next(sound, 0)


def _from_the_end(handle: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines as they stand, without their ends, and where they begin, the last first."""
    place = end
    for raw in _pieces(handle, end - 1) if end else ():
        place -= len(raw) + 1
        yield raw, place


def _pieces(handle: int, end: int) -> Iterator[bytes]:
    """Yield what stands between the ends of lines before some place, the last first; the first line as well."""
    rest: list[bytes] = []  # of the line that is not read to its begin, the last first
    while end:
        begin = max(0, end - STEP_BYTES)
        *before, last = os.pread(handle, end - begin, begin).split(b"\n")
        rest.append(last)
        if before:
            yield b"".join(reversed(rest))
            yield from reversed(before[1:])
            rest = before[:1]
        end = begin
    yield b"".join(reversed(rest))


def _forwards(handle: int, end: int) -> Iterator[bytes]:
    """Yield what is before some place."""
    for place in range(0, end, STEP_BYTES):
        yield os.pread(handle, min(STEP_BYTES, end - place), place)


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
    except (ValueError, RecursionError):
        return None


def damaged(path: Path, number: int) -> StoreRefused:
    """Return why a file of lines is not used."""
    return StoreRefused(
        f"{path} is damaged in line {number}; put the right file back, or move it away to begin a new one"
    )
