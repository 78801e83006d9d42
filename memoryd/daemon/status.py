"""What the daemon says of itself: its store, its model, what waits, and what an operator should look at."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from memoryd.audit.log import AuditLog
from memoryd.daemon.backups import Backups
from memoryd.daemon.garbage import resident_bytes
from memoryd.daemon.loop_lag import LoopLag
from memoryd.daemon.servers import Servers
from memoryd.daemon.wiring import now_utc
from memoryd.domain.clock import AHEAD
from memoryd.domain.ports import Ports
from memoryd.model.reports import Reembedding
from memoryd.paths import Places, open_to_others

__all__ = ["CLOSED", "Running", "describe"]

CLOSED = (
    "sandboxes, the shared socket and TCP are closed, as the store was restored from a backup: grants that were revoked"
    " since may count again. Look at them, and open the doors with: memoryd serve --reopen-sandboxes"
)


@dataclass(slots=True)
class Running:
    """What is known of one run of the daemon."""

    version: str
    places: Places
    began: float
    """By the monotonic clock, in seconds."""
    lag: LoopLag
    faults: list[str] = field(default_factory=list)
    """Sockets of sandboxes that could not be opened again."""
    backups: Backups | None = None


async def describe(running: Running, ports: Ports, doors: Servers, audit: AuditLog | None) -> dict[str, Any]:
    """Return the fields of ServerInfo."""
    info = await ports.store.info()
    warnings = list(running.faults)
    warnings += [text] if (text := open_to_others(running.places.database.parent)) else []
    warnings += [info.damage] if info.damage else []
    warnings += _clock_warnings(ports, info.newest_create_time)
    embedding = await doors.reembedder.progress()
    warnings += _embedding_warnings(embedding)
    if doors.message_embedder.fault:
        warnings.append(f"messages are not embedded now: {doors.message_embedder.fault}")
    warnings += await doors.learners.warnings()
    if audit is not None and audit.fault:
        warnings.append(f"the audit log cannot be written: {audit.fault}")
    warnings += ports.store.warnings
    warnings += [] if running.backups is None else running.backups.warnings()
    if info.sandboxes_closed:
        warnings.append(CLOSED)
    if ports.indexes.faults:
        warnings.append(f"{ports.indexes.faults} indexes were dropped after a fault and rebuilt; see the log")
    if ports.shared.faults.count:
        warnings.append(f"{ports.shared.faults.count} faults in reading texts, which all went on without; see the log")
    uptime, lag = Duration(), Duration()
    uptime.FromTimedelta(timedelta(seconds=time.monotonic() - running.began))
    lag.FromTimedelta(timedelta(seconds=running.lag.largest_s()))
    return {
        "version": running.version,
        "uptime": uptime,
        "store_path": info.path,
        "store_id": info.store_id,
        "schema_version": info.schema_version,
        "commit_seq": info.commit_seq,
        "store_bytes": info.store_bytes,
        "memory_count": info.memory_count,
        "embedding_provider": ports.embedder.provider,
        "embedding_fingerprint": ports.embedder.fingerprint,
        "embedding_dimensions": ports.embedder.dimensions,
        "index_scopes": ports.indexes.scopes,
        "index_bytes": ports.indexes.nbytes,
        "warnings": warnings,
        "rss_bytes": resident_bytes(),
        "sandbox_count": len(doors.listeners),
        "max_loop_lag": lag,
        "unembedded_count": embedding.pending_count,
        "message_count": (await ports.store.conversations.totals())[0],
        "unembedded_message_count": await doors.message_embedder.pending(),
        "backup_path": "" if running.backups is None else str(running.backups.folder),
        "backup_shipped_time": None if running.backups is None else _timestamp(running.backups.shipped_time),
        "backup_proved_time": None if running.backups is None else _timestamp(running.backups.proved_time),
        "audit_path": "" if running.places.audit is None else str(running.places.audit),
    }


def _timestamp(time: datetime | None) -> Timestamp | None:
    if time is None:
        return None
    made = Timestamp()
    made.FromDatetime(time)
    return made


def _clock_warnings(ports: Ports, newest: datetime | None) -> list[str]:
    now = now_utc()
    doubt = ports.doubt(now)
    warnings = [doubt] if doubt else []
    if newest is not None and newest - now > AHEAD:
        warnings.append(
            f"the newest create_time, {newest:%Y-%m-%d}, is {(newest - now).days} days ahead of the clock, which was"
            " wrong once or is now; create_time goes on from there, and all else follows the clock"
        )
    return warnings


def _embedding_warnings(known: Reembedding) -> list[str]:
    if not known.pending_count:
        return []
    how = "their turn comes" if known.running else "you run: memoryd reembed"
    why = f"; it pauses: {known.fault}" if known.fault else ""
    none = (
        f"{known.pending_count} memories have no vector of the model in use, and are found by their words until {how}"
    )
    return [none + why]
