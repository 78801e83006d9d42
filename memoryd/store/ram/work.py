"""What the reference store answers about work in the background."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime

from memoryd.model.learnt import Proposal
from memoryd.model.scope import Owner
from memoryd.model.work import CounterName, Lease, Run, Work, WorkState
from memoryd.store.ram.state import RamState, latest_first

__all__ = ["RamWork"]


class RamWork:
    """Work, runs and proposals in dictionaries."""

    def __init__(self, state: RamState) -> None:
        self._state = state

    async def marks(self) -> dict[str, datetime]:
        return dict(self._state.marks)

    async def leases(self) -> dict[str, Lease]:
        return dict(self._state.leases)

    async def counters(self) -> dict[CounterName, int]:
        return dict(self._state.counters)

    async def get(self, owner: Owner, kind: str, thread_id: str) -> Work | None:
        return self._state.work.get((owner, kind, thread_id))

    async def find(
        self,
        kind: str = "",
        *,
        states: Collection[WorkState],
        limit: int,
        due_by: datetime | None = None,
    ) -> list[Work]:
        found = [
            work
            for work in self._state.work.values()
            if work.state in states and kind in {"", work.kind} and (due_by is None or work.due_time <= due_by)
        ]
        return sorted(found, key=lambda work: (work.due_time, work.thread_id))[:limit]

    async def counts(self) -> dict[tuple[str, WorkState], int]:
        return dict(Counter((work.kind, work.state) for work in self._state.work.values()))

    async def proposals(
        self,
        *,
        limit: int,
        agent_id: str = "",
        user_id: str = "",
        chat_id: str = "",
        prefix: str = "",
    ) -> list[Proposal]:
        proposals = (
            proposal
            for proposal in self._state.proposals.values()
            if agent_id in {"", proposal.agent_id}
            and user_id in {"", proposal.scope.user_id}
            and chat_id in {"", proposal.scope.chat_id}
            and proposal.id.startswith(prefix)
        )
        return sorted(proposals, key=lambda proposal: (proposal.create_time, proposal.id))[:limit]

    async def proposal_count(self) -> int:
        return len(self._state.proposals)

    async def runs(self, *, job: str = "", limit: int, before: datetime | None = None, prefix: str = "") -> list[Run]:
        runs = (run for run in self._state.runs.values() if job in {"", run.job} and run.id.startswith(prefix))
        return sorted((run for run in runs if before is None or run.start_time < before), key=latest_first)[:limit]
