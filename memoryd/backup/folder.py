"""A folder of backups: for each store its chains and a copy of its ledger of purges."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from memoryd.backup.chain import MANIFEST, MOST_LINE_BYTES, BackupDamaged, Chain, Point, is_begun
from memoryd.backup.encryption import WRAPPED
from memoryd.backup.ledgers import LEDGER, LedgerMark, copy_ledger, refuse_ledger
from memoryd.backup.scratch import scratch
from memoryd.paths import read_regular
from memoryd.store.durable import sync_file, sync_folder
from memoryd.store.ledger import KEY
from memoryd.store.lines import parse_line
from memoryd.store.opening import prove_copy, take_copy
from memoryd.store.refusal import StoreRefused

__all__ = [
    "Pruned",
    "are_encrypted",
    "chain_name",
    "chains_of",
    "ends_encrypted",
    "histories",
    "history_folder",
    "ledger_key_of",
    "mark_of_chains",
    "no_folder",
    "point_of",
    "prove",
    "prune",
    "refuse_target",
    "restore",
    "store_folder",
    "store_id_of",
    "stores_in",
]

DATABASE = "memory.duckdb"
DIGITS = 6  # of the number of a chain
HISTORY_DIGITS = 8


def chain_name(store: Path, time: datetime) -> str:
    """Return how the folder of the next chain of a store is called: chains follow in the order of their numbers."""
    numbers = [int(path.name[:DIGITS]) for path in store.iterdir() if path.name[:DIGITS].isdecimal()]
    return f"{max(numbers, default=0) + 1:0{DIGITS}d}-{time.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def history_folder(folder: Path, store_id: str, history_id: str) -> Path:
    """Return where a store is shipped to: each history of it to a folder of its own."""
    return folder / (f"{store_id}-{history_id[:HISTORY_DIGITS]}" if history_id else store_id)


def histories(folder: Path, store_id: str) -> list[Path]:
    """Return the folders of all histories of a store in a folder of backups."""
    later = folder.glob(f"{store_id}-{'[0-9a-f]' * HISTORY_DIGITS}")
    return sorted(path for path in (folder / store_id, *later) if path.is_dir())


def stores_in(folder: Path) -> list[Path]:
    """Return the folders of all histories of all stores in a folder of backups; StoreRefused where there is none."""
    names = (MANIFEST, "image-000001")  # the first may be lost
    if any(list(folder.glob(f"*/{name}")) for name in names):
        return [folder]
    stores = sorted({path.parent.parent for name in names for path in folder.glob(f"*/*/{name}")})
    if not stores:
        raise StoreRefused(f"{folder} holds no backup of memoryd" if folder.exists() else f"{folder} is not there")
    return stores


def store_folder(folder: Path) -> Path:
    """
    Return the folder of a history of a store in a folder of backups, which may be that folder itself.

    Raises StoreRefused where it holds none, or several.
    """
    stores = stores_in(folder)
    if len(stores) == 1:
        return stores[0]
    told = ", ".join(map(str, stores))
    raise StoreRefused(
        f"{folder} holds backups of {len(stores)} stores, or of one before and after a restore; name {told}"
    )


def chains_of(store: Path, faults: list[str] | None = None, *, in_brief: bool = False) -> list[Chain]:
    """
    Return the chains of a store that have their header, the oldest first; `in_brief` without most of their states.

    Raises BackupDamaged; with `faults`, a chain that cannot be read is left out and told there.
    """
    chains, found = [], _shut(store)
    for path in _manifests(store):
        try:
            if is_begun(path):
                chains.append(Chain.read(path.parent, in_brief=in_brief))
            elif any(path.parent.glob("image-*[0-9]")):  # the header is on disk before them
                found.append(f"{path} has lost its first line: nothing of this chain can be restored")
        except BackupDamaged as damage:
            found.append(str(damage))
    if faults is None and found:
        raise BackupDamaged(found[0])
    if faults is not None:
        faults += found
    return chains


def _shut(store: Path) -> list[str]:
    """Return which chains may not be looked into: a glob finds nothing there, and says nothing."""
    if not store.is_dir():
        return []
    chains = (path for path in sorted(store.iterdir()) if path.name[:DIGITS].isdecimal() and path.is_dir())
    shut = (path for path in chains if not os.access(path, os.R_OK | os.X_OK, effective_ids=True))
    return [f"{path} may not be read; look at its owner and mode" for path in shut]


def _manifests(store: Path) -> list[Path]:
    """Return the manifests of all chains, also of one that has lost its own."""
    begun = {*store.glob(f"*/{MANIFEST}"), *(image.with_name(MANIFEST) for image in store.glob("*/image-*[0-9]"))}
    return sorted(path for path in begun if not path.parent.name.startswith("."))


def point_of(
    chains: Sequence[Chain], *, transaction: int | None = None, time: datetime | None = None
) -> tuple[Chain, Point]:
    """
    Return the chain and the state that lead to a transaction or a time, else to the last. Raises StoreRefused.

    Where an older database was put back, an older chain may have the transaction, and the newest end before it.
    """
    if transaction is not None:
        last = max((chain.points[-1].commit_seq for chain in chains if chain.points), default=None)
        if last is not None and transaction > last:
            raise StoreRefused(f"no backup reaches transaction {transaction}; the last is {last}")
        for chain in reversed(chains):
            point = chain.point(transaction=transaction)
            if point is not None and chain.points[-1].commit_seq >= transaction:
                return chain, point
    for chain in reversed(chains):
        point = chain.point(transaction=transaction, time=time)
        if point is not None:
            return chain, point
    if transaction is None and time is None:
        raise StoreRefused("no state of this backup can be restored: none is complete, or its chains cannot be read")
    wanted = f"transaction {transaction}" if time is None else time.isoformat()
    first = next((chain.points[0] for chain in chains if chain.points), None)
    told = "" if first is None else f"; the first is transaction {first.commit_seq}, of {first.time.isoformat()}"
    raise StoreRefused(f"no backup reaches back to {wanted}{told}")


def prove(chain: Chain, point: Point, *, memory_limit_bytes: int, where: Path | None = None) -> None:
    """
    Restore a state as a trial, and read all of it; nothing is left of it. Raises StoreRefused, OSError.

    A chain that is encrypted has to be unlocked before; what is in clear must not get to its folder, so `where` names
    another one.
    Else it is done next to the chain, where there is as much room as for another one.
    """
    with scratch(where or chain.folder.parent) as folder:
        path = folder / DATABASE
        chain.assemble(point, path, path.with_name(f"{DATABASE}.wal"), yields_disk=True)
        prove_copy(path, store_id_of(chain), point.commit_seq, memory_limit_bytes=memory_limit_bytes)


def restore(  # noqa: PLR0913  what a new store is made of
    chain: Chain,
    point: Point,
    data_dir: Path,
    ledger: Path,
    *,
    memory_limit_bytes: int,
    random_bytes: Callable[[int], bytes],
    closes_sandboxes: bool,
    above: int = 0,
) -> int:
    """
    Make a data directory of a state; it has its name when all of it is there, and read.

    What the ledger says was purged later is erased by the first start, before it serves. The last transaction gets a
    number past `above`, and past its own. Returns that number. A chain that is encrypted has to be unlocked before.
    Raises StoreRefused, OSError.
    """
    refuse_target(data_dir)
    key = ledger_key_of(chain)
    store = chain.folder.parent
    refuse_ledger(
        ledger, store / LEDGER, str(store_id_of(chain)), key, mark_of_chains(chains_of(store, [], in_brief=True))
    )
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    part = data_dir.with_name(f".{data_dir.name}.restoring")
    with _alone_in(part):
        path = part / DATABASE
        chain.assemble(point, path, path.with_name(f"{DATABASE}.wal"))
        with ThreadPoolExecutor(1) as thread:
            on_disk = thread.submit(sync_file, path)  # while it is read
            commit_seq = take_copy(
                path,
                store_id_of(chain),
                point.commit_seq,
                memory_limit_bytes=memory_limit_bytes,
                random_bytes=random_bytes,
                closes_sandboxes=closes_sandboxes,
                above=above,
            )
            on_disk.result()
        sync_file(path)
        copy_ledger(ledger, part / LEDGER, key)
        sync_folder(part)
        if data_dir.exists():
            data_dir.rmdir()
        part.rename(data_dir)
        sync_folder(data_dir.parent)
    return commit_seq


@contextlib.contextmanager
def _alone_in(part: Path) -> Iterator[None]:
    """Make a folder, empty, that no other process fills; what goes wrong removes it. StoreRefused, OSError."""
    part.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(handle, 0o700)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreRefused(f"another restore fills {part}; wait for it") from None
        try:
            for path in part.iterdir():  # of one that was killed
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            yield
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    finally:
        os.close(handle)


def refuse_target(data_dir: Path) -> None:
    """Raise StoreRefused where a data directory cannot be made with this name."""
    if data_dir.is_mount():
        raise StoreRefused(f"{data_dir} is a mount point, which cannot be replaced; name a folder in it")
    if data_dir.is_symlink() or (data_dir.exists() and not data_dir.is_dir()):
        raise StoreRefused(f"{data_dir} is there, and no folder; name a new one")
    if data_dir.exists() and any(data_dir.iterdir()):
        raise StoreRefused(f"{data_dir} is not empty; name a new folder")


@dataclass(frozen=True, slots=True)
class Pruned:
    """A chain that was removed, or would be."""

    chain: Chain
    bytes: int


def ledger_key_of(chain: Chain) -> bytes | None:
    """
    Return the file of the ledger's key, of a chain that was unlocked; None: it is not there.

    All histories of a store have the same one.
    """
    clear = chain.folder.parent / LEDGER / KEY
    return clear.read_bytes() if not chain.is_encrypted and clear.is_file() else chain.ledger_key


def mark_of_chains(chains: Sequence[Chain]) -> LedgerMark | None:
    """Return where the ledger of a history ended, by the chain that has seen the most of it."""
    return max((chain.ledger for chain in chains if chain.ledger is not None), default=None)


def are_encrypted(store: Path) -> list[bool]:
    """Return which chains of a store are, the oldest first; one without a header that can be read is left out."""
    headers = []
    for path in _manifests(store):
        with contextlib.suppress(OSError), read_regular(path) as file:
            headers.append(parse_line(file.readline(MOST_LINE_BYTES).rstrip(b"\n")))
    return [WRAPPED in header for header in headers if header is not None]


def ends_encrypted(folder: Path, store_id: str) -> bool:
    """Whether the newest chain of any history of a store is encrypted."""
    return any(are_encrypted(store)[-1:] == [True] for store in histories(folder, store_id))


def no_folder(folder: Path) -> str:
    """Return why there is no folder of backups, with the way out; empty: there is one."""
    if folder.is_dir():
        return ""
    return "is no folder" if folder.exists() else "is not there; make the folder of backups, or mount its disk"


def prune(chains: Sequence[Chain], *, now: datetime, keep: timedelta, dry_run: bool = False) -> list[Pruned]:
    """
    Remove chains whose last state is older than `keep`, whole, the oldest first.

    The newest stays, and the last one that was proved.
    """
    proved = next((chain for chain in reversed(chains) if chain.proofs), None)
    gone = []
    for chain in chains[:-1]:
        if chain is proved or _last_time(chain) > now - keep:
            continue
        gone.append(Pruned(chain, chain.stored_bytes))
        if not dry_run:
            shutil.rmtree(chain.folder)
    if gone and not dry_run and all(are_encrypted(gone[0].chain.folder.parent)):
        (gone[0].chain.folder.parent / LEDGER / KEY).unlink(missing_ok=True)  # each chain holds it, encrypted
    return gone


def _last_time(chain: Chain) -> datetime:
    """Return of when its last state is, or of one without any when it was begun."""
    return chain.points[-1].time if chain.points else datetime.fromisoformat(chain.header["time"])


def store_id_of(chain: Chain) -> UUID:
    """Return the id of the store of a chain. Raises BackupDamaged."""
    try:
        return UUID(chain.header["store_id"])
    except (KeyError, ValueError):
        raise BackupDamaged(f"{chain.folder / MANIFEST} names no store") from None
