"""Jobs, their runs and the threads that they have set aside, as messages and back."""

from __future__ import annotations

from typing import Any

from memoryd.errors import InternalError
from memoryd.model.reports import JobStatus, ParkedThread
from memoryd.model.work import Run, RunState, Work
from memoryd.v1 import job_service_pb2 as pb
from memoryd.wire.memory import EnumCodes, set_time, time_from_pb

__all__ = ["job_from_pb", "job_to_pb", "parked_from_pb", "parked_to_pb", "run_from_pb", "run_to_pb"]

STATE = EnumCodes(RunState, pb, "JOB_RUN_STATE")
_RUN = ("id", "job", "trigger", "dry_run", "done_count", "total_count", "error", "stop_requested")
_JOB = ("name", "meaning", "schedule", "waiting_count", "parked_count", "attempts", "has_dry_run")
_PARKED = ("job", "agent_id", "user_id", "chat_id", "thread_id", "seq", "attempts", "error")


def run_to_pb(run: Run) -> pb.JobRun:
    """Return a run as a message."""
    plain: dict[str, Any] = {name: getattr(run, name) for name in _RUN}
    message = pb.JobRun(state=STATE.to_pb(run.state), counts=dict(run.counts), **plain)
    set_time(message, "start_time", run.start_time)
    set_time(message, "end_time", run.end_time)
    return message


def run_from_pb(message: pb.JobRun) -> Run:
    """Return the run of a message; InternalError for one without a start."""
    start_time = time_from_pb(message, "start_time")
    if start_time is None:
        raise InternalError("a run has no start_time")
    plain: dict[str, Any] = {name: getattr(message, name) for name in _RUN}
    return Run(
        state=STATE.from_pb(message.state),
        start_time=start_time,
        end_time=time_from_pb(message, "end_time"),
        counts=dict(message.counts),
        **plain,
    )


def job_to_pb(status: JobStatus) -> pb.Job:
    """Return a job as a message."""
    plain: dict[str, Any] = {name: getattr(status, name) for name in _JOB}
    message = pb.Job(last_run=None if status.last_run is None else run_to_pb(status.last_run), **plain)
    set_time(message, "next_time", status.next_time)
    return message


def job_from_pb(message: pb.Job) -> JobStatus:
    """Return the job of a message."""
    return JobStatus(
        next_time=time_from_pb(message, "next_time"),
        last_run=run_from_pb(message.last_run) if message.HasField("last_run") else None,
        **{name: getattr(message, name) for name in _JOB},
    )


def parked_to_pb(work: Work) -> pb.ParkedThread:
    """Return a thread that was set aside as a message."""
    scope = work.owner.scope
    message = pb.ParkedThread(
        job=work.kind, agent_id=work.owner.agent_id, user_id=scope.user_id or "", chat_id=scope.chat_id or "",
        thread_id=work.thread_id, seq=work.seq, attempts=work.attempts, error=work.error,
    )  # fmt: skip
    set_time(message, "fail_time", work.due_time)
    return message


def parked_from_pb(message: pb.ParkedThread) -> ParkedThread:
    """Return the thread of a message."""
    plain: dict[str, Any] = {name: getattr(message, name) for name in _PARKED}
    return ParkedThread(fail_time=time_from_pb(message, "fail_time"), **plain)
