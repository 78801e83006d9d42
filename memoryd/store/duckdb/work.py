"""What the DuckDB store answers about work in the background: the promises of `store.work`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, TypeVar

from memoryd.model.learnt import Proposal
from memoryd.model.scope import Owner
from memoryd.model.work import CounterName, Lease, Run, Work, WorkState
from memoryd.store import rows
from memoryd.store.duckdb.marks import counters_of, leases_of, marks_of
from memoryd.store.duckdb.readers import Readers
from memoryd.store.duckdb.work_writes import work_name
from memoryd.store.work_rows import PROPOSAL_COLUMNS, RUN_COLUMNS, WORK_COLUMNS, proposal_of, run_of, work_of

__all__ = ["DuckDBWork"]

T = TypeVar("T")
_WORK = f"SELECT {WORK_COLUMNS} FROM work"
_RUNS = f"SELECT {RUN_COLUMNS} FROM runs"


class DuckDBWork:
    """Work, runs, proposals, marks, leases and counters as rows."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def _work_rows(self, sql: str, params: Sequence[Any], make: Callable[[Sequence[Any]], T]) -> list[T]:
        return await self._readers.read(lambda: [make(row) for row in self._readers.rows(sql, params)])

    async def marks(self) -> dict[str, datetime]:
        return await self._readers.read(lambda: marks_of(self._readers.cursor()))

    async def leases(self) -> dict[str, Lease]:
        return await self._readers.read(lambda: leases_of(self._readers.cursor()))

    async def counters(self) -> dict[CounterName, int]:
        return await self._readers.read(lambda: counters_of(self._readers.cursor()))

    async def get(self, owner: Owner, kind: str, thread_id: str) -> Work | None:
        found = await self._work_rows(f"{_WORK} WHERE name = ?", [work_name(owner, kind, thread_id)], work_of)
        return found[0] if found else None

    async def find(
        self,
        kind: str = "",
        *,
        states: Collection[WorkState],
        limit: int,
        due_by: datetime | None = None,
    ) -> list[Work]:
        conditions = ["state IN (SELECT unnest(?::VARCHAR[]))"]
        params: list[Any] = [[state.value for state in states]]
        if kind:
            conditions.append("kind = ?")
            params.append(kind)
        if due_by is not None:
            conditions.append("due_time <= ?")
            params.append(rows.naive(due_by))
        return await self._work_rows(
            f"{_WORK} WHERE {' AND '.join(conditions)} ORDER BY due_time, thread_id LIMIT {int(limit)}",
            params,
            work_of,
        )

    async def counts(self) -> dict[tuple[str, WorkState], int]:
        found = await self._work_rows("SELECT kind, state, count(*) FROM work GROUP BY ALL", [], tuple)
        return {(kind, WorkState(state)): int(count) for kind, state, count in found}

    async def runs(self, *, job: str = "", limit: int, before: datetime | None = None, prefix: str = "") -> list[Run]:
        conditions = ["starts_with(id, ?)"]
        params: list[Any] = [prefix]
        if job:
            conditions.append("job = ?")
            params.append(job)
        if before is not None:
            conditions.append("start_time < ?")
            params.append(rows.naive(before))
        return await self._work_rows(
            f"{_RUNS} WHERE {' AND '.join(conditions)} ORDER BY start_time DESC, id LIMIT {int(limit)}", params, run_of
        )

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
        where = " AND ".join(["starts_with(id, ?)", *(f"{name} = ?" for name in named)])
        return await self._work_rows(
            f"SELECT {PROPOSAL_COLUMNS} FROM proposals WHERE {where} ORDER BY create_time, id LIMIT {int(limit)}",
            [prefix, *named.values()],
            proposal_of,
        )

    async def proposal_count(self) -> int:
        return (await self._work_rows("SELECT count(*) FROM proposals", [], lambda row: int(row[0])))[0]
