"""The backups of a daemon: what is written is shipped as it goes on; each night a new chain is begun and proved."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import structlog

from memoryd.backup.encryption import Encryption, read_recipients
from memoryd.backup.folder import (
    Pruned,
    chains_of,
    ends_encrypted,
    histories,
    history_folder,
    no_folder,
    prune,
)
from memoryd.backup.scratch import remove_stale
from memoryd.backup.shipper import Shipper
from memoryd.daemon.config import Config
from memoryd.daemon.jobs import Progress
from memoryd.daemon.wiring import now_utc
from memoryd.domain.background import BackgroundWorker, message_of
from memoryd.errors import Unavailable
from memoryd.model.times import from_us
from memoryd.store.base import Shipping, StoreInfo

__all__ = ["Backups", "check_backups", "encryption_of", "header_of"]

log = structlog.get_logger("memoryd.daemon")

TELL_S = 60.0  # between two lines of the log that say the same
SILENT_S = 600.0  # a copy of a large database takes its time


def header_of(info: StoreInfo) -> dict[str, object]:
    """Return what the first line of a chain says; where any of it changes, a new chain is begun."""
    return {
        "store_id": info.store_id,
        "history_id": info.history_id,
        "schema": info.schema_version,
        "memoryd": version("memoryd"),
        "duckdb": version("duckdb"),
    }


def encryption_of(recipients_file: str, database: Path) -> Encryption | None:
    """Return how the chains of a database are encrypted; empty: they are not. Raises StartupError."""
    if not recipients_file:
        return None
    kept = database.with_name(f"{database.name}.chain-key")
    return Encryption(read_recipients(Path(recipients_file)), kept, secrets.token_bytes)


def check_backups(config: Config, store_id: str) -> list[str]:
    """Return why what is written would not be shipped, if there are to be backups. StartupError."""
    root = config.backup.directory
    if not root:
        return []
    if recipients := config.backup.encrypt_recipients_file:
        read_recipients(Path(recipients))
    if why := no_folder(Path(root)):
        return [f"backup.directory ({root}) {why}"]
    if not recipients and store_id and ends_encrypted(Path(root), store_id):
        return [f"backup.directory ({root}) holds encrypted backups, and backup.encrypt_recipients_file names no one"]
    return []


class Backups:
    """The backups of one store."""

    def __init__(
        self, config: Config, shipping: Shipping, info: StoreInfo, ledger: Path, doubt: Callable[[datetime], str]
    ) -> None:
        """
        Do nothing yet; `doubt` tells why nothing may be removed by its age at a time.

        StartupError where chains are to be encrypted, and cannot be.
        """
        self._config, self._shipping = config, shipping
        self._root, self._store_id = Path(config.backup.directory), info.store_id
        self._folder = history_folder(self._root, info.store_id, info.history_id)
        encryption = encryption_of(config.backup.encrypt_recipients_file, shipping.path)
        self._shipper = Shipper(shipping, self._folder, ledger, header_of(info), now_utc, encryption)
        self._held: tuple[str, ...] = (f"backups in {self._root}, which were not looked at yet",)
        self._faults: list[str] = []
        self._proof_fault = ""
        self._is_known = False
        self._told = ("", 0.0)
        self._left: asyncio.Future[None] | None = None
        self._looked_s = time.monotonic()
        self._doubt = doubt
        self.shipped_time: datetime | None = None
        """When all that was written was last stored; None: not since the start."""
        self.proved_time: datetime | None = None
        """When a chain of this history was last restored as a trial; None: none was, or it was not looked at yet."""

    async def step(self, *, may_copy: bool = True) -> None:
        """Ship what was written since the last step; StoreRefused, OSError."""
        now = now_utc()
        if not self._is_known:
            await asyncio.to_thread(remove_stale, self._folder)
        try:
            await self._shipper.step(may_copy=may_copy)
        finally:
            self._looked_s = time.monotonic()
            self._tell_chain()
        if not self._is_known:
            with contextlib.suppress(OSError):  # it is looked at again; what was shipped was shipped
                await self._look()
        self.shipped_time = now
        if self._shipper.ledger_fault:
            self._tell(self._shipper.ledger_fault)

    async def serve(self) -> None:
        """Ship until it is cancelled."""
        pause_s = self._config.backup.ship_s
        worker = BackgroundWorker(step=self.step, pause_s=pause_s, tell=self._tell, describe=message_of)
        await worker.serve(begins_with_pause=True)

    def _tell(self, fault: str) -> None:
        """Log what goes wrong: once, and again after a minute, or when it is something else."""
        (said, at_s), now_s = self._told, time.monotonic()
        if fault != said or now_s - at_s >= TELL_S:
            self._told = fault, now_s
            log.error("backup_not_shipped", error=fault)

    def _tell_chain(self) -> None:
        """Log which chain was begun, once."""
        if self._shipper.began:
            chain, reason = self._shipper.began
            self._shipper.began = None
            log.info("backup_chain_begun", chain=str(self._folder / chain), reason=reason)

    async def at_stop(self, *, finish: bool, grace_s: float) -> None:
        """Ship what is left, before or after the store is closed; for a folder that does not answer no one waits."""
        if self.is_held_up:
            if finish:
                log.error("backup_not_shipped", error=f"{self._root} does not answer")
            return
        self._left = asyncio.ensure_future(self._shipper.finish() if finish else self.step(may_copy=False))
        done, _ = await asyncio.wait({self._left}, timeout=grace_s)
        if not done:
            log.error("backup_not_shipped", error=f"{self._root} does not answer")
        elif isinstance(error := self._left.exception(), Exception):  # the next start ships what is missing
            log.error("backup_not_shipped", error=message_of(error))

    @property
    def is_held_up(self) -> bool:
        """Whether the last of it waits for a folder that does not answer."""
        return self._shipper.is_stuck or (self._left is not None and not self._left.done())

    def held(self) -> tuple[str, ...]:
        """Return the chains that there are, in words, each with the day on which it goes."""
        return self._held

    async def run(self, progress: Progress) -> Mapping[str, int]:
        """Begin a new chain, prove it, and remove those that are too old, of earlier histories of the store too."""
        if progress.dry_run:
            return {
                "chains": len(self._held),
                "removed": len(await asyncio.to_thread(self._prune, progress, dry_run=True)),
            }
        progress.total_count = 3
        try:
            await self._shipper.begin_chain()
        finally:
            self._tell_chain()
        progress.done_count = 1
        try:
            self._refuse_full_disk()
            point = await self._shipper.prove(self._config.store.memory_limit_bytes)
            self._proof_fault = ""
        except Exception as error:
            self._proof_fault = str(error) or type(error).__name__
            raise
        finally:
            gone = await asyncio.to_thread(self._prune, progress, dry_run=False)
            await self._look()
        progress.done_count = 3
        return {"transaction": point.commit_seq, "chains": len(self._held), "removed": len(gone)}

    @property
    def folder(self) -> Path:
        """Where its chains are."""
        return self._folder

    @property
    def fault(self) -> str:
        """Why nothing is stored now, or the ledger of purges is not; empty: they are."""
        return self._shipper.fault or self._shipper.ledger_fault

    def warnings(self) -> list[str]:
        """Return what an operator should look at."""
        silent_s = time.monotonic() - self._looked_s
        warnings = []
        if silent_s > max(SILENT_S, 10 * self._config.backup.ship_s):
            warnings.append(
                f"{self._folder} has not answered for {silent_s:.0f} s: nothing is shipped; look at its disk"
            )
        warnings += [f"a backup cannot be read: {fault}" for fault in self._faults]
        if self._shipper.fault:
            warnings.append(f"backups in {self._folder} are not written now: {self._shipper.fault}")
        if self._shipper.ledger_fault:
            warnings.append(self._shipper.ledger_fault)
        if self._shipper.put_back:
            warnings.append(
                f"an older database was put back: {self._shipper.put_back}; what was given up is in {self._folder}:"
                " memoryd restore, with --transaction"
            )
        if self._root.resolve().is_relative_to(self._shipping.path.parent.resolve()):
            warnings.append(f"backup.directory ({self._root}) lies in the data directory: both are lost together")
        if self._proof_fault:
            warnings.append(f"the last backup could not be proved: {self._proof_fault}")
        if self._shipping.lost:
            warnings.append(
                f"backup.spool_bytes was too little {self._shipping.lost} times: some states between are not reached"
            )
        return warnings

    def _refuse_full_disk(self) -> None:
        """Raise Unavailable where a trial next to the database has no room; what is encrypted is tried there."""
        if not self._config.backup.encrypt_recipients_file:
            return
        path, least = self._shipping.path, self._config.store.min_free_bytes
        needed, free = path.stat().st_size + least, shutil.disk_usage(path.parent).free
        if free < needed:
            raise Unavailable(
                f"{path.parent} has {free} bytes free, and a trial of the backup takes {needed}, store.min_free_bytes"
                " among them"
            )

    def _prune(self, progress: Progress, *, dry_run: bool) -> list[Pruned]:
        if doubt := self._doubt(progress.now):
            log.warning("backups_not_pruned", reason=doubt)
            return []
        keep = timedelta(days=self._config.backup.keep_days)
        gone = []
        for folder in histories(self._root, self._store_id):
            if not dry_run:
                remove_stale(folder)
            gone += prune(chains_of(folder, [], in_brief=True), now=progress.now, keep=keep, dry_run=dry_run)
        return gone

    async def _look(self) -> None:
        """See which chains there are."""
        faults: list[str] = []
        self._held = await asyncio.to_thread(self._chains, faults)
        self._faults, self._is_known = faults, True

    def _chains(self, faults: list[str]) -> tuple[str, ...]:
        keep = timedelta(days=self._config.backup.keep_days)
        told, proofs = [], list[int]()
        for folder in histories(self._root, self._store_id):
            chains = chains_of(folder, faults, in_brief=True)
            if folder == self._folder:  # what was proved of an earlier history says nothing of what is written now
                proofs += [time_us for chain in chains for _, time_us in chain.proofs]
            for chain in chains[:-1]:
                day = f"until {chain.points[-1].time + keep:%Y-%m-%d}" if chain.points else "until it is pruned"
                told.append(f"{chain.folder} ({day})")
            told += [f"{chain.folder} (for {keep.days} days after the next one)" for chain in chains[-1:]]
        self.proved_time = from_us(max(proofs)) if proofs else None
        return (*told, *faults)
