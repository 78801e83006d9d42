"""What a store promises of work in the background; it goes with `store.base`."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from memoryd.model.learnt import Proposal
from memoryd.model.memory import Memory
from memoryd.model.scope import Owner
from memoryd.model.work import CounterName, Lease, Run, Work, WorkState

__all__ = ["MOST_RUNS", "WorkStore"]

MOST_RUNS = 200  # of one job that are kept


class WorkStore(Protocol):
    """Work of threads, runs of jobs, and what daemons note of work that is of no owner."""

    async def marks(self) -> dict[str, datetime]:
        """Return when things were done last, by name."""
        ...

    async def leases(self) -> dict[str, Lease]:
        """Return the leases that were taken and not given back, also those that have ended, by name."""
        ...

    async def counters(self) -> dict[CounterName, int]:
        """Return how far work in the background has come, and what days have used."""
        ...

    async def work(self, owner: Owner, kind: str, thread_id: str) -> Work | None:
        """Return how far a kind of work has come in a thread; None if it never began."""
        ...

    async def work_due(self, kind: str, now: datetime, *, limit: int) -> list[Work]:
        """Return at most limit pieces of work, of all owners, that wait and are due, the longest first."""
        ...

    async def work_in(self, states: Collection[WorkState], *, limit: int, kind: str = "") -> list[Work]:
        """Return at most limit pieces of work in these states, of all owners, the earliest due time first."""
        ...

    async def work_counts(self) -> dict[tuple[str, WorkState], int]:
        """Return how many pieces of work there are, by kind and state."""
        ...

    async def owners_since(self, time: datetime, *, least: int) -> list[Owner]:
        """Return the owners of whom at least so many memories that are not deleted were stored since a time."""
        ...

    async def live_since(self, after: datetime, until: datetime, *, limit: int) -> list[Memory]:
        """
        Return live statements, of all owners, created after a time and at the latest at another, oldest first.

        They are `limit` at most, and with the last one all of its time.
        """
        ...

    async def proposals(
        self, *, limit: int, agent_id: str = "", user_id: str = "", chat_id: str = ""
    ) -> list[Proposal]:
        """Return at most limit proposals, of all owners or of some, the oldest first."""
        ...

    async def proposals_like(self, prefix: str) -> list[Proposal]:
        """Return at most two proposals whose id begins so."""
        ...

    async def proposal_count(self) -> int:
        """Return how many proposals there are."""
        ...

    async def runs(self, *, job: str = "", limit: int, before: datetime | None = None) -> list[Run]:
        """Return at most limit runs, of one job or of all, that began before a time, latest start first."""
        ...

    async def run(self, run_id: str) -> Run | None:
        """Return a run; None if there is none."""
        ...
