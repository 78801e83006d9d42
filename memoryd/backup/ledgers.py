"""The ledgers of purges in a folder of backups: a copy for each history of a store, whose key may be encrypted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memoryd.backup.encryption import Encryption, Identity, NotForUs
from memoryd.store.durable import copy_file, sync_folder, write_file
from memoryd.store.ledger import KEY, LINES, check_ledger, goes_on, key_of
from memoryd.store.refusal import StoreRefused

__all__ = ["LEDGER", "SEALED_KEY", "check_copy", "copy_ledger", "ledger_of", "mirror_ledger", "refuse_ledger"]

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


def mirror_ledger(ledger: Path, store: Path, encryption: Encryption | None = None) -> None:
    """
    Copy the ledger of purges to the backups of its store, as far as it is not there. OSError.

    Its key is encrypted as the chains are. Raises StoreRefused where the ledger does not go on with what is there: that
    may be the only one that knows all purges.
    """
    target = store / LEDGER
    if not target.exists():
        target.mkdir(mode=0o700)
        sync_folder(store)
    _mirror_key(ledger / KEY, target, encryption)
    mirrored, lines = target / LINES, ledger / LINES
    known = mirrored.stat().st_size if mirrored.exists() else 0
    if known == lines.stat().st_size and known and mirrored.stat().st_mtime_ns >= lines.stat().st_mtime_ns:
        return
    if not goes_on(ledger, target):
        raise StoreRefused(
            f"the ledger of purges in {ledger} does not go on with that in {target}, which is kept: put the right one"
            " back, or move the folder of the backup away"
        )
    copy_file(lines, mirrored)


def _mirror_key(key: Path, target: Path, encryption: Encryption | None) -> None:
    """Let the copy of a key be as chains are: in clear, or encrypted, and not both."""
    clear, sealed = target / KEY, target / SEALED_KEY
    if encryption is None and not clear.exists():
        copy_file(key, clear)
    elif encryption is not None and not sealed.exists():
        write_file(sealed, encryption.wrap(key.read_bytes()))
    (sealed if encryption is None else clear).unlink(missing_ok=True)


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
