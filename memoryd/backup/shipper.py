"""Shipping: what is written goes to a folder of backups some seconds later, while calls are served."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from memoryd.backup.chain import BackupDamaged, ChainWriter, Image, Point
from memoryd.backup.folder import chain_name, chains_of, mirror_ledger, prove
from memoryd.errors import Unavailable
from memoryd.store.base import LogTail, Shipping

__all__ = ["Shipper"]


class Shipper:
    """Writes the chains of one store."""

    def __init__(self, shipping: Shipping, store: Path, ledger: Path, header: Mapping[str, object]) -> None:
        """`store` is the folder of its chains; `header` says what has written them. Nothing is done yet."""
        self._shipping, self._store, self._ledger, self._header = shipping, store, ledger, dict(header)
        self._writer: ChainWriter | None = None
        self._generation = 0
        """That of the store whose file was stored last; 0: none was."""
        self._begins_anew = False
        self._file = -1
        self._lost = 0
        self._turn = asyncio.Lock()
        self.shipped: Point | None = None
        """The last state that is stored."""
        self.fault = ""
        """Why nothing was stored the last time; empty: it was."""

    async def step(self) -> None:
        """Ship what was written since the last step; StoreRefused, OSError, and then the next step does it."""
        async with self._turn:
            try:
                await self._step()
            except Exception as error:
                self._generation = 0  # what was taken is not known to be stored: the next one begins with the file
                self.fault = (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
                raise
            self.fault = ""

    async def begin_chain(self) -> Point:
        """Begin a new chain with a whole copy of the file, and return the state that it leads to."""
        async with self._turn:
            self._begins_anew, self._generation = True, 0
        await self.step()
        assert self.shipped is not None  # noqa: S101  a step that does not fail stores a state
        return self.shipped

    async def prove(self, memory_limit_bytes: int) -> Point:
        """Restore the last state of the chain as a trial, and note that it was. Raises StoreRefused, OSError."""
        writer, point = self._writer, self.shipped
        if writer is None or point is None:
            raise BackupDamaged("nothing was stored yet")
        await asyncio.to_thread(prove, writer.chain, point, memory_limit_bytes=memory_limit_bytes)
        async with self._turn:
            await asyncio.to_thread(writer.add_proof, point.commit_seq, _now_us())
        return point

    async def finish(self) -> None:
        """Ship what is left once the store is closed."""
        async with self._turn:
            tails = self._shipping.waiting()
            if self._writer is not None and self._generation and tails:
                mine = [tail for tail in tails if tail.generation == self._generation and tail.commits]
                for tail in mine:
                    await asyncio.to_thread(self._add_log, self._writer, tail, tail.commits[-1].commit_seq)
            if self._writer is not None:
                self._writer.close()
            if self._file >= 0:
                os.close(self._file)

    async def _step(self) -> None:
        tails, generation, commit_seq = await self._shipping.take(self._generation)
        await asyncio.to_thread(mirror_ledger, self._ledger, self._store)
        is_held = generation != self._generation
        current = [tail for tail in tails if tail.generation == generation]
        try:
            if self._generation and self._writer is not None:
                for tail in tails:
                    if tail.generation == self._generation != generation and tail.commits:
                        await asyncio.to_thread(self._add_log, self._writer, tail, tail.commits[-1].commit_seq)
            if is_held:
                writer, image = await asyncio.to_thread(self._copy, commit_seq)
                if not await self._shipping.release():
                    raise Unavailable("the log got too long while the file was copied; it is copied again")
                is_held = False
                state = None if current else commit_seq
                await asyncio.to_thread(writer.add_image, image, state, _now_us())
                self._writer, self._generation = writer, generation
                self._note(writer)
        finally:
            if is_held:
                await self._shipping.release()
        if self._writer is not None:
            for n, tail in enumerate(current, 1):
                seq = commit_seq if n == len(current) else tail.commits[-1].commit_seq
                await asyncio.to_thread(self._add_log, self._writer, tail, seq)

    def _add_log(self, writer: ChainWriter, tail: LogTail, commit_seq: int) -> None:
        at = [commit.time_us for commit in tail.commits if commit.commit_seq == commit_seq]
        writer.add_log(tail, commit_seq, at[0] if at else _now_us())
        self._note(writer)

    def _note(self, writer: ChainWriter) -> None:
        self.shipped = writer.chain.points[-1] if writer.chain.points else self.shipped

    def _copy(self, commit_seq: int) -> tuple[ChainWriter, Image]:
        """Store what has changed of the file, which is held; it does not count yet."""
        writer = self._writer
        if writer is None or self._begins_anew:
            writer = self._open(commit_seq)
        size = self._opened_file()
        return writer, writer.copy(self._file, size)

    def _open(self, commit_seq: int) -> ChainWriter:
        """Go on with the last chain if it is of this version and whole, else begin one."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if not self._begins_anew:
            try:
                last = chains_of(self._store)[-1:]
            except BackupDamaged:
                last = []
            for chain in last:
                if {**chain.header, **self._header} == chain.header and chain.images:
                    return ChainWriter(chain.folder, chain.header)
        self._begins_anew = False
        now = datetime.now(UTC)
        header = {**self._header, "transaction": commit_seq, "time": now.isoformat(timespec="seconds")}
        return ChainWriter(self._store / chain_name(commit_seq, now), header)

    def _opened_file(self) -> int:
        """
        Open the file if it is another one, and return its size.

        It stays open: to close it would let go of the lock that the engine holds on it in this process (fcntl(2)).
        """
        path = self._shipping.path
        stat = path.stat()
        known = os.fstat(self._file) if self._file >= 0 else None
        if known is None or (known.st_dev, known.st_ino) != (stat.st_dev, stat.st_ino):
            if self._file >= 0:
                os.close(self._file)
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return stat.st_size


def _now_us() -> int:
    return time.time_ns() // 1000
