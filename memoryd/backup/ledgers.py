"""The ledgers of purges in a folder of backups: a copy for each history of a store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from memoryd.backup.digests import digest_of
from memoryd.backup.refusal import BackupDamaged
from memoryd.paths import open_regular
from memoryd.store.durable import copy_file, sync_folder, write_all, write_file
from memoryd.store.ledger import KEY, LINES, check_ledger, goes_on, key_of
from memoryd.store.lines import LineFile, last_line
from memoryd.store.refusal import StoreRefused

__all__ = [
    "LEDGER",
    "LedgerMark",
    "LedgerMirror",
    "check_copy",
    "check_mark",
    "copy_ledger",
    "ledger_of",
    "refuse_ledger",
]

LEDGER = "ledger"


class LedgerMark(NamedTuple):
    """Where a ledger ended: a chain says so with each state, so that one which has lost lines is noticed."""

    size: int
    digest: str
    """Of the last line."""


def mark_of(path: Path) -> LedgerMark:
    """Return where the lines of a ledger end; OSError."""
    end, raw = last_line(path)
    return LedgerMark(end, digest_of(raw))


def ledger_of(store: Path, others: Sequence[Path]) -> Path:
    """Return the ledger of purges of a history, or that of another one which goes on with it and knows the most."""
    mine = store / LEDGER
    known = [folder / LEDGER for folder in others if (folder / LEDGER / LINES).is_file()]
    later = (ledger for ledger in known if goes_on(ledger, mine)) if (mine / LINES).is_file() else ()
    return max(later, key=lambda ledger: (ledger / LINES).stat().st_size, default=mine)


def copy_ledger(ledger: Path, target: Path, key: bytes | None = None) -> None:
    """Copy a ledger to a new folder; `key` is the file of its key where that does not lie there. OSError."""
    target.mkdir(mode=0o700)
    if key is None or (ledger / KEY).is_file():
        copy_file(ledger / KEY, target / KEY)
    else:
        write_file(target / KEY, key)
    copy_file(ledger / LINES, target / LINES)


def check_copy(ledger: Path, store_id: str, key: bytes | None = None, *, is_sealed: bool = False) -> int:
    """
    Read all lines of a ledger in a folder of backups, and return how many there are. StoreRefused.

    `key` is the file of its key where that does not lie there; one that is sealed and not known is not held against
    the lines.
    """
    clear = ledger / KEY
    missing = [path for path in (clear, ledger / LINES) if not path.is_file()]
    if key is not None or is_sealed:
        missing = [path for path in missing if path != clear]
    if missing:
        raise StoreRefused(f"{missing[0]} is missing: without the ledger what was purged would come back")
    if clear.is_file():
        return check_ledger(ledger, store_id)
    return check_ledger(ledger, store_id, lambda: None if key is None else key_of(clear, key))


def refuse_ledger(ledger: Path, mirrored: Path, store_id: str, key: bytes | None, mark: LedgerMark | None) -> None:
    """
    Raise StoreRefused where a ledger does not know all that the one of the backup knows was purged.

    `mark` is where the ledger ended by the chains of the backup; BackupDamaged where it does not reach that.
    """
    count = check_copy(ledger, store_id, key)
    if (mirrored / LINES).is_file() and not goes_on(ledger, mirrored):
        known = check_copy(mirrored, store_id, key)
        raise StoreRefused(
            f"{ledger} ({count} lines) does not go on with the ledger of the backup ({known} lines): what that knows"
            " would come back; name one that does, or none"
        )
    check_mark(ledger, mark)


def check_mark(ledger: Path, mark: LedgerMark | None) -> None:
    """Raise BackupDamaged where a ledger has lost lines, or has others, by what the chains say."""
    if mark is None:
        return
    lines = ledger / LINES
    with lines.open("rb") as file:
        known = file.read(mark.size)
    if len(known) < mark.size or digest_of(known[:-1].rpartition(b"\n")[2]) != mark.digest:
        raise BackupDamaged(
            f"{lines} is not what was written: by the chains it had {mark.size} bytes, and what was purged would come"
            " back; put the right one back, or name a newer one: --ledger"
        )


class LedgerMirror:
    """
    Copies the ledger of purges to the backups of its store.

    What is there is only ever added to, as it may be the one that knows all purges. Its key lies there in clear while
    any chain does; those that are encrypted hold it themselves.
    """

    def __init__(self, ledger: Path, store: Path) -> None:
        """Do nothing yet."""
        self._ledger, self._target = ledger, store / LEDGER
        self._left: tuple[int, ...] = ()
        """What tells the file that was read and the one that was written, as they were left; empty: not known."""
        self._mark = LedgerMark(0, "")

    @property
    def has_clear_key(self) -> bool:
        """Whether the key lies by the copy."""
        return (self._target / KEY).exists()

    @property
    def key(self) -> bytes:
        """The file of its key. OSError."""
        return (self._ledger / KEY).read_bytes()

    def step(self, *, keeps_key: bool = True) -> LedgerMark:
        """
        Add what is not there yet, and return where it ends; `keeps_key`: with the key.

        OSError; StoreRefused where the ledger does not go on with what is there.
        """
        mirrored, lines = self._target / LINES, self._ledger / LINES
        if not self._left or self._state() != self._left:
            self._begin()
        self._mirror_key(keeps_key=keeps_key)
        with lines.open("rb") as source:
            source.seek(mirrored.stat().st_size)
            more = source.read()
            more = more[: more.rfind(b"\n") + 1]  # a line that is written just now may be taken back
            if more:
                os.fdatasync(source.fileno())  # a line that is not on that disk must not be on this one
        if more:
            handle = open_regular(mirrored, os.O_WRONLY | os.O_APPEND)
            try:
                write_all(handle, more)
                os.fdatasync(handle)
            finally:
                os.close(handle)
        if more or not self._left:
            self._mark = mark_of(mirrored)
        self._left = self._state()
        return self._mark

    def _begin(self) -> None:
        self._left = ()
        if not self._target.exists():
            self._target.mkdir(mode=0o700)
            sync_folder(self._target.parent)
        if not goes_on(self._ledger, self._target):
            raise StoreRefused(
                f"the ledger of purges in {self._ledger} does not go on with that in {self._target}, which is kept: put"
                " the right one back, or move the folder of the backup away"
            )
        mirrored = self._target / LINES
        if not mirrored.exists():
            write_file(mirrored, b"")
            return
        file = LineFile(mirrored)
        try:
            file.cut()
        finally:
            file.close()

    def _mirror_key(self, *, keeps_key: bool) -> None:
        key = self._target / KEY
        if keeps_key and not key.exists():
            copy_file(self._ledger / KEY, key)
        for path in [] if keeps_key else list(self._target.glob(f"{KEY}*")):  # and what a killed copy has left
            path.unlink()
            sync_folder(self._target)

    def _state(self) -> tuple[int, ...]:
        """Return what another file in place of one of the two would change."""
        try:
            there, here = (self._target / LINES).stat(), (self._ledger / LINES).stat()
        except FileNotFoundError:
            return ()
        return (there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns, here.st_dev, here.st_ino)
