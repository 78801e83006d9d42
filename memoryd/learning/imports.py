"""
Judges what imports have brought, once they are over, in the order of event times: of two that differ the later holds.

What waits says so itself, in the store; it is looked for at the start of a daemon, and while commits bring more.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from memoryd.domain.background import BackgroundWorker
from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.writing.session import WriteSession
from memoryd.learning.follow import Progress
from memoryd.learning.writing import daemon_call
from memoryd.model.call_context import in_call
from memoryd.model.change import ChangeSet
from memoryd.model.commits import Applied
from memoryd.model.grant import GrantUsage
from memoryd.model.memory import Memory, State
from memoryd.model.scope import Owner
from memoryd.model.work import Run, RunState
from memoryd.store.memories import NOT_RETIRED, Order, Vectors

__all__ = ["IMPORT_JOB", "ImportJudge"]

IMPORT_JOB = "imports"
UNJUDGED = replace(NOT_RETIRED, is_judged=False)
LOOK_S = 2.0
QUIET = timedelta(seconds=10)  # after the last item that came: an import is over then
LONGEST_WAIT = timedelta(minutes=5)  # for an import that does not end
A_PAGE = 2000  # memories that are read together
A_TURN = 25  # memories of one owner that are judged in one transaction


class ImportJudge:
    """Judges imported memories that wait."""

    def __init__(
        self,
        ports: Ports,
        clock: Callable[[], datetime],
        tell: Callable[[str], None],
        judged: Callable[[Iterable[Memory]], None] = lambda _: None,
    ) -> None:
        """
        Follow the commits of the store from here on; `tell` is told of what goes wrong.

        `judged` gets the memories that were judged and are live.
        """
        self._ports, self._clock, self._tell, self._judged = ports, clock, tell, judged
        self._turn = asyncio.Lock()  # the daemon's own look and a job may be at it at once
        self._may_wait = True
        """Whether anything may wait: at a start no one knows."""
        self._first: datetime | None = None
        self._last: datetime | None = None
        """When the first and the last one came of those that wait."""
        ports.store.commits.memories.follow(self._follow)

    def _follow(self, applied: Applied) -> None:
        if not all(entry.memory.judged for entry in applied.change.inserts):
            self._may_wait, self._last = True, self._clock()
            self._first = self._first or self._last

    async def serve(self) -> None:
        """Judge what waits until it is cancelled."""
        await BackgroundWorker(step=self.step, pause_s=LOOK_S, tell=self._tell).serve()

    async def step(self) -> None:
        """Judge what waits, as one run of the job, unless more is still coming."""
        if not self._may_wait or self._is_coming():
            return
        began = self._clock()
        counts = await self._judge_all(Counter())
        if not counts:
            return
        run = Run(
            id=self._ports.new_id(),
            job=IMPORT_JOB,
            state=RunState.DONE,
            start_time=began,
            end_time=self._clock(),
            trigger="memories",
            done_count=counts["judged"],
            total_count=counts["judged"],
            counts=dict(counts),
        )
        await self._ports.store.commits.write(ChangeSet(runs=(run,)))

    def _is_coming(self) -> bool:
        """Whether an import is under way, and not for too long."""
        if self._first is None or self._last is None:
            return False
        now = self._clock()
        return timedelta() <= now - self._last < QUIET and now - self._first < LONGEST_WAIT

    async def everything(self, progress: Progress) -> dict[str, int]:
        """Judge all that waits now; with dry_run only count it."""
        progress.total_count = await self._ports.store.memories.count(UNJUDGED)
        if progress.dry_run:
            return {"judged": progress.total_count}
        return dict(await self._judge_all(progress.counts, progress))

    async def _judge_all(self, counts: Counter[str], progress: Progress | None = None) -> Counter[str]:
        async with self._turn:
            self._may_wait, self._first = False, None
            try:
                while page := await self._ports.store.memories.scan(UNJUDGED, limit=A_PAGE, order=Order.HAPPENED):
                    await self._judge_page(page, counts, progress)
            except BaseException:
                self._may_wait = True
                raise
        return counts

    async def _judge_page(self, page: Sequence[Memory], counts: Counter[str], progress: Progress | None) -> None:
        by_owner: dict[Owner, list[Memory]] = {}
        for memory in page:
            by_owner.setdefault(memory.owner, []).append(memory)
        for owner, memories in by_owner.items():
            for n in range(0, len(memories), A_TURN):
                counts += await self._judge(owner, memories[n : n + A_TURN])
                if progress is not None:
                    progress.done_count = counts["judged"]
                    progress.total_count = max(progress.total_count, progress.done_count)

    async def _judge(self, owner: Owner, memories: Sequence[Memory]) -> Counter[str]:
        """Judge some memories of an owner, the earliest first, in one transaction; return what came of it."""
        ports, now = self._ports, self._clock()
        counts: Counter[str] = Counter()

        async def decide() -> Decision[list[Memory]]:
            counts.clear()
            entries = {
                entry.memory.id: entry
                for entry in await ports.store.memories.entries(owner, [one.id for one in memories], Vectors.TEXTS)
            }
            head = await ports.store.commits.memories.head(owner)
            session = WriteSession(ports, {owner: await ports.indexes.get(owner)}, now, heads=[head], used=GrantUsage())
            for memory_id in (one.id for one in memories if one.id in entries):
                entry = entries[memory_id]
                known = session.pending(entry.memory)
                counts["judged"] += 1
                if known.state_at(now) is not State.LIVE:
                    session.note(replace(known, judged=True))
                    continue
                is_comparable = entry.fingerprint == ports.embedder.fingerprint
                await session.settle(known, entry.vector if is_comparable else None)
                await asyncio.sleep(0)
            change = await session.change(None)
            updated = {update.memory.id: update.memory for update in change.updates}
            after = [updated[one] for one in entries if one in updated]
            counts["superseded"] += sum(memory.supersede_time is not None for memory in after)
            counts["contested"] += sum(bool(memory.contested_with) for memory in after)
            return Decision(change, answering([memory for memory in after if memory.supersede_time is None]))

        with in_call(daemon_call(owner, IMPORT_JOB, ports, now)):
            live: list[Memory] = await decide_and_commit([owner], decide, ports, now=now, grant_id="")
        self._judged(live)
        return counts
