"""
The audit log: who did what to which memories, and what came of it; never what they say.

One JSON object a line, in a file that is only appended to. The line of a write is there before the write is committed,
and on disk before it is acknowledged; every other line is there before its call is answered. A file that has grown to
`max_bytes` is put aside under the time of its end, and the oldest of those beyond `keep_files` are removed. Refusals
that repeat each other within a second become one line with their count, and so do the reads of a grant within a minute,
so that no one can flood out what happened.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memoryd.audit.reading import audit_files
from memoryd.audit.repeats import Repeats
from memoryd.errors import Unavailable
from memoryd.model import limits
from memoryd.model.call_context import CallContext
from memoryd.model.change import ChangeSet
from memoryd.model.times import rfc3339
from memoryd.paths import open_regular
from memoryd.turns import started

__all__ = ["AuditLog"]

REFUSALS = timedelta(seconds=1)  # refusals alike within it are one line
READS = timedelta(minutes=1)  # and what a grant reads within it, or asks for with nothing to write
MAX_KINDS = 4096  # that are counted at once, of each


class AuditLog:
    """Appends to the log; safe to call from any thread."""

    def __init__(
        self,
        path: Path,
        *,
        required: bool = True,
        max_bytes: int = 64 << 20,
        keep_files: int = 16,
        daemon_id: str = "",
        on_fault: Callable[[str], None] = lambda _: None,
    ) -> None:
        """
        Open the log, or make it. With `required`, what cannot be written down is refused.

        Each line says which daemon wrote it: `daemon_id`.
        """
        self.path = path
        self._required = required
        self._max_bytes = max_bytes
        self._keep_files = keep_files
        self._daemon_id = daemon_id
        self._on_fault = on_fault
        self._fault = ""
        self._lock = threading.Lock()
        self._handle = -1
        self._size = 0
        self._torn = False
        self._flusher = started(ThreadPoolExecutor(1, "audit-flush"), 1)
        self._suspect = False  # a flush has failed since the last that did not
        self._refusals = Repeats(REFUSALS, most=MAX_KINDS)
        self._reads = Repeats(READS, most=MAX_KINDS)
        with self._lock:
            self._append([])

    # --- writing ---

    def record(self, work: Sequence[tuple[Sequence[ChangeSet], CallContext | None]]) -> Callable[[], None]:
        """Write down what is about to be committed, and return what waits until it is on disk; see Journal."""
        call_contexts = []
        for changes, call_context in work:
            if call_context is not None:
                ids = tuple(touched for change in changes for touched in change.ids)
                purged_ids = tuple(gone for change in changes for gone in change.purged_ids)
                call_context.purge = call_context.purge or bool(purged_ids)  # also of what always erases
                call_contexts.append((call_context, ids, purged_ids))
        lines = [
            self._line(call_context, "OK", "", ids, limits.MAX_AUDITED_IDS, purged_ids=purged)
            for call_context, ids, purged in call_contexts
        ]
        if not lines:
            return _nothing
        with self._lock:
            fault = self._append(lines)
        if fault:
            if self._required:
                raise Unavailable(
                    f"the audit log cannot be written ({fault}), and nothing is changed that is not in it;"
                    " nothing was written"
                )
            return _nothing
        flushed = self._flusher.submit(self._flush)
        if self._suspect and not self._is_flushed(flushed) and self._required:
            raise Unavailable("the audit log cannot be put on disk; nothing was written")
        for call_context, ids, _ in call_contexts:
            call_context.recorded = (call_context.recorded or frozenset()) | {*ids, call_context.token_id}
        return lambda: self._until(flushed)

    def note(self, call_context: CallContext, outcome: str, reason: str = "", field: str = "") -> None:
        """Write down what came of a call, with the field that was wrong, unless its commits have said all of it."""
        written = call_context.recorded
        if outcome == "OK" and written is not None and written >= {*call_context.ids, call_context.token_id}:
            return
        most = limits.MAX_AUDITED_READ_IDS if written is None else limits.MAX_AUDITED_IDS
        with self._lock:
            self._append_with_repeats(call_context.time)
            kind = (*_who(call_context), call_context.rpc, outcome, reason, call_context.dry_run, call_context.purge)
            if outcome != "OK":
                counted = self._refusals.is_counted(kind, call_context, outcome, reason)
            else:  # the host's own are told one by one, and so is what was written
                is_read = written is None and call_context.grant_id
                counted = bool(is_read) and self._reads.is_counted(kind, call_context, outcome, reason)
            if not counted:
                self._append([self._line(call_context, outcome, reason, call_context.ids, most, field=field)])

    def tell_repeats(self, now: datetime) -> None:
        """Write down how often refusals and reads have repeated whose time is over; to be called now and then."""
        with self._lock:
            self._append_with_repeats(now)

    def check_writable(self) -> None:
        """Raise Unavailable while the log has to be written and cannot."""
        if self._required and self._fault:
            with self._lock:
                fault = self._append([])
            if fault:
                raise Unavailable(f"the audit log cannot be written ({fault}); nothing was written")

    @property
    def fault(self) -> str:
        """Why it cannot be written now; empty while it can."""
        return self._fault

    def close(self) -> None:
        """Write what is still counted, and let go of the file."""
        with self._lock:
            self._append_with_repeats(None)
        self._flusher.submit(self._flush).result()
        self._flusher.shutdown()
        with self._lock:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1

    def _append_with_repeats(self, now: datetime | None) -> None:
        """Append the lines of what has repeated and whose time is over by now (None: all). The lock is held."""
        most = limits.MAX_AUDITED_IDS
        over = [
            self._line(repeated.last, repeated.outcome, repeated.reason, ids[n : n + most], most, **counts)
            for kinds in (self._refusals, self._reads)
            for repeated in kinds.ended(now)
            for ids in (list(repeated.ids),)
            for n in range(0, max(1, len(ids)), most)
            for counts in ({"repeated": repeated.count, "id_count": repeated.id_count} if n == 0 else {"repeated": 0},)
        ]
        if not self._append(over):  # what cannot be written now is told with the next
            for kinds in (self._refusals, self._reads):
                kinds.forget(now)

    def _line(
        self, call_context: CallContext, outcome: str, reason: str, ids: Sequence[str], most: int, **more: Any
    ) -> bytes:
        record = {
            "time": rfc3339(call_context.time),
            "call": call_context.call,
            "daemon": self._daemon_id,
            "door": call_context.door,
            "listener": call_context.listener,
            "grant_id": call_context.grant_id,
            "token_id": call_context.token_id,
            "agent_id": call_context.agent_id,
            "user_id": call_context.user_id,
            "chat_id": call_context.chat_id,
            "peer": call_context.peer,
            "rpc": call_context.rpc,
            "outcome": outcome,
            "reason": reason,
            "dry_run": call_context.dry_run,
            "purge": call_context.purge,
            "ids": list(ids[:most]),
            **({"id_count": len(ids)} if len(ids) > most else {}),
            **more,
        }
        fields = {name: value for name, value in record.items() if value}
        return json.dumps(fields, ensure_ascii=False).encode() + b"\n"

    @property
    def size(self) -> int:
        """Bytes of the file that is written now."""
        return self._size

    def _append(self, lines: Sequence[bytes]) -> str:
        """Append, and return what went wrong, in words; empty if nothing did. The lock is held."""
        try:
            self._write(b"".join(lines))
        except OSError as error:
            fault = error.strerror or type(error).__name__
            if fault != self._fault:
                self._on_fault(fault)
            self._fault = fault
            return fault
        self._fault = ""
        return ""

    def _write(self, data: bytes) -> None:
        """Append data whole; OSError if it is not there, or not all of it."""
        if self._handle < 0:
            self._open()
        if self._size and self._size + len(data) > self._max_bytes:
            self._rotate()
        if data and self._torn:
            data = b"\n" + data
        left = memoryview(data)
        while left:  # a disk that gets full takes a part first
            written = os.write(self._handle, left)
            if not written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._size += written
            left = left[written:]
            self._torn = bool(left)

    def _open(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._handle = open_regular(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self._size = os.fstat(self._handle).st_size
        self._torn = self._size > 0 and os.pread(self._handle, 1, self._size - 1) != b"\n"

    def _rotate(self) -> None:
        """Put the file aside and begin a new one; what takes time is left to the thread that flushes."""
        ended = datetime.fromtimestamp(os.fstat(self._handle).st_mtime, UTC)
        while (aside := self.path.with_name(f"{self.path.stem}-{ended:%Y%m%dT%H%M%S.%fZ}{self.path.suffix}")).exists():
            ended += timedelta(microseconds=1)
        self.path.rename(aside)
        old, self._handle = self._handle, -1
        try:
            self._open()  # before the oldest are counted
        finally:
            self._flusher.submit(self._finish, old)

    def _finish(self, old: int) -> None:
        """Put the file that was put aside on disk, and remove the oldest."""
        try:
            os.fdatasync(old)
        except OSError as error:
            self._on_fault(error.strerror or type(error).__name__)
        finally:
            os.close(old)
        for file in audit_files(self.path)[: -(self._keep_files + 1)]:
            file.unlink(missing_ok=True)

    def _flush(self) -> None:
        with self._lock:
            handle = os.dup(self._handle) if self._handle >= 0 else -1
        if handle >= 0:
            try:
                os.fdatasync(handle)
            finally:
                os.close(handle)

    def _is_flushed(self, flushed: Future[None]) -> bool:
        """Wait for a flush and return whether it went well; after one that did not, the next is awaited first."""
        try:
            flushed.result()
        except OSError as error:
            self._suspect = True
            self._on_fault(error.strerror or type(error).__name__)
            return False
        self._suspect = False
        return True

    def _until(self, flushed: Future[None]) -> None:
        """Wait for the flush of what is committed by now."""
        self._is_flushed(flushed)


def _who(call_context: CallContext) -> tuple[str, ...]:
    """Return who called, and through which door."""
    return (
        call_context.door,
        call_context.listener,
        call_context.grant_id,
        call_context.token_id,
        call_context.agent_id,
        call_context.user_id,
        call_context.chat_id,
    )


def _nothing() -> None:
    """There is nothing to wait for."""
