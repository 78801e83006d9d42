"""The backups of a daemon: what is written is shipped as it goes on; each night a new chain is begun and proved."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

from memoryd.backup.folder import chains_of, prune
from memoryd.backup.shipper import Shipper
from memoryd.daemon.config import Config
from memoryd.daemon.jobs import Progress
from memoryd.store.base import Shipping, StoreInfo

__all__ = ["Backups", "header_of"]


def header_of(info: StoreInfo) -> dict[str, object]:
    """Return what the first line of a chain says; where any of it changes, a new chain is begun."""
    return {
        "store_id": info.store_id,
        "history_id": info.history_id,
        "schema": info.schema_version,
        "memoryd": version("memoryd"),
        "duckdb": version("duckdb"),
    }


class Backups:
    """The backups of one store."""

    def __init__(self, config: Config, shipping: Shipping, info: StoreInfo, ledger: Path) -> None:
        """Do nothing yet."""
        self._config, self._shipping = config, shipping
        self._folder = Path(config.backup.directory) / info.store_id
        self._shipper = Shipper(shipping, self._folder, ledger, header_of(info))
        self._held: tuple[str, ...] | None = None

    async def step(self) -> None:
        """Ship what was written since the last step; StoreRefused, OSError."""
        await self._shipper.step()
        if self._held is None:
            await self._look()

    def held(self) -> tuple[str, ...]:
        """Return the chains that there are, in words, each with the day on which it goes."""
        return self._held or ()

    async def _look(self) -> None:
        chains = await asyncio.to_thread(chains_of, self._folder)
        keep = timedelta(days=self._config.backup.keep_days)
        days = [f"{chain.points[-1].time + keep:%Y-%m-%d}" if chain.points else "" for chain in chains[:-1]]
        until = [f"until {day}" if day else "until the next is proved" for day in days]
        until += [f"for {keep.days} days after the next chain is begun"] * len(chains[-1:])
        self._held = tuple(f"{chain.folder} ({when})" for chain, when in zip(chains, until, strict=True))

    async def run(self, progress: Progress) -> Mapping[str, int]:
        """Begin a new chain, prove it, and remove those that are too old."""
        keep = timedelta(days=self._config.backup.keep_days)
        if progress.dry_run:
            chains = await asyncio.to_thread(chains_of, self._folder)
            gone = await asyncio.to_thread(prune, chains, now=progress.now, keep=keep, dry_run=True)
            return {"chains": len(chains), "removed": len(gone)}
        progress.total_count = 3
        await self._shipper.begin_chain()
        progress.done_count = 1
        point = await self._shipper.prove(self._config.store.memory_limit_bytes)
        progress.done_count = 2
        chains = await asyncio.to_thread(chains_of, self._folder)
        gone = await asyncio.to_thread(prune, chains, now=progress.now, keep=keep)
        await self._look()
        progress.done_count = 3
        return {
            "transaction": point.commit_seq,
            "stored_bytes": chains[-1].stored_bytes,
            "chains": len(chains) - len(gone),
            "removed": len(gone),
        }

    async def finish(self) -> None:
        """Ship what is left once the store is closed. OSError."""
        await self._shipper.finish()

    def warnings(self) -> list[str]:
        """Return what an operator should look at."""
        warnings = []
        if self._shipper.fault:
            warnings.append(f"backups in {self._folder} are not written now: {self._shipper.fault}")
        if self._shipping.lost:
            warnings.append(
                f"backup.spool_bytes was too little {self._shipping.lost} times: some states between are not reached"
            )
        return warnings
