"""What the DuckDB store answers about work in the background: the promises of `store.work`."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, TypeVar

from memoryd.model.learnt import Proposal
from memoryd.model.memory import Memory
from memoryd.model.query import STATEMENTS
from memoryd.model.reports import OwnerSizes
from memoryd.model.scope import Owner, Scope
from memoryd.model.times import from_us
from memoryd.model.work import CounterName, Lease, Run, RunState, Work, WorkState
from memoryd.store.duckdb import queries, rows
from memoryd.store.duckdb.marks import counters_of, leases_of, marks_of
from memoryd.store.duckdb.proposals import COLUMNS, proposal_of
from memoryd.store.duckdb.purges import sizes_of_owners
from memoryd.store.duckdb.readers import Readers
from memoryd.store.duckdb.work_writes import work_name

__all__ = ["WorkReads"]

T = TypeVar("T")
_WORK = "SELECT kind, agent_id, user_id, chat_id, thread_id, state, due_time, seq, details FROM work"
_RUNS = "SELECT id, job, state, start_time, details FROM runs"


def _work_of(row: Sequence[Any]) -> Work:
    kind, agent_id, user_id, chat_id, thread_id, state, due_time, seq, details = row
    kept = json.loads(details)
    return Work(
        kind=kind,
        owner=Owner(agent_id, Scope(user_id=user_id, chat_id=chat_id)),
        thread_id=thread_id,
        seq=int(seq),
        state=WorkState(state),
        due_time=rows.aware(due_time),
        attempts=kept["attempts"],
        error=kept["error"],
    )


def _run_of(row: Sequence[Any]) -> Run:
    run_id, job, state, start_time, details = row
    kept = json.loads(details)
    end_time = kept.pop("end_time")
    return Run(
        id=run_id,
        job=job,
        state=RunState(state),
        start_time=rows.aware(start_time),
        end_time=None if end_time is None else from_us(end_time),
        **kept,
    )


class WorkReads:
    """The part of the store that knows work in the background."""

    _readers: Readers

    async def _work_rows(self, sql: str, params: Sequence[Any], make: Callable[[Sequence[Any]], T]) -> list[T]:
        return await self._readers.read(lambda: [make(row) for row in self._readers.rows(sql, params)])

    async def marks(self) -> dict[str, datetime]:
        return await self._readers.read(lambda: marks_of(self._readers.cursor()))

    async def leases(self) -> dict[str, Lease]:
        return await self._readers.read(lambda: leases_of(self._readers.cursor()))

    async def counters(self) -> dict[CounterName, int]:
        return await self._readers.read(lambda: counters_of(self._readers.cursor()))

    async def work(self, owner: Owner, kind: str, thread_id: str) -> Work | None:
        found = await self._work_rows(f"{_WORK} WHERE name = ?", [work_name(owner, kind, thread_id)], _work_of)
        return found[0] if found else None

    async def work_due(self, kind: str, now: datetime, *, limit: int) -> list[Work]:
        return await self._work_rows(
            f"{_WORK} WHERE state = 'waiting' AND kind = ? AND due_time <= ? ORDER BY due_time, thread_id"
            f" LIMIT {int(limit)}",
            [kind, rows.naive(now)],
            _work_of,
        )

    async def work_in(self, states: Collection[WorkState], *, limit: int, kind: str = "") -> list[Work]:
        return await self._work_rows(
            f"{_WORK} WHERE state IN (SELECT unnest(?::VARCHAR[])) AND kind IN (?, if(? = '', kind, ?))"
            f" ORDER BY due_time, thread_id LIMIT {int(limit)}",
            [[state.value for state in states], kind, kind, kind],
            _work_of,
        )

    async def work_counts(self) -> dict[tuple[str, WorkState], int]:
        found = await self._work_rows("SELECT kind, state, count(*) FROM work GROUP BY ALL", [], tuple)
        return {(kind, WorkState(state)): int(count) for kind, state, count in found}

    async def live_since(self, after: datetime, until: datetime, *, limit: int) -> list[Memory]:
        live, params = queries.admitted(STATEMENTS, until)
        where = f"create_time > ? AND create_time <= ? AND {live}"
        window = [rows.naive(after), rows.naive(until), *params]
        first = f"SELECT create_time FROM memories WHERE {where} ORDER BY 1 LIMIT {int(limit)}"
        last = f"SELECT max(create_time) FROM ({first})"
        source = f"(SELECT * FROM memories WHERE {where} AND create_time <= ({last}))"
        select = queries.select_memories(source) + " ORDER BY m.create_time, m.id"
        return await self._work_rows(select, [*window, *window], rows.memory_of)

    async def owners_since(self, time: datetime, *, least: int) -> list[Owner]:
        found = await self._work_rows(
            "SELECT agent_id, user_id, chat_id FROM memories WHERE create_time >= ? AND delete_time IS NULL"
            f" GROUP BY ALL HAVING count(*) >= {int(least)}",
            [rows.naive(time)],
            lambda row: Owner(row[0], Scope(user_id=row[1], chat_id=row[2])),
        )
        return sorted(found, key=repr)

    async def sizes_of_owners(self, agent_id: str = "", *, limit: int) -> OwnerSizes:
        return await self._readers.read(sizes_of_owners, self._readers.rows, agent_id, limit)

    async def runs(self, *, job: str = "", limit: int, before: datetime | None = None) -> list[Run]:
        conditions: list[str] = ["true"]
        params: list[Any] = []
        if job:
            conditions.append("job = ?")
            params.append(job)
        if before is not None:
            conditions.append("start_time < ?")
            params.append(rows.naive(before))
        return await self._work_rows(
            f"{_RUNS} WHERE {' AND '.join(conditions)} ORDER BY start_time DESC, id LIMIT {int(limit)}", params, _run_of
        )

    async def run(self, run_id: str) -> Run | None:
        found = await self._work_rows(f"{_RUNS} WHERE id = ?", [run_id], _run_of)
        return found[0] if found else None

    async def proposals(
        self, *, limit: int, agent_id: str = "", user_id: str = "", chat_id: str = ""
    ) -> list[Proposal]:
        asked = {"agent_id": agent_id, "user_id": user_id, "chat_id": chat_id}
        named = {name: value for name, value in asked.items() if value}
        where = " AND ".join(["true", *(f"{name} = ?" for name in named)])
        return await self._work_rows(
            f"SELECT {COLUMNS} FROM proposals WHERE {where} ORDER BY create_time, id LIMIT {int(limit)}",
            list(named.values()),
            proposal_of,
        )

    async def proposals_like(self, prefix: str) -> list[Proposal]:
        return await self._work_rows(
            f"SELECT {COLUMNS} FROM proposals WHERE starts_with(id, ?) LIMIT 2", [prefix], proposal_of
        )

    async def proposal_count(self) -> int:
        return (await self._work_rows("SELECT count(*) FROM proposals", [], lambda row: int(row[0])))[0]
