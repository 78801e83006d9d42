"""What a store promises of work in the background."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from memoryd.model.learnt import Proposal
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

    async def get(self, owner: Owner, kind: str, thread_id: str) -> Work | None:
        """Return how far a kind of work has come in a thread; None if it never began."""
        ...

    async def find(
        self,
        kind: str = "",
        *,
        states: Collection[WorkState],
        limit: int,
        due_by: datetime | None = None,
    ) -> list[Work]:
        """Return at most limit pieces of work in these states, of all owners, the longest due first."""
        ...

    async def counts(self) -> dict[tuple[str, WorkState], int]:
        """Return how many pieces of work there are, by kind and state."""
        ...

    async def proposals(
        self,
        *,
        limit: int,
        agent_id: str = "",
        user_id: str = "",
        chat_id: str = "",
        prefix: str = "",
    ) -> list[Proposal]:
        """Return at most limit proposals, of all owners or of some, whose id begins so, the oldest first."""
        ...

    async def proposal_count(self) -> int:
        """Return how many proposals there are."""
        ...

    async def runs(self, *, job: str = "", limit: int, before: datetime | None = None, prefix: str = "") -> list[Run]:
        """Return at most limit runs, of a job or of all, before a time, whose id begins so, latest start first."""
        ...
