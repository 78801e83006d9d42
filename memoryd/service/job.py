"""JobService: what the daemon does by itself, on the admin socket only."""

from __future__ import annotations

from typing import Protocol

from memoryd.domain.ports import Ports
from memoryd.learning.follow import retry_parked
from memoryd.model import limits
from memoryd.model.reports import JobStatus
from memoryd.model.validation import check_count, check_id
from memoryd.model.work import Run, WorkState
from memoryd.service.gate import Call
from memoryd.v1 import job_service_pb2 as pb
from memoryd.wire.job import job_to_pb, parked_to_pb, run_to_pb

__all__ = ["JobRunner", "JobService"]


class JobRunner(Protocol):
    """Who runs jobs."""

    async def status(self) -> list[JobStatus]:
        """Return every job, with when it runs next and how its last run went."""
        ...

    async def runs(self, *, job: str = "", limit: int) -> list[Run]:
        """Return the last runs, of one job or of all."""
        ...

    async def find(self, run_id: str) -> Run:
        """Return a run as it is now; NotFound."""
        ...

    async def start(self, name: str, *, dry_run: bool = False) -> Run:
        """Begin a run by call, or join the one that is under way; a dry run is over when this returns."""
        ...

    async def cancel(self, run_id: str) -> Run:
        """End a run."""
        ...


class JobService:
    """The RPCs of job_service.proto."""

    def __init__(self, ports: Ports, runner: JobRunner) -> None:
        self._ports, self._runner = ports, runner

    async def ListJobs(self, request: pb.ListJobsRequest, call: Call) -> pb.ListJobsResponse:  # noqa: ARG002  it asks for nothing
        return pb.ListJobsResponse(jobs=map(job_to_pb, await self._runner.status()))

    async def ListJobRuns(self, request: pb.ListJobRunsRequest, call: Call) -> pb.ListJobRunsResponse:  # noqa: ARG002  it is asked of the host
        runs = await self._runner.runs(job=request.job, limit=_size(request.page_size))
        return pb.ListJobRunsResponse(runs=map(run_to_pb, runs))

    async def GetJobRun(self, request: pb.GetJobRunRequest, call: Call) -> pb.GetJobRunResponse:  # noqa: ARG002  it is asked of the host
        return pb.GetJobRunResponse(run=run_to_pb(await self._runner.find(check_id(request.id, "id"))))

    async def RunJob(self, request: pb.RunJobRequest, call: Call) -> pb.RunJobResponse:  # noqa: ARG002  it is asked of the host
        return pb.RunJobResponse(run=run_to_pb(await self._runner.start(request.job, dry_run=request.dry_run)))

    async def CancelJobRun(self, request: pb.CancelJobRunRequest, call: Call) -> pb.CancelJobRunResponse:  # noqa: ARG002  it is asked of the host
        return pb.CancelJobRunResponse(run=run_to_pb(await self._runner.cancel(check_id(request.id, "id"))))

    async def ListParkedThreads(
        self,
        request: pb.ListParkedThreadsRequest,
        call: Call,  # noqa: ARG002  it is asked of the host
    ) -> pb.ListParkedThreadsResponse:
        found = await self._ports.store.work.find(states=[WorkState.PARKED], limit=_size(request.page_size))
        return pb.ListParkedThreadsResponse(threads=map(parked_to_pb, found))

    async def RetryParkedThreads(
        self, request: pb.RetryParkedThreadsRequest, call: Call
    ) -> pb.RetryParkedThreadsResponse:
        retried = await retry_parked(
            self._ports,
            now=call.now,
            thread_id=check_id(request.thread_id, "thread_id"),
            agent_id=check_id(request.agent_id, "agent_id"),
            user_id=check_id(request.scope.user_id, "scope.user_id"),
            chat_id=check_id(request.scope.chat_id, "scope.chat_id"),
        )
        return pb.RetryParkedThreadsResponse(retried_count=retried)


def _size(asked: int) -> int:
    return check_count(asked, "page_size", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
