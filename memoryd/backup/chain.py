"""
A chain: a folder from which a store is restored as it was after any of its transactions.

- `image-NNNNNN`: blocks of the database's file as it was after a checkpoint; of the first all, of later ones those that
  have changed;
- `log-NNNNNN`: the log that was written after that image, as far as it was shipped;
- `manifest.jsonl`: a header, then a line for each image and each piece of a log, written when that is on disk. What no
  line names does not count. Each line has a checksum, and digests of what it names.

Where the header has a key, each block and each piece of a log is encrypted (see encryption.py), and the digests are of
what is stored.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from memoryd.backup.digests import digest_of, with_digests
from memoryd.backup.encryption import LEDGER_KEY, OVERHEAD, RECIPIENTS, WRAPPED, Cipher, Identity, ledger_key
from memoryd.backup.ledgers import LedgerMark
from memoryd.backup.points import Point, Points
from memoryd.backup.refusal import BackupDamaged, NotForUs
from memoryd.paths import read_regular
from memoryd.store.lines import Line, read_line
from memoryd.store.refusal import StoreRefused

__all__ = [
    "BLOCK_BYTES",
    "FORMAT",
    "MANIFEST",
    "MOST_LINE_BYTES",
    "BackupDamaged",
    "Chain",
    "Image",
    "Point",
    "block_name",
    "is_begun",
    "log_name",
    "number_of",
    "piece_name",
    "sync_now_and_then",
]

BLOCK_BYTES = 256 * 1024
SYNC_BLOCKS = 16  # 4 MiB
FORMAT = 1
MANIFEST = "manifest.jsonl"
MOST_LINE_BYTES = 256 << 20  # of a manifest: a first image of a terabyte
NO_MANIFEST = "{} is no manifest of a backup that this memoryd knows"
MOST_NUMBER = 1 << 56  # microseconds until the year 4253


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
    points: Points = field(default_factory=Points)
    proofs: list[tuple[int, int]] = field(default_factory=list)
    """The transactions up to which it was restored as a trial, and when, in microseconds since 1970 (UTC)."""
    line_count: int = 0
    """After the header."""
    ledger: LedgerMark | None = None
    """Where the ledger of purges ended when the last state was written; None: that is not known."""
    unledgered: int | None = None
    """The last transaction that was stored while the ledger was lost: what was purged then is not known."""
    cipher: Cipher | None = None
    """Reads and writes its parts; None: it is not encrypted, or its key is not known."""

    @classmethod
    def read(cls, folder: Path, *, in_brief: bool = False) -> Chain:
        """
        Read a manifest; what was written in part at its end is left out. Raises BackupDamaged.

        `in_brief`: of its states the first and the last are kept.
        """
        path = folder / MANIFEST
        chain = None
        try:
            with read_regular(path) as file:
                for number, raw in enumerate(iter(partial(file.readline, MOST_LINE_BYTES), b"")):
                    if not raw.endswith(b"\n"):
                        break
                    line = _line(raw[:-1], path, number + 1)
                    if chain is None:
                        chain = cls(folder, _header(line, path), points=Points(in_brief=in_brief))
                    else:
                        chain._take(line, path, number)
        except OSError as error:
            raise BackupDamaged(f"{path} cannot be read: {error.strerror}") from None
        if chain is None:
            raise BackupDamaged(NO_MANIFEST.format(path))
        return chain

    def _take(self, line: Line, path: Path, number: int) -> None:
        if line.get("number", number) != number:
            raise BackupDamaged(f"{path} is damaged: its line {number + 1} is not the one that was written there")
        try:
            self.add(line)
        except (KeyError, TypeError, ValueError):
            raise BackupDamaged(f"{path} has a line {number + 1} that this memoryd does not know") from None

    def add(self, line: Line) -> None:
        """Take a line of the manifest; KeyError, TypeError or ValueError where it is none."""
        self.line_count += 1
        if line.get("ledger") is not None:
            size, digest = line["ledger"]
            self.ledger = LedgerMark(number_of(size), str(digest))
        elif "ledger" in line and line.get("transaction") is not None:
            self.unledgered = number_of(line["transaction"])
        if "image" in line:
            generation, size, time_us = map(number_of, (line["image"], line["size"], line["time_us"]))
            blocks = {number_of(place): digest for place, digest in line["blocks"]}
            if any(place * BLOCK_BYTES >= size for place in blocks):
                raise ValueError
            self.images.append(Image(generation, size, blocks))
            if line["transaction"] is not None:
                self.points.append(Point(number_of(line["transaction"]), time_us, generation, 0))
        elif "log" in line:
            generation, time_us = number_of(line["log"]), number_of(line["time_us"])
            begin, end = number_of(line["start"]), number_of(line["end"])
            self.logs.setdefault(generation, []).append(_Piece(begin, end, line["digest"]))
            for seq, committed_us, at in line["commits"]:
                self.points.append(Point(number_of(seq), number_of(committed_us), generation, number_of(at)))
            if not self.points or (self.points[-1].log_end, self.points[-1].generation) != (end, generation):
                self.points.append(Point(number_of(line["transaction"]), time_us, generation, end))
        elif "proved" in line:
            self.proofs.append((number_of(line["proved"]), number_of(line["time_us"])))

    @property
    def recipients(self) -> Sequence[str]:
        """Who may open it; empty: it is not encrypted."""
        return self.header.get(RECIPIENTS, ()) if self.is_encrypted else ()

    @property
    def is_encrypted(self) -> bool:
        """Whether a key is needed to read its parts."""
        return WRAPPED in self.header

    def unlock(self, identity: Identity | None) -> None:
        """Get ready to read its parts; NotForUs where it is encrypted, and not for this identity."""
        if not self.is_encrypted or self.cipher is not None:
            return
        if identity is None:
            raise NotForUs(f"{self.folder} is encrypted; name the file of an identity: --identity")
        self.cipher = identity.cipher(self.header, self.folder / MANIFEST)

    @property
    def ledger_key(self) -> bytes | None:
        """The file of the ledger's key, of a chain that is encrypted and unlocked; None: it lies by the ledger."""
        if not self.is_encrypted:
            return None
        self.unlock(None)
        assert self.cipher is not None  # noqa: S101  it is unlocked
        return ledger_key(self.header, self.cipher, self.folder / MANIFEST)

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

    def assemble(self, point: Point, database: Path, log: Path, *, yields_disk: bool = False) -> None:
        """
        Write the file and the log that lead to a state; a chain that is encrypted has to be unlocked before.

        They may still be on their way to the disk.
        `yields_disk`: bit by bit, for the sake of a daemon that writes to the same disk; it takes three times as long.
        Raises BackupDamaged, which names the file, where one is missing or is not what was written; OSError, NotForUs.
        """
        self.unlock(None)
        with database.open("wb") as target:
            size = 0
            for image in (image for image in self.images if image.generation <= point.generation):
                size = image.size
                for n, (place, block) in enumerate(self._blocks(image), 1):
                    target.seek(place * BLOCK_BYTES)
                    target.write(self._opened(block, image.name, block_name(place)))
                    if yields_disk:
                        sync_now_and_then(target, n)
            target.truncate(size)
        left = point.log_end
        with log.open("wb") as target:
            for start, stored in self._log(point.generation) if left else ():
                name = log_name(point.generation)
                data = self._opened(stored, name, piece_name(point.generation, start))
                target.write(data[:left])
                left -= min(left, len(data))
                if not left:
                    break
        if left:
            raise BackupDamaged(f"{self.folder / log_name(point.generation)} ends {left} bytes too early")
        if not point.log_end:
            log.unlink()

    def check(self) -> Iterator[int]:
        """Read all of it, and yield the bytes of each part that is what was written. Raises BackupDamaged."""
        for image in self.images:
            for _, block in self._blocks(image):
                yield len(block)
        for generation in self.logs:
            for _, data in self._log(generation):
                yield len(data)

    def _opened(self, data: bytes, file: str, place: str) -> bytes:
        try:
            return data if self.cipher is None else self.cipher.opened(data, place)
        except ValueError:
            raise BackupDamaged(f"{self.folder / file} is damaged: {place} is not what was encrypted") from None

    @property
    def overhead(self) -> int:
        """Bytes by which each part is longer than what it holds."""
        return OVERHEAD if self.is_encrypted else 0

    def _blocks(self, image: Image) -> Iterator[tuple[int, bytes]]:
        """Yield what is stored of an image, by its place; it is what was written."""
        path = self.folder / image.name
        try:
            with read_regular(path) as file:
                sizes = (min(BLOCK_BYTES, image.size - place * BLOCK_BYTES) + self.overhead for place in image.blocks)
                stored = with_digests(file.read(size) for size in sizes)
                for (place, digest), (block, found) in zip(image.blocks.items(), stored, strict=True):
                    if found != digest:
                        raise BackupDamaged(f"{path} is damaged: block {place} of the database is not what was written")
                    yield place, block
        except OSError as error:
            raise BackupDamaged(f"{path} cannot be read: {error.strerror}") from None

    def _log(self, generation: int) -> Iterator[tuple[int, bytes]]:
        """Yield what is stored of a log, each piece with the place where it begins; it is what was written."""
        path = self.folder / log_name(generation)
        try:
            with read_regular(path) as file:
                for piece in self.logs.get(generation, ()):
                    data = file.read(piece.end - piece.start + self.overhead)
                    if digest_of(data) != piece.digest:
                        raise BackupDamaged(
                            f"{path} is damaged: bytes {piece.start} to {piece.end} are not what was written"
                        )
                    yield piece.start, data
        except OSError as error:
            raise BackupDamaged(f"{path} cannot be read: {error.strerror}") from None


def _line(raw: bytes, path: Path, number: int) -> Line:
    try:
        return read_line(raw, path, number)
    except StoreRefused as error:
        raise BackupDamaged(str(error).partition(";")[0]) from None


def _header(line: Line, path: Path) -> Line:
    texts = [line.get(name, "") for name in ("store_id", "history_id", "time", "reason", WRAPPED, LEDGER_KEY)]
    texts += line.get(RECIPIENTS, []) if isinstance(line.get(RECIPIENTS, []), list) else [None]
    if line.get("format") != FORMAT or not all(isinstance(text, str) for text in texts):
        raise BackupDamaged(NO_MANIFEST.format(path))
    return line


def number_of(value: Any) -> int:
    """Return a whole number that may be a size, a place or a time; ValueError where it is none."""
    if type(value) is not int or not 0 <= value < MOST_NUMBER:
        raise ValueError
    return value


def is_begun(manifest: Path) -> bool:
    """
    Whether a manifest has its header: a process that died while it wrote that had begun no chain.

    Raises BackupDamaged where it cannot be read.
    """
    try:
        with read_regular(manifest) as file:
            return file.readline(MOST_LINE_BYTES).endswith(b"\n")
    except OSError as error:
        raise BackupDamaged(f"{manifest} cannot be read: {error.strerror}") from None


def sync_now_and_then(file: IO[bytes], blocks: int) -> None:
    """Bring what was written to the disk bit by bit: a transaction that is written meanwhile waits for a bit alone."""
    if blocks % SYNC_BLOCKS == 0:
        file.flush()
        os.fdatasync(file.fileno())


def log_name(generation: int) -> str:
    """Return the name of the file with the log that follows an image."""
    return f"log-{generation:06d}"


def block_name(place: int) -> str:
    """Return what a block of the database is called: it is encrypted as of there."""
    return f"block {place}"


def piece_name(generation: int, start: int) -> str:
    """Return what a piece of a log is called: it is encrypted as of there."""
    return f"the piece of {log_name(generation)} from byte {start} on"
