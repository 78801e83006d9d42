"""The part of the reference store that knows work in the background; it goes with `store.ram`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from memoryd.model.change import PURGE, ChangeSet, Entry
from memoryd.model.learnt import Proposal
from memoryd.model.memory import Memory
from memoryd.model.query import STATEMENTS
from memoryd.model.scope import Owner
from memoryd.model.work import CounterName, Lease, Run, Work, WorkState
from memoryd.store.work import MOST_RUNS

__all__ = ["RamWork"]


class RamWork:
    """Dictionaries of work and of runs."""

    _entries: dict[str, Entry]

    def __init__(self) -> None:
        self._work: dict[tuple[Owner, str, str], Work] = {}
        self._runs: dict[str, Run] = {}
        self._proposals: dict[str, Proposal] = {}
        self._marks: dict[str, datetime] = {}
        self._leases: dict[str, Lease] = {}
        self._counters: dict[CounterName, int] = {}

    def _note_work(self, change: ChangeSet) -> None:
        self._note_marks(change)
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
        self._note_proposals(change)
        for run in change.runs:
            self._runs[run.id] = run
            of_job = sorted((one for one in self._runs.values() if one.job == run.job), key=_latest)
            for old in of_job[MOST_RUNS:]:
                del self._runs[old.id]

    def _note_marks(self, change: ChangeSet) -> None:
        marks = dict(change.marks)
        if PURGE in marks and PURGE in self._marks:
            marks[PURGE] = max(marks[PURGE], self._marks[PURGE] + timedelta(microseconds=1))
        self._marks.update(marks)
        for lease in change.freed_leases:
            if lease.name in self._leases and self._leases[lease.name].holder == lease.holder:
                del self._leases[lease.name]
        self._leases.update({lease.name: lease for lease in change.leases})
        for name in change.forget_counters:
            self._counters.pop(name, None)
        self._counters.update(change.counters)

    async def marks(self) -> dict[str, datetime]:
        return dict(self._marks)

    async def leases(self) -> dict[str, Lease]:
        return dict(self._leases)

    async def counters(self) -> dict[CounterName, int]:
        return dict(self._counters)

    def _note_proposals(self, change: ChangeSet) -> None:
        talk = change.conversation
        threads = set() if talk is None else {(talk.owner, thread.id) for thread in talk.purge_threads}
        messages = (
            set()
            if talk is None
            else {(message.owner, message.thread_id, message.id) for message in talk.purge_messages}
        )
        self._proposals |= {one.id: one for one in change.proposals}
        gone = {one.id for one in change.decided}
        for one in self._proposals.values():
            named = {(one.owner, one.thread_id, message_id) for message_id in one.message_ids}
            said = (one.owner, one.thread_id) in threads or not messages.isdisjoint(named)
            if said or one.owner == change.purge_owner:
                gone.add(one.id)
        for one_id in gone:
            self._proposals.pop(one_id, None)

    async def proposals(
        self, *, limit: int, agent_id: str = "", user_id: str = "", chat_id: str = ""
    ) -> list[Proposal]:
        found = (
            one
            for one in self._proposals.values()
            if agent_id in {"", one.agent_id}
            and user_id in {"", one.scope.user_id}
            and chat_id in {"", one.scope.chat_id}
        )
        return sorted(found, key=lambda one: (one.create_time, one.id))[:limit]

    async def proposals_like(self, prefix: str) -> list[Proposal]:
        return [one for one in self._proposals.values() if one.id.startswith(prefix)][:2]

    async def proposal_count(self) -> int:
        return len(self._proposals)

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

    async def live_since(self, after: datetime, until: datetime, *, limit: int) -> list[Memory]:
        live = (entry.memory for entry in self._entries.values() if STATEMENTS.admits(entry.memory, until))
        since = [one for one in live if after < one.create_time <= until]
        found = sorted(since, key=lambda one: (one.create_time, one.id))
        return [one for one in found if one.create_time <= found[:limit][-1].create_time]

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
