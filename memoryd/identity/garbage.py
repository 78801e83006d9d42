"""Collecting garbage: memories, requests and grants that are past their grace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from memoryd.domain.clock import CLOCK_SEEN
from memoryd.domain.forgetting.collect import collect
from memoryd.domain.ports import Ports
from memoryd.identity.issuer import GrantIssuer
from memoryd.model.change import ChangeSet
from memoryd.model.reports import GcReport

__all__ = ["run_gc"]


async def run_gc(
    ports: Ports,
    issuer: GrantIssuer,
    *,
    now: datetime,
    ended_grace_days: float,
    dry_run: bool = False,
    clock_is_right: bool = False,
    tell: Callable[[int, int], None] = lambda _done, _all: None,
) -> GcReport:
    """
    Erase what is past its grace, or only count it; nothing while the clock is in doubt.

    With `clock_is_right` the operator says that it may be believed.
    """
    if clock_is_right and ports.shared.clock is not None:
        ports.shared.clock.believe(now)
        await ports.store.commits.write(ChangeSet(marks={CLOCK_SEEN: now}))
    report = await collect(ports, now=now, dry_run=dry_run, tell=tell)
    if report.held and not dry_run:
        return report
    grants = await issuer.collect(now, grace_days=ended_grace_days, dry_run=dry_run)
    return replace(report, grant_count=grants)
