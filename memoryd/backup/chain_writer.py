"""Writing a chain: a part is on disk before the line of the manifest that lets it count."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from memoryd.backup.chain import (
    BLOCK_BYTES,
    FORMAT,
    MANIFEST,
    Chain,
    Image,
    block_name,
    log_name,
    number_of,
    piece_name,
    sync_now_and_then,
)
from memoryd.backup.digests import digest_of
from memoryd.backup.encryption import Cipher
from memoryd.backup.ledgers import LedgerMark
from memoryd.backup.points import Points
from memoryd.errors import Unavailable
from memoryd.paths import open_regular
from memoryd.store.base import LogTail
from memoryd.store.durable import open_new, put_in_place, sync_folder, write_all
from memoryd.store.lines import Line, LineFile

__all__ = ["ChainWriter"]

REST_BLOCKS = 4  # 1 MiB: after it those who are served have the core for as long as it took
LONGEST_REST_S = 0.1


class ChainWriter:
    """A chain that is being written."""

    def __init__(self, folder: Path, header: Line, cipher: Cipher | None = None) -> None:
        """Begin a chain, or go on with one of the same header; OSError, BackupDamaged."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._manifest = LineFile(folder / MANIFEST)
        if (folder / MANIFEST).stat().st_size:
            self.chain = Chain.read(folder, in_brief=True)
        else:
            self._write({"format": FORMAT, **header})
            sync_folder(folder)
            sync_folder(folder.parent)
            self.chain = Chain(folder, {"format": FORMAT, **header}, points=Points(in_brief=True))
        self.ledger: LedgerMark | None = None
        """Where the ledger of purges ends now."""
        self.ledger_is_lost = False
        """Whether it does not go on with what is mirrored: what is purged now is not known to who restores."""
        self.chain.cipher = cipher
        self.chain.unlock(None)

    def copy(self, source: int, size: int) -> Image:
        """Store what has changed of a file of so many bytes, open as `source`; `add_image` lets it count."""
        known, image = self.chain.hashes, Image(self.chain.generation + 1, size, {})
        part = self.chain.folder / f"{image.name}.part"
        try:
            with os.fdopen(open_new(part), "wb") as target:
                began = time.perf_counter()
                for place in range((size + BLOCK_BYTES - 1) // BLOCK_BYTES):
                    block = self._sealed(os.pread(source, BLOCK_BYTES, place * BLOCK_BYTES), block_name(place))
                    digest = digest_of(block)
                    if known.get(place) != digest:
                        target.write(block)
                        image.blocks[place] = digest
                        sync_now_and_then(target, len(image.blocks))
                    if place % REST_BLOCKS == REST_BLOCKS - 1:
                        time.sleep(min(LONGEST_REST_S, time.perf_counter() - began))
                        began = time.perf_counter()
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
        stored = self.chain.logs.get(generation, [])
        if tail.start != (stored[-1].end if stored else 0):
            raise Unavailable("a piece of the log is missing; the file is copied again")
        data = self._sealed(tail.data, piece_name(generation, tail.start))
        path = self.chain.folder / log_name(generation)
        is_new = not path.exists()
        handle = open_regular(path, os.O_WRONLY | os.O_CREAT)
        try:
            end = tail.start + len(stored) * self.chain.overhead
            os.ftruncate(handle, end)  # what no line names
            os.lseek(handle, end, os.SEEK_SET)
            write_all(handle, data)
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
                "digest": digest_of(data),
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

    def _sealed(self, data: bytes, place: str) -> bytes:
        return data if self.chain.cipher is None else self.chain.cipher.sealed(data, place)

    def _write(self, line: dict[str, Any]) -> None:
        """Bring a line to the disk, with its number, so that one that is missing is noticed."""
        if "format" in line:
            self._manifest.write(line)
            self._manifest.sync()
            return
        number_of(line["time_us"])  # ValueError, before it is there: a clock before 1970
        mark = None if self.ledger is None or self.ledger_is_lost else list(self.ledger)
        if (mark is not None or self.ledger_is_lost) and "proved" not in line:
            line = {**line, "ledger": mark}
        self._manifest.write({"number": self.chain.line_count + 1, **line})
        self._manifest.sync()
        self.chain.add(line)
