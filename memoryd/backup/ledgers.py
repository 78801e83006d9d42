"""The ledgers of purges in a folder of backups: a copy for each history of a store, whose key may be encrypted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from memoryd.backup.encryption import Encryption, Identity, NotForUs
from memoryd.store.durable import copy_file, sync_folder, write_all, write_file
from memoryd.store.ledger import KEY, LINES, check_ledger, goes_on, key_of
from memoryd.store.refusal import StoreRefused

__all__ = ["LEDGER", "SEALED_KEY", "LedgerMirror", "check_copy", "copy_ledger", "ledger_of", "refuse_ledger"]

LEDGER = "ledger"
SEALED_KEY = "key.age"
"""The key of a ledger, encrypted for the recipients of the chains."""


def ledger_of(store: Path, others: Sequence[Path]) -> Path:
    """Return the ledger of purges of a history, or that of another one which goes on with it and knows the most."""
    mine = store / LEDGER
    known = [folder / LEDGER for folder in others if not _missing(folder / LEDGER)] if not _missing_key(mine) else []
    later = (ledger for ledger in known if goes_on(ledger, mine))
    return max(later, key=lambda ledger: (ledger / LINES).stat().st_size, default=mine)


def copy_ledger(ledger: Path, target: Path, identity: Identity | None = None) -> None:
    """Copy a ledger to a new folder, with its key in clear; OSError, NotForUs."""
    target.mkdir(mode=0o700)
    if (ledger / KEY).is_file():
        copy_file(ledger / KEY, target / KEY)
    else:
        write_file(target / KEY, _unwrapped(ledger, identity))
    copy_file(ledger / LINES, target / LINES)


def check_copy(ledger: Path, store_id: str, identity: Identity | None = None) -> int:
    """
    Read all lines of a ledger in a folder of backups, and return how many there are.

    An encrypted key is held against them only where there is an identity. Raises StoreRefused.
    """
    if missing := _missing(ledger):
        raise StoreRefused(f"{missing[0]} is missing: without the ledger what was purged would come back")
    if (ledger / KEY).is_file():
        return check_ledger(ledger, store_id)
    sealed = ledger / SEALED_KEY
    return check_ledger(
        ledger, store_id, lambda: key_of(sealed, _unwrapped(ledger, identity)) if identity is not None else None
    )


def refuse_ledger(ledger: Path, mirrored: Path, store_id: str, identity: Identity | None) -> None:
    """Raise StoreRefused where a ledger does not know all that the one of the backup knows was purged."""
    count = check_copy(ledger, store_id, identity)
    if not _missing_key(mirrored) and not goes_on(ledger, mirrored):
        known = check_copy(mirrored, store_id, identity)
        raise StoreRefused(
            f"{ledger} ({count} lines) does not go on with the ledger of the backup ({known} lines): what that knows"
            " would come back; name one that does, or none"
        )


class LedgerMirror:
    """
    Copies the ledger of purges to the backups of its store, its key encrypted as the chains are.

    What is there is only ever added to, as it may be the one that knows all purges.
    """

    def __init__(self, ledger: Path, store: Path, encryption: Encryption | None = None) -> None:
        """Do nothing yet."""
        self._ledger, self._target, self._encryption = ledger, store / LEDGER, encryption
        self._left: tuple[int, ...] = ()
        """What tells the file that was read and the one that was written, as they were left; empty: not known."""

    def step(self) -> None:
        """Add what is not there yet. OSError; StoreRefused where the ledger does not go on with what is there."""
        mirrored, lines = self._target / LINES, self._ledger / LINES
        if not self._left or self._state() != self._left:
            self._begin()
        known = mirrored.stat().st_size
        with lines.open("rb") as source:
            source.seek(known)
            more = source.read()
        more = more[: more.rfind(b"\n") + 1]  # a line that is written just now may be taken back
        if more:
            handle = os.open(mirrored, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                write_all(handle, more)
                os.fdatasync(handle)
            finally:
                os.close(handle)
        self._left = self._state()

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
        self._mirror_key()
        mirrored = self._target / LINES
        if not mirrored.exists():
            write_file(mirrored, b"")

    def _mirror_key(self) -> None:
        """Let the copy of the key be as chains are: in clear, or encrypted for the present recipients, and not both."""
        clear, sealed = self._target / KEY, self._target / SEALED_KEY
        if self._encryption is not None:
            write_file(sealed, self._encryption.wrap((self._ledger / KEY).read_bytes()))
            clear.unlink(missing_ok=True)
            return
        if not clear.exists():
            copy_file(self._ledger / KEY, clear)
        sealed.unlink(missing_ok=True)

    def _state(self) -> tuple[int, ...]:
        """Return what another file in place of one of the two would change."""
        try:
            there, here = (self._target / LINES).stat(), (self._ledger / LINES).stat()
        except FileNotFoundError:
            return ()
        keys = [(self._target / name).exists() for name in (KEY, SEALED_KEY)]
        return (there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns, here.st_dev, here.st_ino, *keys)


def _unwrapped(ledger: Path, identity: Identity | None) -> bytes:
    sealed = ledger / SEALED_KEY
    if identity is None:
        raise NotForUs(f"{sealed} is encrypted; name the file of an identity: --identity")
    return identity.unwrap(sealed.read_bytes(), sealed)


def _missing(ledger: Path) -> list[Path]:
    """Return the files that a ledger lacks."""
    return [*_missing_key(ledger), *(path for path in [ledger / LINES] if not path.is_file())]


def _missing_key(ledger: Path) -> list[Path]:
    return [] if any((ledger / name).is_file() for name in (KEY, SEALED_KEY)) else [ledger / KEY]
