"""The chains of a folder of backups, as every command reads them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memoryd.backup.chain import Chain

__all__ = ["place_of_copies", "read_chains", "read_store", "unledgered"]


def place_of_copies(chain: Chain, elsewhere: Path) -> Path | None:
    """Return where copies of a state may lie: nothing in clear next to an encrypted chain. None: next to it."""
    return elsewhere if chain.is_encrypted or not os.access(chain.folder.parent, os.W_OK) else None


def read_store(folder: Path, *, strict: bool = False, in_brief: bool = False) -> tuple[Path, list[Chain]]:
    """Return the folder of the only history of a store there, and its chains as of `read_chains`. StoreRefused."""
    from memoryd.backup.folder import store_folder

    store = store_folder(folder.resolve())
    return store, read_chains(store, strict=strict, in_brief=in_brief)


def read_chains(store: Path, *, strict: bool = False, in_brief: bool = False) -> list[Chain]:
    """Return the chains of a history of a store; those that cannot be read are told, or refused where it is strict."""
    from memoryd.backup.folder import chains_of
    from memoryd.backup.refusal import BackupDamaged

    faults = list[str]()
    chains = chains_of(store, None if strict else faults, in_brief=in_brief)
    if faults and not chains:
        raise BackupDamaged(faults[0])
    for fault in faults:
        print(f"memoryd: warning: {fault}", file=sys.stderr)
    return chains


def unledgered(chains: Sequence[Chain]) -> list[str]:
    """Return, in words, that purges are not known to the ledger in the backup, where that is so."""
    last = max((chain.unledgered for chain in chains if chain.unledgered is not None), default=None)
    if last is None:
        return []
    fact = f"up to transaction {last} states were stored while the ledger of purges was lost"
    return [f"{fact}: what was purged then is not known here, and may come back; if it is left, name it: --ledger"]
