"""JobService, as values; see calls.py."""

from __future__ import annotations

from typing import Any

from memory_client.calls import Call, build, count
from memoryd.model.reports import JobStatus, ParkedThread
from memoryd.model.work import Run
from memoryd.v1 import job_service_pb2 as pb
from memoryd.v1 import memory_pb2
from memoryd.wire.job import job_from_pb, parked_from_pb, run_from_pb


def _call(method: str, request: Any, response: Any, parse: Any) -> Call[Any]:
    return Call("JobService", method, request, response, parse)


def jobs() -> Call[list[JobStatus]]:
    """ListJobs."""
    return _call("ListJobs", pb.ListJobsRequest(), pb.ListJobsResponse, lambda answer: [*map(job_from_pb, answer.jobs)])


def job_runs(job: str, page_size: int) -> Call[list[Run]]:
    """ListJobRuns."""
    request = build(lambda: pb.ListJobRunsRequest(job=job, page_size=count(page_size, "page_size")))
    return _call("ListJobRuns", request, pb.ListJobRunsResponse, lambda answer: [*map(run_from_pb, answer.runs)])


def job_run(run_id: str) -> Call[Run]:
    """GetJobRun."""
    request = build(lambda: pb.GetJobRunRequest(id=run_id))
    return _call("GetJobRun", request, pb.GetJobRunResponse, lambda answer: run_from_pb(answer.run))


def run_job(job: str, *, dry_run: bool) -> Call[Run]:
    """RunJob."""
    request = build(lambda: pb.RunJobRequest(job=job, dry_run=dry_run))
    return _call("RunJob", request, pb.RunJobResponse, lambda answer: run_from_pb(answer.run))


def cancel_job_run(run_id: str) -> Call[Run]:
    """CancelJobRun."""
    request = build(lambda: pb.CancelJobRunRequest(id=run_id))
    return _call("CancelJobRun", request, pb.CancelJobRunResponse, lambda answer: run_from_pb(answer.run))


def parked_threads(page_size: int) -> Call[list[ParkedThread]]:
    """ListParkedThreads."""
    request = build(lambda: pb.ListParkedThreadsRequest(page_size=count(page_size, "page_size")))
    return _call(
        "ListParkedThreads",
        request,
        pb.ListParkedThreadsResponse,
        lambda answer: [*map(parked_from_pb, answer.threads)],
    )


def retry_parked_threads(thread_id: str, agent_id: str, user_id: str, chat_id: str) -> Call[int]:
    """RetryParkedThreads."""
    scope = memory_pb2.Scope(user_id=user_id, chat_id=chat_id)
    request = build(lambda: pb.RetryParkedThreadsRequest(thread_id=thread_id, agent_id=agent_id, scope=scope))
    return _call("RetryParkedThreads", request, pb.RetryParkedThreadsResponse, lambda answer: int(answer.retried_count))
