"""Work in the background: what is still to be learnt from threads, and the runs of jobs. Times are aware, in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple

from memoryd.model.open_enum import OpenEnum
from memoryd.model.scope import Owner

__all__ = ["EXTRACTION_JOB", "LLM_EXTRACTION_JOB", "CounterName", "Lease", "Run", "RunState", "Work", "WorkState"]

EXTRACTION_JOB = "extraction"
LLM_EXTRACTION_JOB = "llm_extraction"  # besides it, with a counter of its own: a model only adds


class CounterName(NamedTuple):
    """What a number of the store counts: of one day (in the daemon's time zone), or of all time."""

    name: str
    day: date | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """Who does a piece of work that one daemon does at a time, and until when no one else may take it."""

    name: str
    holder: str
    until: datetime


class WorkState(OpenEnum):
    """Where a piece of work stands."""

    WAITING = "waiting"
    """It is done when its time has come."""
    IDLE = "idle"
    """Nothing is to be done."""
    PARKED = "parked"
    """It has failed too often, and waits for someone to look at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How far a kind of work has come in one thread."""

    kind: str
    owner: Owner
    thread_id: str
    seq: int = 0
    """The last message that it is done with."""
    state: WorkState = WorkState.WAITING
    due_time: datetime
    """When it is done next; of what is idle or parked, when it was looked at last."""
    attempts: int = 0
    """How often it has failed in a row."""
    error: str = ""
    """Why it failed last: never content."""


class RunState(OpenEnum):
    """How a run of a job stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    """The daemon ended while it ran; the next run goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a job."""

    id: str
    job: str
    state: RunState
    start_time: datetime
    end_time: datetime | None = None
    trigger: str = "schedule"
    """What began it: "schedule", "start" of the daemon, "call", or "messages" that came."""
    dry_run: bool = False
    done_count: int = 0
    """How many items it has looked at."""
    total_count: int = 0
    """How many there are, as far as is known; 0: not known."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What came of it, by name."""
    error: str = ""
    """Why it failed: never content."""
    stop_requested: bool = False
    """Whether it was asked to stop, at a daemon that does not run it."""
