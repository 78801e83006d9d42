"""
When jobs are due: cron expressions, the times at which each ran last, and now.

A run that was missed while the daemon was down is made up for once, in the order of the jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from memoryd.daemon.config import CRON_FIELDS, Config
from memoryd.daemon.config_key import ConfigError

__all__ = ["JOBS", "due_jobs", "expressions_of", "first_seen", "misdated", "next_time"]

JOBS = ("enrichment", "consolidation", "judgement", "decay", "gc", "reflection", "compaction", "backup")
"""In the order in which they run where several are due."""


def expressions_of(config: Config) -> dict[str, str]:
    """Return the expression of each job that is to run; ConfigError names those that are none."""
    jobs = {}
    faults = []
    for name in JOBS:
        expression = getattr(config.schedule, name)
        if name == "backup" and not config.backup.directory:
            continue
        try:
            if len(expression.split()) == CRON_FIELDS:  # others are named where the configuration is read
                CronSim(expression, datetime.now(UTC))
                jobs[name] = expression
        except CronSimError as error:
            faults.append(f"schedule.{name} is {expression!r}: {error}; write it as in '0 4 * * *'")
    if faults:
        raise ConfigError(*faults)
    return jobs


def first_seen(name: str) -> str:
    """Return under which name it is noted when a job was first asked for; from then on it is waited for."""
    return f"{name} first seen"


def misdated(ran: Mapping[str, datetime], now: datetime) -> dict[str, datetime]:
    """Return the jobs that a clock, wrong once, has put into the future, with the time from which they count now."""
    names = {*JOBS, *map(first_seen, JOBS)}
    return {name: now for name, time in ran.items() if name in names and time > now}


def due_jobs(config: Config, ran: Mapping[str, datetime], now: datetime) -> list[str]:
    """Return the jobs that are due, in order; one that never ran counts from when it is first asked for."""
    due = []
    for name in expressions_of(config):
        last = ran.get(name, ran.get(first_seen(name)))
        if last is not None and next_time(config, name, last) <= now:
            due.append(name)
    return due


def next_time(config: Config, name: str, last: datetime) -> datetime:
    """Return when a job that is scheduled runs after a time."""
    expression = str(getattr(config.schedule, name))
    return next(CronSim(expression, last.astimezone(config.schedule.zone))).astimezone(UTC)
