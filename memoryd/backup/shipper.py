"""Shipping: what is written goes to a folder of backups some seconds later, while calls are served."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from memoryd.backup.chain import Chain, Image, Point
from memoryd.backup.chain_writer import ChainWriter
from memoryd.backup.encryption import Cipher, Encryption
from memoryd.backup.folder import are_encrypted, chain_name, chains_of, ends_encrypted, no_folder
from memoryd.backup.ledgers import LedgerMark, LedgerMirror
from memoryd.backup.scratch import remove_stale
from memoryd.errors import Unavailable
from memoryd.model.times import to_us
from memoryd.store.base import LogTail, Shipping
from memoryd.store.durable import sync_folder
from memoryd.store.refusal import StoreRefused

__all__ = ["Shipper"]

T = TypeVar("T")
LOCK = ".lock"
PATIENCE_S = 10.0  # with a disk, once a step is to end


class Shipper:
    """Writes the chains of one history of a store."""

    def __init__(
        self,
        shipping: Shipping,
        store: Path,
        ledger: Path,
        header: Mapping[str, object],
        clock: Callable[[], datetime],
        encryption: Encryption | None = None,
    ) -> None:
        """
        Do nothing yet.

        `store` is the folder of its chains; `header` says what has written them; without `encryption` they are in
        clear.
        """
        self._encryption = encryption
        self._shipping, self._store, self._header = shipping, store, dict(header)
        self._ledger = LedgerMirror(ledger, store)
        self._mark: LedgerMark | None = None
        self._clock = clock
        self._writer: ChainWriter | None = None
        self._generation = 0
        """That of the store whose file was stored last; 0: none was, or what followed it is not known to be stored."""
        self._begins_anew = self._is_looked_at = False
        self._reason = ""
        self._file = self._lock = -1
        self._turn = asyncio.Lock()
        self._stuck: asyncio.Future[Any] | None = None
        self.shipped: Point | None = None
        """The last state that is stored."""
        self.began: tuple[str, str] | None = None
        """The last chain that was begun, and why; None: none was."""
        self.put_back = ""
        """Which transactions the store has given up since it was shipped, in words; empty: none."""
        self.fault = ""
        """Why nothing was stored the last time; empty: it was."""
        self.ledger_fault = ""
        """Why the ledger of purges is not mirrored; empty: it is."""

    async def step(self, *, may_copy: bool = True) -> None:
        """
        Ship what was written since the last step; StoreRefused, OSError, and then the next step does it.

        Without may_copy the file is not copied: what cannot be shipped without that waits for the next start.
        """
        async with self._turn:
            try:
                self._refuse_two()
                await self._step(may_copy=may_copy)
            except BaseException as error:
                self._drop()
                self.fault = _told(error)
                raise
            self.fault = ""

    async def begin_chain(self) -> Point:
        """Begin a new chain with a whole copy of the file, and return the state that it leads to."""
        async with self._turn:
            self._begins_anew, self._generation = True, 0
        try:
            await self.step()
        finally:
            self._begins_anew = False
        if self.shipped is None:
            raise Unavailable("the file was changed while it was copied; try again")
        return self.shipped

    async def prove(self, memory_limit_bytes: int) -> Point:
        """Restore the last state of the chain as a trial, and note that it was. Raises StoreRefused, OSError."""
        writer, point = self._writer, self.shipped
        if writer is None or point is None:
            raise Unavailable("nothing was stored yet")
        where = self._store if self._encryption is None else self._encryption.kept.parent
        await _prove(writer.chain, point, memory_limit_bytes, where)
        async with self._turn:
            if self._writer is not writer:
                raise Unavailable("another chain was begun meanwhile; try again")
            await self._done(writer.add_proof, point.commit_seq, to_us(self._clock()))
        return point

    async def finish(self) -> None:
        """Ship what is left once the store is closed."""
        async with self._turn:
            self._refuse_two()
            try:
                if self._writer is not None and self._generation:
                    await self._done(self._mirror)
                    await self._add_logs(self._writer, self._shipping.waiting(), self._generation)
            finally:
                self._drop()
                self._let_go()
                if self._file >= 0:
                    os.close(self._file)
                self._file = -1

    async def _done(self, function: Callable[..., T], *args: Any, **more: Any) -> T:
        """
        Run something in a thread, to its end also when this is cancelled: two must not write at once.

        For a disk that does not answer a stop does not wait; nothing more is done then until the thread has ended.
        """
        work = asyncio.ensure_future(asyncio.to_thread(function, *args, **more))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            _, left = await asyncio.wait([work], timeout=PATIENCE_S)
            if left:
                self._stuck = work
            elif not work.cancelled():
                work.exception()  # it is told by who cancelled
            raise

    @property
    def is_stuck(self) -> bool:
        """Whether a thread still waits for the folder of a step that was cancelled."""
        return self._stuck is not None and not self._stuck.done()

    def _refuse_two(self) -> None:
        if self.is_stuck:
            raise Unavailable(f"{self._store} does not answer; nothing is written until it does")

    def _drop(self) -> None:
        """Go on with what the manifest says: what was taken and what was written may be two things."""
        self._generation = 0
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    async def _step(self, *, may_copy: bool) -> None:
        await self._done(self._take_folder)
        if not may_copy and (self._writer is None or not self._generation):
            return
        tails, generation, commit_seq = await self._shipping.take(self._generation)
        is_held = generation != self._generation
        try:
            await self._done(self._mirror)
            if self._writer is not None and self._generation:
                await self._add_logs(self._writer, tails, self._generation, commit_seq if not is_held else None)
            if is_held and may_copy:
                current = [tail for tail in tails if tail.generation == generation]
                writer, image = await self._done(self._copy, commit_seq)
                if not await self._shipping.release():
                    raise Unavailable("the log got too long while the file was copied; it is copied again")
                is_held = False
                self._tell_ledger(writer)
                await self._done(writer.add_image, image, None if current else commit_seq, to_us(self._clock()))
                if self._reason:
                    self.began, self._reason = (writer.chain.folder.name, self._reason), ""
                self._generation = generation
                self._note(writer)
                await self._add_logs(writer, current, generation, commit_seq)
        finally:
            if is_held:
                await self._shipping.release()

    async def _add_logs(
        self, writer: ChainWriter, tails: Sequence[LogTail], generation: int, commit_seq: int | None = None
    ) -> None:
        """Store the pieces of the log of a generation; the last of them ends in a transaction, if one is named."""
        mine = [tail for tail in tails if tail.generation == generation]
        for n, tail in enumerate(mine, 1):
            known = tail.commits[-1].commit_seq if tail.commits else self._last_seq(writer)
            seq = commit_seq if commit_seq is not None and n == len(mine) else known
            times = [commit.time_us for commit in tail.commits if commit.commit_seq == seq]
            self._tell_ledger(writer)
            await self._done(writer.add_log, tail, seq, times[-1] if times else to_us(self._clock()))
            self._note(writer)

    @staticmethod
    def _last_seq(writer: ChainWriter) -> int:
        return writer.chain.points[-1].commit_seq if writer.chain.points else 0

    def _note(self, writer: ChainWriter) -> None:
        self.shipped = writer.chain.points[-1] if writer.chain.points else self.shipped

    def _tell_ledger(self, writer: ChainWriter) -> None:
        """Tell how far the mirrored ledger goes, or that it is lost: it is noted with the next state."""
        writer.ledger, writer.ledger_is_lost = self._mark, bool(self.ledger_fault)

    def _mirror(self) -> None:
        """Mirror the ledger; one that does not go on with what is mirrored is told, and what is mirrored stays."""
        try:
            keeps_key = self._encryption is None or (self._ledger.has_clear_key and not all(are_encrypted(self._store)))
            self._mark = self._ledger.step(keeps_key=keeps_key)
            self.ledger_fault = ""
        except StoreRefused as refusal:
            self.ledger_fault = str(refusal)

    def _take_folder(self) -> None:
        """Keep every other memoryd from shipping to the folder that has the name now. StoreRefused."""
        if self._lock >= 0 and _is_same(self._lock, self._store / LOCK):
            return
        self._drop()
        self._let_go()
        root = self._store.parent
        if why := no_folder(root):
            raise StoreRefused(f"{root} {why}")
        is_new = not self._store.exists()
        self._store.mkdir(mode=0o700, exist_ok=True)
        if is_new:
            sync_folder(self._store.parent)
        handle = os.open(self._store / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise StoreRefused(f"another memoryd ships to {self._store}; name another backup.directory") from None
        if self._encryption is None and ends_encrypted(root, str(self._header.get("store_id", ""))):
            os.close(handle)
            raise StoreRefused(
                f"the backups of this store in {root} are encrypted, and nothing says who may open the next one: set"
                " backup.encrypt_recipients_file, or name another folder"
            )
        self._lock = handle

    def _let_go(self) -> None:
        """Let others ship to the folder."""
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1

    def _copy(self, commit_seq: int) -> tuple[ChainWriter, Image]:
        """Store what has changed of the file, which is held; it does not count yet."""
        writer = self._writer
        self._reason = ""
        is_kept = writer is not None and not self._begins_anew and self._last_seq(writer) <= commit_seq
        if writer is None or not is_kept:
            writer = self._open(commit_seq)
        size = self._opened_file()
        image = writer.copy(self._file, size)
        self._begins_anew, self._writer = False, writer
        return writer, image

    def _open(self, commit_seq: int) -> ChainWriter:
        """Go on with the newest chain of this version, if the store goes on from it; else begin one."""
        self._drop()
        chains = chains_of(self._store, [], in_brief=True)
        for chain in chains:
            if not chain.images:  # a copy that was never finished
                shutil.rmtree(chain.folder)
        last = next((chain for chain in reversed(chains) if chain.images), None)
        cipher = self._encryption.known(last.header) if self._encryption is not None and last is not None else None
        reason = self._why_anew(last, cipher, commit_seq)
        if last is not None and not reason:
            self._writer = ChainWriter(last.folder, last.header, cipher)
            return self._writer
        now = self._clock()
        told = {"transaction": commit_seq, "time": now.isoformat(timespec="seconds"), "reason": reason}
        cipher, more = self._encryption.begin(self._ledger.key) if self._encryption is not None else (None, {})
        name = chain_name(self._store, now)
        self._writer = ChainWriter(self._store / name, {**self._header, **told, **more}, cipher)
        self._reason = reason
        return self._writer

    def _why_anew(self, last: Chain | None, cipher: Cipher | None, commit_seq: int) -> str:
        """Return why the store does not go on with its last chain, whose key is `cipher`; empty: it does."""
        known = commit_seq if self._is_looked_at else min(commit_seq, self._shipping.opened_seq)
        self._is_looked_at = True  # one that was put back may have caught up since it was opened
        gave_up = last is not None and bool(last.points) and last.points[-1].commit_seq > known
        if last is not None and gave_up:
            self.put_back = (
                f"{last.folder.name} ends with transaction {last.points[-1].commit_seq}, the store with {known}"
            )
        if self._begins_anew:
            return "it was asked for"
        if last is None:
            return "there was none"
        others = [name for name, value in self._header.items() if last.header.get(name) != value]
        if others:
            return ", ".join(f"{name} was {last.header.get(name)}, is {self._header[name]}" for name in others)
        if not last.is_encrypted and self._encryption is not None:
            return f"{last.folder.name} is in clear"
        if last.is_encrypted and cipher is None:
            return f"{last.folder.name} was for other recipients, or its key is not kept here"
        return self.put_back if gave_up else ""

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


async def _prove(chain: Chain, point: Point, memory_limit_bytes: int, where: Path) -> None:
    """Restore a state as a trial in a process of its own, which reads the key of the chain. Raises StoreRefused."""
    words = (str(chain.folder), str(point.commit_seq), str(memory_limit_bytes), str(where))
    call = (sys.executable, "-m", "memoryd.backup", *words)
    process = await asyncio.create_subprocess_exec(*call, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        _, said = await process.communicate(b"" if chain.cipher is None else chain.cipher.key)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        remove_stale(where)  # a copy of the database
        raise
    if process.returncode:
        lines = said.decode(errors="replace").strip().splitlines()
        raise StoreRefused(lines[-1] if lines else f"the trial ended with {process.returncode}")


def _told(error: BaseException) -> str:
    """Return what went wrong; of a fault of the system with the file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _is_same(handle: int, path: Path) -> bool:
    """Whether an open file is the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
