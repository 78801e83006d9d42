"""The figures that are read when a scraper asks: what the store, the indexes, the jobs and the backups are like now."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version

from memoryd.audit.log import AuditLog
from memoryd.daemon.servers import Servers
from memoryd.daemon.status import Running
from memoryd.daemon.wiring import now_utc
from memoryd.domain.ports import Ports
from memoryd.embedding.scheduler import ScheduledEmbedder
from memoryd.metrics.sample import Sample
from memoryd.model.work import RunState, WorkState
from memoryd.store.base import StoreInfo

__all__ = ["observe"]

LOOKED_AT = 50  # runs of a job, for its last success


async def observe(
    running: Running, ports: Ports, doors: Servers, audit: AuditLog | None, min_free_bytes: int
) -> list[Sample]:
    """Return them; a figure that cannot be told now is left out."""
    info = await ports.store.info()
    now = now_utc()
    return [
        *_of_store(info, ports, min_free_bytes),
        *await _of_content(info, ports, doors, now),
        *_of_indexes(ports),
        *await _of_jobs(doors),
        *_of_operation(running, ports, doors, audit, now),
        *_of_backups(running, now),
    ]


def _of_store(info: StoreInfo, ports: Ports, min_free_bytes: int) -> Iterator[Sample]:
    labels = {
        "version": version("memoryd"),
        "schema": str(info.schema_version),
        "duckdb": version("duckdb"),
        "fingerprint": ports.embedder.fingerprint,
    }
    yield Sample("memoryd_build_info", "What runs; always 1.", 1, tuple(labels.items()))
    yield Sample("memoryd_commit_seq", "The number of the last transaction.", info.commit_seq)
    yield Sample("memoryd_store_damaged", "1: part of the database cannot be read.", bool(info.damage))
    if ports.store.files is None:
        return
    figures = ports.store.files.figures()
    yield Sample("memoryd_store_bytes", "Bytes of the database, without its log.", figures.store_bytes)
    yield Sample("memoryd_log_bytes", "Bytes of the log that is not folded in yet.", figures.log_bytes)
    if figures.free_bytes is not None:
        yield Sample("memoryd_disk_free_bytes", "Bytes that are free where the database is.", figures.free_bytes)
    yield Sample("memoryd_disk_min_free_bytes", "Below so much free space nothing is added.", min_free_bytes)
    queues = {"writer": figures.waiting_writes, "store_read": figures.waiting_reads}
    if isinstance(ports.embedder, ScheduledEmbedder):
        queues["embed_query"], queues["embed_document"] = ports.embedder.waiting()
    for queue, length in queues.items():
        yield Sample("memoryd_queue_depth", "What waits for a thread.", length, (("queue", queue),))


async def _of_content(info: StoreInfo, ports: Ports, doors: Servers, now: datetime) -> list[Sample]:
    embedding = await doors.reembedder.progress()
    messages = (await ports.store.conversations.totals())[0]
    waiting = {"memory": embedding.pending_count, "message": await doors.message_embedder.pending()}
    counts = await ports.store.work.counts()
    due = await ports.store.work.find(states=[WorkState.WAITING], limit=1, due_by=now)
    lag_s = max(0.0, (now - due[0].due_time).total_seconds()) if due else 0.0
    parked = sum(count for (_, state), count in counts.items() if state is WorkState.PARKED)
    return [
        Sample("memoryd_memories", "Memories that are stored, in every state.", info.memory_count),
        Sample("memoryd_messages", "Messages that are stored.", messages),
        *(
            Sample("memoryd_unembedded", "What has no vector of the model in use.", count, (("kind", kind),))
            for kind, count in waiting.items()
        ),
        Sample("memoryd_learning_lag_seconds", "For how long the first thread waits to be learnt from.", lag_s),
        Sample("memoryd_learning_parked_threads", "Threads that could not be learnt from.", parked),
    ]


def _of_indexes(ports: Ports) -> Iterator[Sample]:
    for kind, indexes in (("memory", ports.indexes), ("message", ports.episodes), ("note", ports.notes)):
        label = (("kind", kind),)
        yield Sample("memoryd_index_bytes", "Bytes that the indexes take.", indexes.nbytes, label)
        yield Sample("memoryd_index_scopes", "Scopes whose index is in memory.", indexes.scopes, label)
        yield Sample("memoryd_index_loads_total", "Indexes that were loaded.", indexes.loads, label)
        yield Sample("memoryd_index_evictions_total", "Indexes that had to leave memory.", indexes.evictions, label)
        yield Sample("memoryd_index_faults_total", "Indexes that were dropped after a fault.", indexes.faults, label)


async def _of_jobs(doors: Servers) -> list[Sample]:
    samples = []
    for name in doors.jobs.names:
        runs = await doors.jobs.runs(job=name, limit=LOOKED_AT)
        done = (run.end_time for run in runs if run.state is RunState.DONE and not run.dry_run and run.end_time)
        label = (("job_name", name),)
        if (last := next(done, None)) is not None:
            meaning = "When the last run ended that was a success."
            time_s = last.timestamp()
            samples.append(Sample("memoryd_job_last_success_timestamp_seconds", meaning, time_s, label))
    return samples


def _of_operation(
    running: Running, ports: Ports, doors: Servers, audit: AuditLog | None, now: datetime
) -> Iterator[Sample]:
    yield Sample("memoryd_clock_in_doubt", "1: nothing is erased by its age.", bool(ports.doubt(now)))
    lag_s = running.lag.largest_s()
    yield Sample("memoryd_loop_lag_max_seconds", "The longest wait for the event loop in the last minute.", lag_s)
    yield Sample("memoryd_sandboxes_open", "Sockets of sandboxes that are open.", len(doors.listeners))
    if audit is not None:
        yield Sample("memoryd_audit_fault", "1: the audit log cannot be written.", bool(audit.fault))
        yield Sample("memoryd_audit_bytes", "Bytes of the audit log that is written now.", audit.size)


def _of_backups(running: Running, now: datetime) -> Iterator[Sample]:
    backups = running.backups
    if backups is None:
        return
    shipped, proved = backups.shipped_time, backups.proved_time
    if shipped is not None:
        meaning = "When what was written was last in the backup."
        yield Sample("memoryd_backup_last_success_timestamp_seconds", meaning, shipped.timestamp())
        lag_s = max(0.0, (now - shipped).total_seconds())
        yield Sample("memoryd_ship_lag_seconds", "How far the backup is behind.", lag_s)
    if proved is not None:
        meaning = "When a backup was last restored as a trial."
        yield Sample("memoryd_backup_last_verified_timestamp_seconds", meaning, proved.timestamp())
    yield Sample("memoryd_backup_fault", "1: the backup is not written now.", bool(backups.fault))
