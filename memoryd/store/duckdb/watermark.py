"""
The side file: how far the database had come, kept apart from it.

DuckDB opens without a word after its log was cut or damaged, with fewer rows. So the number of each transaction also
goes here, before the transaction is acknowledged. Two slots of 32 bytes are written in turn, each with a checksum, so
that a torn write spoils one of them only. The write reaches the kernel at once, which survives the death of the
process; a thread makes it reach the disk soon after. After a power failure the database may thus be ahead of the side
file, which is normal; it is never behind unless something was lost.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from pathlib import Path
from uuid import UUID

from memoryd.store.durable import sync_folder

__all__ = ["CommitWatermark", "read_watermark"]

_SLOT = struct.Struct("<16sQI")  # uuid, commit_seq, CRC-32 of both
SLOT_BYTES = 32
SLOTS = 2


def _slot(store_id: UUID, commit_seq: int) -> bytes:
    body = store_id.bytes + struct.pack("<Q", commit_seq)
    return _SLOT.pack(store_id.bytes, commit_seq, zlib.crc32(body)).ljust(SLOT_BYTES, b"\0")


def read_watermark(path: Path) -> tuple[UUID, int] | None:
    """Return uuid and highest commit_seq of the side file; None if it is missing or holds no valid slot. OSError."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    best: tuple[UUID, int] | None = None
    for n in range(SLOTS):
        raw = data[n * SLOT_BYTES : n * SLOT_BYTES + _SLOT.size]
        if len(raw) < _SLOT.size:
            continue
        store_id, commit_seq, checksum = _SLOT.unpack(raw)
        if zlib.crc32(raw[:24]) == checksum and (best is None or commit_seq > best[1]):
            best = UUID(bytes=store_id), commit_seq
    return best


class CommitWatermark:
    """Writes the side file."""

    def __init__(self, path: Path, store_id: UUID, commit_seq: int) -> None:
        """Create or overwrite the side file, on disk before this returns."""
        self._store_id = store_id
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.pwrite(self._file, _slot(store_id, commit_seq) * SLOTS, 0)
        os.fsync(self._file)
        sync_folder(path.parent)
        self._turn = 0
        self._dirty = threading.Event()
        self._closed = False
        self._fault: OSError | None = None
        self._thread = threading.Thread(target=self._sync, name="guard", daemon=True)
        self._thread.start()

    def advance(self, commit_seq: int) -> None:
        """Note that this transaction is committed."""
        if self._fault is not None:
            raise self._fault  # the disk does not take what it is given: better to stop than to promise
        os.pwrite(self._file, _slot(self._store_id, commit_seq), self._turn * SLOT_BYTES)
        self._turn = (self._turn + 1) % SLOTS
        self._dirty.set()

    def _sync(self) -> None:
        while not self._closed:
            self._dirty.wait()
            self._dirty.clear()
            try:
                os.fdatasync(self._file)
            except OSError as fault:
                self._fault = fault
                return

    def close(self) -> None:
        """Bring the last note to the disk and let go of the file."""
        self._closed = True
        self._dirty.set()
        self._thread.join()
        try:
            os.fdatasync(self._file)
        finally:
            os.close(self._file)
