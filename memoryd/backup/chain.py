"""
A chain: a folder from which a store is restored as it was after any of its transactions.

- `image-NNNNNN`: blocks of the database's file as it was after a checkpoint; of the first all, of later ones those that
  have changed;
- `log-NNNNNN`: the log that was written after that image, as far as it was shipped;
- `manifest.jsonl`: a header, then a line for each image and each piece of a log, written when that is on disk. What no
  line names does not count. Each line has a checksum, and digests of what it names.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from memoryd.errors import EXIT_DAMAGED, Unavailable
from memoryd.store.base import LogTail
from memoryd.store.durable import put_in_place, sync_folder, write_all
from memoryd.store.lines import Line, LineFile, read_line, whole_lines
from memoryd.store.refusal import StoreRefused

__all__ = [
    "BLOCK_BYTES",
    "MANIFEST",
    "BackupDamaged",
    "Chain",
    "ChainWriter",
    "Image",
    "Point",
    "is_begun",
]

BLOCK_BYTES = 256 * 1024
SYNC_BLOCKS = 16  # 4 MiB
FORMAT = 1
MANIFEST = "manifest.jsonl"
MOST_NUMBER = 1 << 56  # microseconds until the year 4253


class BackupDamaged(StoreRefused):
    """A file of a chain is not what was written; the message names it."""

    exit_code = EXIT_DAMAGED


class Point(NamedTuple):
    """A state that a chain leads to."""

    commit_seq: int
    time_us: int
    generation: int
    log_end: int
    """The bytes of the generation's log that lead to it."""

    @property
    def time(self) -> datetime:
        """When its last transaction was written (UTC)."""
        return datetime.fromtimestamp(self.time_us / 1e6, UTC)


@dataclass(slots=True)
class Image:
    """Some blocks of the file, in the order in which they are stored, by their place in it."""

    generation: int
    size: int
    blocks: dict[int, str]
    """The digest of each."""

    @property
    def name(self) -> str:
        """Its file."""
        return f"image-{self.generation:06d}"


@dataclass(slots=True)
class _Piece:
    """A piece of a log."""

    start: int
    end: int
    digest: str


@dataclass(slots=True)
class Chain:
    """What the manifest of a chain says."""

    folder: Path
    header: Line
    images: list[Image] = field(default_factory=list)
    logs: dict[int, list[_Piece]] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    """Oldest first."""
    proofs: list[tuple[int, int]] = field(default_factory=list)
    """The transactions up to which it was restored as a trial, and when, in microseconds since 1970 (UTC)."""
    line_count: int = 0
    """After the header."""

    @classmethod
    def read(cls, folder: Path) -> Chain:
        """Read a manifest; what was written in part at its end is left out. Raises BackupDamaged."""
        path = folder / MANIFEST
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BackupDamaged(f"{path} cannot be read: {error.strerror}") from None
        try:
            lines = [read_line(line, path, number) for number, line in enumerate(whole_lines(data), 1)]
        except StoreRefused as error:
            raise BackupDamaged(str(error).partition(";")[0]) from None
        if not lines or lines[0].get("format") != FORMAT:
            raise BackupDamaged(f"{path} is no manifest of a backup that this memoryd knows")
        chain = cls(folder, lines[0])
        for number, line in enumerate(lines[1:], 1):
            if line.get("number", number) != number:
                raise BackupDamaged(f"{path} is damaged: its line {number + 1} is not the one that was written there")
            try:
                chain.add(line)
            except (KeyError, TypeError, ValueError):
                raise BackupDamaged(f"{path} has a line {number + 1} that this memoryd does not know") from None
        return chain

    def add(self, line: Line) -> None:
        """Take a line of the manifest; KeyError, TypeError or ValueError where it is none."""
        self.line_count += 1
        if "image" in line:
            generation, size, time_us = map(_number, (line["image"], line["size"], line["time_us"]))
            blocks = {_number(place): digest for place, digest in line["blocks"]}
            if any(place * BLOCK_BYTES >= size for place in blocks):
                raise ValueError
            self.images.append(Image(generation, size, blocks))
            if line["transaction"] is not None:
                self.points.append(Point(_number(line["transaction"]), time_us, generation, 0))
        elif "log" in line:
            generation, time_us = _number(line["log"]), _number(line["time_us"])
            begin, end = _number(line["start"]), _number(line["end"])
            self.logs.setdefault(generation, []).append(_Piece(begin, end, line["digest"]))
            for seq, committed_us, at in line["commits"]:
                self.points.append(Point(_number(seq), _number(committed_us), generation, _number(at)))
            if not self.points or (self.points[-1].log_end, self.points[-1].generation) != (end, generation):
                self.points.append(Point(_number(line["transaction"]), time_us, generation, end))
        elif "proved" in line:
            self.proofs.append((_number(line["proved"]), _number(line["time_us"])))

    @property
    def hashes(self) -> dict[int, str]:
        """The digest of each block of the file, as the images make it."""
        made: dict[int, str] = {}
        for image in self.images:
            made |= image.blocks
            made = {place: digest for place, digest in made.items() if place * BLOCK_BYTES < image.size}
        return made

    @property
    def generation(self) -> int:
        """The number of the last image; 0: there is none."""
        return self.images[-1].generation if self.images else 0

    @property
    def stored_bytes(self) -> int:
        """Bytes of all its files."""
        return sum(path.stat().st_size for path in self.folder.iterdir() if path.is_file())

    def point(self, *, transaction: int | None = None, time: datetime | None = None) -> Point | None:
        """Return the last state up to a transaction, or a time; the last of all. None: all are later."""
        until_us = None if time is None else int(time.timestamp() * 1e6)
        reached = (
            point
            for point in reversed(self.points)
            if (transaction is None or point.commit_seq <= transaction)
            and (until_us is None or point.time_us <= until_us)
        )
        return next(reached, None)

    def assemble(self, point: Point, database: Path, log: Path) -> None:
        """
        Write the file and the log that lead to a state.

        Raises BackupDamaged, which names the file, where one is missing or is not what was written; OSError.
        """
        with database.open("wb") as target:
            size = 0
            for image in (image for image in self.images if image.generation <= point.generation):
                size = image.size
                for n, (place, block) in enumerate(self._blocks(image), 1):
                    target.seek(place * BLOCK_BYTES)
                    target.write(block)
                    _sync_now_and_then(target, n)
            target.truncate(size)
            target.flush()
            os.fsync(target.fileno())
        left = point.log_end
        with log.open("wb") as target:
            for data in self._log(point.generation) if left else ():
                target.write(data[:left])
                left -= min(left, len(data))
                if not left:
                    break
            target.flush()
            os.fsync(target.fileno())
        if left:
            raise BackupDamaged(f"{self.folder / _log_name(point.generation)} ends {left} bytes too early")
        if not point.log_end:
            log.unlink()

    def check(self) -> Iterator[int]:
        """Read all of it, and yield the bytes of each part that is what was written. Raises BackupDamaged."""
        for image in self.images:
            for _, block in self._blocks(image):
                yield len(block)
        for generation in self.logs:
            for data in self._log(generation):
                yield len(data)

    def _blocks(self, image: Image) -> Iterator[tuple[int, bytes]]:
        path = self.folder / image.name
        try:
            with path.open("rb") as file:
                for place, digest in image.blocks.items():
                    block = file.read(min(BLOCK_BYTES, image.size - place * BLOCK_BYTES))
                    if digest_of(block) != digest:
                        raise BackupDamaged(f"{path} is damaged: block {place} of the database is not what was written")
                    yield place, block
        except OSError as error:
            raise BackupDamaged(f"{path} cannot be read: {error.strerror}") from None

    def _log(self, generation: int) -> Iterator[bytes]:
        path = self.folder / _log_name(generation)
        try:
            with path.open("rb") as file:
                for piece in self.logs.get(generation, ()):
                    data = file.read(piece.end - piece.start)
                    if digest_of(data) != piece.digest:
                        raise BackupDamaged(
                            f"{path} is damaged: bytes {piece.start} to {piece.end} are not what was written"
                        )
                    yield data
        except OSError as error:
            raise BackupDamaged(f"{path} cannot be read: {error.strerror}") from None


class ChainWriter:
    """A chain that is being written."""

    def __init__(self, folder: Path, header: Line) -> None:
        """Begin a chain, or go on with one of the same header; OSError, BackupDamaged."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._manifest = LineFile(folder / MANIFEST)
        self._manifest.lines = []
        if (folder / MANIFEST).stat().st_size:
            self.chain = Chain.read(folder)
        else:
            self._write({"format": FORMAT, **header})
            sync_folder(folder)
            sync_folder(folder.parent)
            self.chain = Chain(folder, {"format": FORMAT, **header})

    def copy(self, source: int, size: int) -> Image:
        """Store what has changed of a file of so many bytes, open as `source`; `add_image` lets it count."""
        known, image = self.chain.hashes, Image(self.chain.generation + 1, size, {})
        part = self.chain.folder / f"{image.name}.part"
        try:
            with part.open("wb") as target:
                part.chmod(0o600)
                for place in range((size + BLOCK_BYTES - 1) // BLOCK_BYTES):
                    block = os.pread(source, BLOCK_BYTES, place * BLOCK_BYTES)
                    digest = digest_of(block)
                    if known.get(place) != digest:
                        target.write(block)
                        image.blocks[place] = digest
                        _sync_now_and_then(target, len(image.blocks))
        except OSError:
            part.unlink(missing_ok=True)
            raise
        return image

    def add_image(self, image: Image, commit_seq: int | None, time_us: int) -> None:
        """Let an image count; of this state, if no log follows."""
        path = self.chain.folder / image.name
        put_in_place(path.with_name(f"{image.name}.part"), path)
        self._write(
            {
                "image": image.generation,
                "size": image.size,
                "blocks": list(image.blocks.items()),
                "transaction": commit_seq,
                "time_us": time_us,
            }
        )

    def add_log(self, tail: LogTail, commit_seq: int, time_us: int) -> None:
        """Store a piece of the log of the last image, which ends in a transaction."""
        generation = self.chain.generation
        stored = self.chain.logs.get(generation)
        if tail.start != (stored[-1].end if stored else 0):
            raise Unavailable("a piece of the log is missing; the file is copied again")
        path = self.chain.folder / _log_name(generation)
        is_new = not path.exists()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(handle, tail.start)  # what no line names
            os.lseek(handle, tail.start, os.SEEK_SET)
            write_all(handle, tail.data)
            os.fdatasync(handle)
        finally:
            os.close(handle)
        if is_new:
            sync_folder(path.parent)
        self._write(
            {
                "log": generation,
                "start": tail.start,
                "end": tail.end,
                "digest": digest_of(tail.data),
                "commits": [list(commit) for commit in tail.commits],
                "transaction": commit_seq,
                "time_us": time_us,
            }
        )

    def add_proof(self, commit_seq: int, time_us: int) -> None:
        """Note that it was restored as a trial, up to a transaction."""
        self._write({"proved": commit_seq, "time_us": time_us})

    def close(self) -> None:
        """Let go of the manifest."""
        self._manifest.close()

    def _write(self, line: dict[str, Any]) -> None:
        """Bring a line to the disk, with its number, so that one that is missing is noticed."""
        if "format" in line:
            self._manifest.write(line)
            self._manifest.sync()
            return
        _number(line["time_us"])  # ValueError, before it is there: a clock before 1970
        self._manifest.write({"number": self.chain.line_count + 1, **line})
        self._manifest.sync()
        self.chain.add(line)


def _number(value: Any) -> int:
    """Return a whole number that may be a size, a place or a time; ValueError where it is none."""
    if type(value) is not int or not 0 <= value < MOST_NUMBER:
        raise ValueError
    return value


def is_begun(manifest: Path) -> bool:
    """Whether a manifest has its header: a process that died while it wrote that had begun no chain."""
    with manifest.open("rb") as file:
        return file.readline().endswith(b"\n")


def _sync_now_and_then(file: IO[bytes], blocks: int) -> None:
    """Bring what was written to the disk bit by bit: a transaction that is written meanwhile waits for a bit alone."""
    if blocks % SYNC_BLOCKS == 0:
        file.flush()
        os.fdatasync(file.fileno())


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _log_name(generation: int) -> str:
    return f"log-{generation:06d}"
