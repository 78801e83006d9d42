"""
The work that the daemon does by itself: the jobs of the schedule, and what keeps the clock believed.

A daemon leases a job before it runs it, so that of several before one store one runs it. Every job may be run again at
any time: a lease that has ended early does no harm.
"""

from __future__ import annotations

import secrets
import time
from datetime import datetime, timedelta

import structlog

from memoryd.daemon.config import Config
from memoryd.daemon.servers import Servers
from memoryd.daemon.wiring import now_utc
from memoryd.domain.clock import CLOCK_SEEN
from memoryd.domain.forgetting.decay import forget_faded
from memoryd.domain.forgetting.verify import compact
from memoryd.domain.people.enrich import enrich
from memoryd.domain.ports import Ports
from memoryd.errors import Contended, Unavailable
from memoryd.model.call_context import CallContext, in_call
from memoryd.model.change import ChangeSet
from memoryd.service.gc import run_gc

__all__ = ["collect_at_start", "lease", "look_at_clock", "run_job"]

LEASE = timedelta(minutes=10)
CLOCK_NOTED = timedelta(hours=1)  # so often is the time written down

log = structlog.get_logger("memoryd.daemon")


async def look_at_clock(ports: Ports, noted: datetime | None = None) -> None:
    """Write the time down now and then, if it is believed: the next start compares the clock with it."""
    now = now_utc()
    believed = ports.clock is not None and ports.clock.look(now)
    if believed and (noted is None or abs(now - noted) >= CLOCK_NOTED):
        await ports.store.commit(ChangeSet(jobs={CLOCK_SEEN: now}))


def leased(name: str) -> str:
    """Return under which name it is noted until when a job is leased."""
    return f"{name} leased until"


async def lease(name: str, ports: Ports, now: datetime, *, ran: datetime | None) -> bool:
    """Take a job that ran last at a time (None: never); False if somebody else runs it, or has run it since."""
    until = (await ports.store.jobs()).get(leased(name))
    if until is not None and now < until <= now + LEASE:  # later ones come from a clock that was wrong
        return False
    try:
        await ports.store.commit(
            ChangeSet(jobs={leased(name): now + LEASE}, jobs_before={name: ran, leased(name): until})
        )
    except Contended:
        return False
    except Unavailable:
        return True  # the disk may be full, and garbage collection makes room
    return True


async def run_job(
    name: str, ports: Ports, doors: Servers, config: Config, *, ran: datetime | None, now: datetime
) -> None:
    """
    Run one job of the schedule, which ran last at a time, and write down that it ran.

    A fault is logged, and the next time comes.
    """
    if not await lease(name, ports, now, ran=ran):
        return
    call_context = CallContext(time=now, call=secrets.token_hex(6), rpc=name, door="daemon")
    began = time.monotonic()
    try:
        with in_call(call_context):
            if name == "enrichment":
                report: object = await enrich(ports, now=call_context.time)
            elif name == "decay":
                report = (await forget_faded(ports, now=call_context.time)).decayed_count
            elif name == "gc":
                report = await run_gc(
                    ports, doors.issuer, now=call_context.time, ended_grace_days=config.sandbox.ended_grace_days
                )
            else:
                report = await compact(ports, now=call_context.time)
    except Exception as error:  # noqa: BLE001  the daemon serves all the same, and tries again when it is next due
        log.error("job_failed", job=name, error=type(error).__name__)  # noqa: TRY400  a trace may hold content
    else:
        log.info("job_done", job=name, report=str(report), duration_s=round(time.monotonic() - began, 3))
    await ports.store.commit(ChangeSet(jobs={name: now, leased(name): now}))


async def collect_at_start(ports: Ports, doors: Servers, ended_grace_days: float) -> None:
    """Collect garbage once the daemon serves, unless somebody does so already."""
    call_context = CallContext(time=now_utc(), call=secrets.token_hex(6), rpc="gc", door="daemon")
    try:
        ran = (await ports.store.jobs()).get("gc")
        if not await lease("gc", ports, call_context.time, ran=ran):
            return
        with in_call(call_context):
            report = await run_gc(ports, doors.issuer, now=call_context.time, ended_grace_days=ended_grace_days)
    except Exception as error:  # noqa: BLE001  the daemon serves all the same
        log.error("gc_failed", error=type(error).__name__)  # noqa: TRY400  a trace may hold content
    else:
        log.info(
            "gc",
            expired=report.expired_count,
            superseded=report.superseded_count,
            deleted=report.deleted_count,
            requests=report.request_count,
            grants=report.grant_count,
            held=report.held,
        )
    await ports.store.commit(ChangeSet(jobs={leased("gc"): call_context.time}))
