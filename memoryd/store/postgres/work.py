"""What the store answers about work in the background: the promises of `store.work`."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from memoryd.model.learnt import Proposal
from memoryd.model.scope import Owner
from memoryd.model.work import CounterName, Lease, Run, Work, WorkState
from memoryd.store import rows
from memoryd.store.postgres.connect import Connections
from memoryd.store.postgres.skew import Skew
from memoryd.store.postgres.statements import owner_key
from memoryd.store.postgres.work_writes import NO_DAY
from memoryd.store.work_rows import PROPOSAL_COLUMNS, RUN_COLUMNS, WORK_COLUMNS, proposal_of, run_of, work_of

__all__ = ["PostgresWork"]


class PostgresWork:
    """Work, runs, proposals, marks, leases and counters as rows."""

    def __init__(self, connections: Connections, skew: Skew) -> None:
        self._rows, self._skew = connections.rows, skew

    async def marks(self) -> dict[str, datetime]:
        found = await self._rows("SELECT name, time FROM marks")
        return {name: time.replace(tzinfo=UTC) for name, time in found}

    async def leases(self) -> dict[str, Lease]:
        [(now,)] = await self._rows("SELECT clock_timestamp()")
        self._skew.note(now)
        found = await self._rows("SELECT name, holder, until FROM leases")
        leases = (Lease(name, holder, until.replace(tzinfo=UTC)) for name, holder, until in found)
        return {lease.name: self._skew.told(lease) for lease in leases}

    async def counters(self) -> dict[CounterName, int]:
        found = await self._rows("SELECT name, day, value FROM counters")
        return {CounterName(name, None if day == NO_DAY else day): value for name, day, value in found}

    async def get(self, owner: Owner, kind: str, thread_id: str) -> Work | None:
        found = await self._rows(
            f"SELECT {WORK_COLUMNS} FROM work WHERE owner_id = %s AND kind = %s AND thread_id = %s",
            [owner_key(owner), kind, thread_id],
        )
        return work_of(found[0]) if found else None

    async def find(
        self,
        kind: str = "",
        *,
        states: Collection[WorkState],
        limit: int,
        due_by: datetime | None = None,
    ) -> list[Work]:
        conditions = ["state = ANY(%s)"]
        given: list[Any] = [[state.value for state in states]]
        if kind:
            conditions.append("kind = %s")
            given.append(kind)
        if due_by is not None:
            conditions.append("due_time <= %s")
            given.append(rows.naive(due_by))
        found = await self._rows(
            f"SELECT {WORK_COLUMNS} FROM work WHERE {' AND '.join(conditions)}"
            f" ORDER BY due_time, thread_id LIMIT {int(limit)}",
            given,
        )
        return list(map(work_of, found))

    async def counts(self) -> dict[tuple[str, WorkState], int]:
        found = await self._rows("SELECT kind, state, count(*) FROM work GROUP BY 1, 2")
        return {(kind, WorkState(state)): int(count) for kind, state, count in found}

    async def runs(self, *, job: str = "", limit: int, before: datetime | None = None, prefix: str = "") -> list[Run]:
        conditions = ["starts_with(id, %s)"]
        given: list[Any] = [prefix]
        if job:
            conditions.append("job = %s")
            given.append(job)
        if before is not None:
            conditions.append("start_time < %s")
            given.append(rows.naive(before))
        found = await self._rows(
            f"SELECT {RUN_COLUMNS} FROM runs WHERE {' AND '.join(conditions)}"
            f" ORDER BY start_time DESC, id LIMIT {int(limit)}",
            given,
        )
        return list(map(run_of, found))

    async def proposals(
        self,
        *,
        limit: int,
        agent_id: str = "",
        user_id: str = "",
        chat_id: str = "",
        prefix: str = "",
    ) -> list[Proposal]:
        asked = {"agent_id": agent_id, "user_id": user_id, "chat_id": chat_id}
        named = {name: value for name, value in asked.items() if value}
        where = " AND ".join(["starts_with(id, %s)", *(f"{name} = %s" for name in named)])
        found = await self._rows(
            f"SELECT {PROPOSAL_COLUMNS} FROM proposals WHERE {where} ORDER BY create_time, id LIMIT {int(limit)}",
            [prefix, *named.values()],
        )
        return list(map(proposal_of, found))

    async def proposal_count(self) -> int:
        return int((await self._rows("SELECT count(*) FROM proposals"))[0][0])
