"""The chains of a folder of backups, as every command reads them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.backup.chain import Chain

__all__ = ["chain_row", "place_of_copies", "read_chains", "read_store", "unledgered"]


def chain_row(chain: Chain) -> dict[str, Any]:
    """Return what a list of backups shows of a chain."""
    first, last = (chain.points[0], chain.points[-1]) if chain.points else (None, None)
    proved = chain.proofs[-1] if chain.proofs else None
    return {
        "chain": str(chain.folder),
        "store_id": chain.header.get("store_id", ""),
        "memoryd": chain.header.get("memoryd", ""),
        "schema": chain.header.get("schema", 0),
        "reason": chain.header.get("reason", ""),
        "first_transaction": first and first.commit_seq,
        "first_time": first and first.time,
        "last_transaction": last and last.commit_seq,
        "last_time": last and last.time,
        "state_count": chain.points.state_count,
        "stored_bytes": chain.stored_bytes,
        "recipients": list(chain.recipients),
        "proved_transaction": proved and proved[0],
        "proved_time": proved and datetime.fromtimestamp(proved[1] / 1e6, UTC),
    }


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
