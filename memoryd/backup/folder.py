"""A folder of backups: for each store its chains and a copy of its ledger of purges."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from memoryd.backup.chain import MANIFEST, BackupDamaged, Chain, Point, is_begun
from memoryd.store.durable import copy_file, sync_folder
from memoryd.store.ledger import KEY, LINES
from memoryd.store.opening import prove_copy, take_copy
from memoryd.store.refusal import StoreRefused

__all__ = ["LEDGER", "Pruned", "chain_name", "chains_of", "mirror_ledger", "prove", "prune", "restore", "store_folder"]

LEDGER = "ledger"
DATABASE = "memory.duckdb"
DIGITS = 12  # of a transaction in the name of a chain: they sort as they follow


def chain_name(commit_seq: int, time: datetime) -> str:
    """Return how the folder of a chain is called that begins with a transaction."""
    return f"{commit_seq:0{DIGITS}d}-{time.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def store_folder(folder: Path, store_id: str = "") -> Path:
    """
    Return the folder of a store in a folder of backups, which may be that folder itself.

    Raises StoreRefused where it holds none, or several and none is named.
    """
    if store_id:
        return folder / store_id
    if list(folder.glob(f"*/{MANIFEST}")):
        return folder
    stores = sorted({path.parent.parent for path in folder.glob(f"*/*/{MANIFEST}")})
    if len(stores) == 1:
        return stores[0]
    if not stores:
        raise StoreRefused(f"{folder} holds no backup of memoryd")
    raise StoreRefused(f"{folder} holds backups of {len(stores)} stores; name one: {', '.join(map(str, stores))}")


def chains_of(store: Path) -> list[Chain]:
    """Return the chains of a store that have their header, the oldest first. Raises BackupDamaged."""
    return [Chain.read(path.parent) for path in sorted(store.glob(f"*/{MANIFEST}")) if is_begun(path)]


def point_of(
    chains: Sequence[Chain], *, transaction: int | None = None, time: datetime | None = None
) -> tuple[Chain, Point]:
    """Return the chain and the state that lead to a transaction or a time, else to the last. Raises StoreRefused."""
    for chain in reversed(chains):
        point = chain.point(transaction=transaction, time=time)
        if point is not None:
            return chain, point
    wanted = f"transaction {transaction}" if time is None else time.isoformat()
    first = next((chain.points[0] for chain in chains if chain.points), None)
    told = "" if first is None else f"; the first is transaction {first.commit_seq}, of {first.time.isoformat()}"
    raise StoreRefused(f"no backup reaches back to {wanted}{told}")


def prove(chain: Chain, point: Point, *, memory_limit_bytes: int, scratch: Path | None = None) -> None:
    """Restore a state as a trial, and read all of it; nothing is left of it. Raises StoreRefused, OSError."""
    with tempfile.TemporaryDirectory(prefix="memoryd-proof-", dir=scratch) as folder:
        path = Path(folder) / DATABASE
        chain.assemble(point, path, path.with_name(f"{DATABASE}.wal"))
        prove_copy(path, _store_id(chain), point.commit_seq, memory_limit_bytes=memory_limit_bytes)


def restore(
    chain: Chain,
    point: Point,
    data_dir: Path,
    ledger: Path,
    *,
    memory_limit_bytes: int,
    random_bytes: Callable[[int], bytes],
    closes_sandboxes: bool,
) -> int:
    """
    Make a data directory of a state; it has its name when all of it is there, and read.

    What the ledger says was purged later is erased by the first start, before it serves. Returns the number that the
    last transaction has now. Raises StoreRefused, OSError.
    """
    if data_dir.exists() and any(data_dir.iterdir()):
        raise StoreRefused(f"{data_dir} is not empty; name a new folder")
    part = data_dir.with_name(f"{data_dir.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700, parents=True)
    try:
        path = part / DATABASE
        chain.assemble(point, path, path.with_name(f"{DATABASE}.wal"))
        commit_seq = take_copy(
            path,
            _store_id(chain),
            point.commit_seq,
            memory_limit_bytes=memory_limit_bytes,
            random_bytes=random_bytes,
            closes_sandboxes=closes_sandboxes,
        )
        (part / LEDGER).mkdir(mode=0o700)
        for name in (KEY, LINES):
            copy_file(ledger / name, part / LEDGER / name)
        if data_dir.exists():
            data_dir.rmdir()
        part.rename(data_dir)
        sync_folder(data_dir.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return commit_seq


def mirror_ledger(ledger: Path, store: Path) -> None:
    """Copy the ledger of purges to the backups of its store, as far as it is not there. OSError."""
    target = store / LEDGER
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in (KEY, LINES):
        mirrored = target / name
        if not mirrored.exists() or mirrored.stat().st_size != (ledger / name).stat().st_size:
            copy_file(ledger / name, mirrored)


@dataclass(frozen=True, slots=True)
class Pruned:
    """A chain that was removed, or would be."""

    chain: Chain
    bytes: int


def prune(chains: Sequence[Chain], *, now: datetime, keep: timedelta, dry_run: bool = False) -> list[Pruned]:
    """
    Remove chains whose last state is older than `keep`, whole, the oldest first.

    The newest stays, and the last one that was proved.
    """
    proved = next((chain for chain in reversed(chains) if chain.proofs), None)
    gone = []
    for chain in chains[:-1]:
        if chain is proved or not chain.points or chain.points[-1].time > now - keep:
            break
        gone.append(Pruned(chain, chain.stored_bytes))
        if not dry_run:
            (chain.folder / MANIFEST).unlink()  # without it nothing of the rest counts
            shutil.rmtree(chain.folder)
    return gone


def _store_id(chain: Chain) -> UUID:
    try:
        return UUID(chain.header["store_id"])
    except (KeyError, ValueError):
        raise BackupDamaged(f"{chain.folder / MANIFEST} names no store") from None
