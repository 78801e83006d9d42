"""The part of the reference store that knows work in the background; it goes with `store.ram`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from memoryd.model.change import ChangeSet, Entry
from memoryd.model.scope import Owner
from memoryd.model.work import Run, Work, WorkState
from memoryd.store.work import MOST_RUNS

__all__ = ["RamWork"]


class RamWork:
    """Dictionaries of work and of runs."""

    _entries: dict[str, Entry]

    def __init__(self) -> None:
        self._work: dict[tuple[Owner, str, str], Work] = {}
        self._runs: dict[str, Run] = {}

    def _note_work(self, change: ChangeSet) -> None:
        for one in change.work:
            key = one.owner, one.kind, one.thread_id
            known = self._work.get(key)
            self._work[key] = one if known is None else replace(one, seq=max(one.seq, known.seq))
        talk = change.conversation
        gone = set() if talk is None else {(talk.owner, thread.id) for thread in talk.purge_threads}
        if gone or change.purge_owner is not None:
            self._work = {
                key: one
                for key, one in self._work.items()
                if (one.owner, one.thread_id) not in gone and one.owner != change.purge_owner
            }
        for run in change.runs:
            self._runs[run.id] = run
            of_job = sorted((one for one in self._runs.values() if one.job == run.job), key=_latest)
            for old in of_job[MOST_RUNS:]:
                del self._runs[old.id]

    async def work(self, owner: Owner, kind: str, thread_id: str) -> Work | None:
        return self._work.get((owner, kind, thread_id))

    async def work_due(self, kind: str, now: datetime, *, limit: int) -> list[Work]:
        waiting = await self.work_in([WorkState.WAITING], limit=len(self._work), kind=kind)
        return [one for one in waiting if one.due_time <= now][:limit]

    async def work_in(self, states: Collection[WorkState], *, limit: int, kind: str = "") -> list[Work]:
        found = [one for one in self._work.values() if one.state in states and kind in {"", one.kind}]
        return sorted(found, key=lambda one: (one.due_time, one.thread_id))[:limit]

    async def work_counts(self) -> dict[tuple[str, WorkState], int]:
        return dict(Counter((one.kind, one.state) for one in self._work.values()))

    async def owners_since(self, time: datetime, *, least: int) -> list[Owner]:
        memories = (entry.memory for entry in self._entries.values())
        counts = Counter(one.owner for one in memories if one.delete_time is None and one.create_time >= time)
        return sorted((owner for owner, count in counts.items() if count >= least), key=repr)

    async def runs(self, *, job: str = "", limit: int, before: datetime | None = None) -> list[Run]:
        found = (one for one in self._runs.values() if job in {"", one.job})
        return sorted((one for one in found if before is None or one.start_time < before), key=_latest)[:limit]

    async def run(self, run_id: str) -> Run | None:
        return self._runs.get(run_id)


def _latest(run: Run) -> tuple[float, str]:
    return -run.start_time.timestamp(), run.id
