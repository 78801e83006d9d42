"""The daemon's own learner: it follows the messages, reads threads when their time has come, and parks what fails."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from memoryd.domain.background import BackgroundWorker
from memoryd.domain.claims import claim_name, claimed
from memoryd.domain.clock import AHEAD, holds
from memoryd.domain.ports import Ports
from memoryd.errors import MemorydError
from memoryd.learning.backoff import backoff_s
from memoryd.learning.extract import NOTICED, at_once, extract_thread, extract_threads, notice, unnoticed, write_work
from memoryd.learning.extractor import Exchange, Extractor, Learnt, NotNow
from memoryd.model.change import ChangeSet
from memoryd.model.measures import Event
from memoryd.model.scope import Owner
from memoryd.model.work import EXTRACTION_JOB, LLM_EXTRACTION_JOB, Run, RunState, Work, WorkState

__all__ = ["Learner", "Progress", "retry_parked"]

LOOK_S = 5.0  # between two looks for threads whose time has come
FIRST_PAUSE_S, LONGEST_PAUSE_S = 30.0, 3600.0  # before a thread is tried again
MOST_WAITING = 10_000  # threads that one run takes
TOGETHER = {EXTRACTION_JOB: 4, LLM_EXTRACTION_JOB: 1}
"""Threads of one owner that are read together."""
BREATH_S = 0.002  # between two threads, for calls that came meanwhile


class Progress(Protocol):
    """How far a run is."""

    now: datetime
    dry_run: bool
    done_count: int
    total_count: int
    counts: Counter[str]


async def retry_parked(
    ports: Ports, *, now: datetime, thread_id: str = "", agent_id: str = "", user_id: str = "", chat_id: str = ""
) -> int:
    """Let threads be tried again that were parked, all or some; return how many."""
    found = [
        work
        for work in await ports.store.work.find(states=[WorkState.PARKED], limit=MOST_WAITING)
        if thread_id in {"", work.thread_id}
        and agent_id in {"", work.owner.agent_id}
        and user_id in {"", work.owner.scope.user_id}
        and chat_id in {"", work.owner.scope.chat_id}
    ]
    for work in found:
        again = replace(work, state=WorkState.WAITING, attempts=0, error="", due_time=now)
        await write_work(work, again, ports, now=now)
    return len(found)


def _key(work: Work) -> tuple[Owner, str]:
    return work.owner, work.thread_id


def _fault_of(error: Exception) -> str:
    """Return what went wrong and where, without a word of what was said: an error's message may quote it."""
    frames = [] if isinstance(error, MemorydError) else traceback.extract_tb(error.__traceback__)  # it says enough
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


class Nobody:
    """An extractor that finds nothing."""

    name = "nobody"

    async def extract(self, exchange: Exchange) -> list[Learnt]:  # noqa: ARG002  the form is that of extractors
        """Return nothing."""
        return []


class Learner:
    """Learns from what is said, thread by thread."""

    def __init__(
        self,
        ports: Ports,
        extractor: Extractor | None,
        clock: Callable[[], datetime],
        tell: Callable[[str], None],
        *,
        wait_s: float = 30.0,
        most_attempts: int = 5,
        kind: str = EXTRACTION_JOB,
    ) -> None:
        """Do nothing yet; `tell` is told, for the log, what went wrong. Without an extractor nothing is ever learnt."""
        self._ports, self._extractor, self._clock, self._tell = ports, extractor, clock, tell
        self._wait_s, self._most_attempts, self.kind = wait_s, most_attempts, kind
        self._not_before: datetime | None = None
        self._turn = asyncio.Lock()  # the daemon's own learning and a job may be at it at once
        self._reading_count = 0
        self._holder = ports.new_id()
        self.fault = ""
        """Why nothing can be learnt now; empty: it can."""

    @property
    def is_reading(self) -> bool:
        """Whether threads are being read now."""
        return self._reading_count > 0

    async def serve(self) -> None:
        """Learn until it is cancelled."""
        if self._extractor is not None:
            await BackgroundWorker(step=self._look, pause_s=LOOK_S, tell=self._note_fault).serve()

    async def _look(self) -> None:
        await self.step()
        self.fault = self.fault if self._is_waiting() else ""

    def _note_fault(self, fault: str) -> None:
        self.fault = fault
        self._tell(fault)

    async def step(self) -> int:
        """Note what is new, then read every thread whose time has come; return how many messages were read."""
        await self._notice(self._wait_s, self._clock())
        return await self.run()

    async def run(self, *, trigger: str = "messages") -> int:
        """Read every thread whose time has come, as one run of the job; return how many messages were read."""
        counts: Counter[str] = Counter()
        began = self._clock()
        tried: dict[object, int] = {}
        while not self._is_waiting():
            due = await self._ports.store.work.find(
                self.kind,
                states=[WorkState.WAITING],
                due_by=self._clock(),
                limit=MOST_WAITING,
            )
            due = [work for work in due if tried.get(_key(work)) != work.seq]  # what failed is due later
            if not due:
                break
            tried |= {_key(work): work.seq for work in due}
            counts += await self._read_all(due)
        if counts.total() > counts["elsewhere"]:
            done = Run(
                id=self._ports.new_id(),
                job=self.kind,
                state=RunState.DONE,
                start_time=began,
                end_time=self._clock(),
                trigger=trigger,
                done_count=counts["threads"],
                total_count=counts["threads"],
                counts=dict(counts),
            )
            await self._ports.store.commits.write(ChangeSet(runs=(done,)))
        return counts["messages"]

    async def everything(self, progress: Progress) -> dict[str, int]:
        """Read every thread that waits, due or not; with dry_run only count what would be learnt."""
        if self._extractor is None:
            return {}
        if progress.dry_run:
            return await self._counted(progress)
        await self._notice(0, progress.now)
        waiting = await self._ports.store.work.find(self.kind, states=[WorkState.WAITING], limit=MOST_WAITING)
        progress.total_count = len(waiting)
        if waiting and self._is_waiting():
            return {"put_off": len(waiting)}  # the language model is left alone, or has used up its day
        return dict(await self._read_all(waiting, progress))

    async def _notice(self, wait_s: float, now: datetime) -> None:
        """Note what was said; what comes while the last page is read is noted the next time, or reading never began."""
        async with self._turn:
            while await notice(self._ports, wait_s=wait_s, now=now, kind=self.kind) >= NOTICED:
                pass

    async def _read_all(self, works: Sequence[Work], progress: Progress | None = None) -> Counter[str]:
        """Read threads in their order, of each owner a page in turn, so that no one waits for one who says much."""
        self._reading_count += 1
        try:
            return await self._read_in_turn(works, progress)
        finally:
            self._reading_count -= 1

    async def _read_in_turn(self, works: Sequence[Work], progress: Progress | None) -> Counter[str]:
        counts: Counter[str] = Counter() if progress is None else progress.counts
        queues: dict[Owner, deque[Work]] = {}
        for work in works:
            queues.setdefault(work.owner, deque()).append(work)
        turns = deque(queues.values())
        while turns and not self._is_waiting():
            queue = turns.popleft()
            some = [queue.popleft() for _ in range(min(len(queue), TOGETHER[self.kind]))]
            async with claimed(
                claim_name(self.kind, some[0].owner), self._holder, self._ports.store, self._clock
            ) as is_mine:
                if not is_mine:  # another daemon reads the threads of that owner; what it leaves is due later
                    counts["elsewhere"] += len(some) + len(queue)
                    continue
                left = await self._read_pages(some, counts)
            queue.extendleft(reversed(left))
            counts["threads"] += len(some) - len(left)
            if progress is not None:
                progress.done_count += len(some) - len(left)
            if queue:
                turns.append(queue)
            await asyncio.sleep(BREATH_S)
        return counts

    async def _read_pages(self, works: Sequence[Work], counts: Counter[str]) -> list[Work]:
        """Read the next messages of some threads of one owner; return the work of those that go on at once."""
        together = len(works) > 1 and self._extractor is not None and not any(work.attempts for work in works)
        if together:
            with contextlib.suppress(Exception):  # then each is read alone, so that it fails for itself
                return await self._read_together(works, counts)
        left = [await self._read_page(work, counts) for work in works]
        return [work for work in left if work is not None]

    async def _read_together(self, works: Sequence[Work], counts: Counter[str]) -> list[Work]:
        async with self._turn:
            held = [await self._ports.store.work.get(work.owner, work.kind, work.thread_id) for work in works]
            ready = [work for work in held if work is not None and work.state is WorkState.WAITING]
            assert self._extractor is not None  # noqa: S101  the caller asked
            done, outcomes = await extract_threads(ready, self._extractor, self._ports, now=self._clock())
            counts += Counter({"messages": sum(extracted.message_count for extracted in done), **outcomes})
            self._count(outcomes)
            return [
                replace(work, seq=extracted.seq)
                for work, extracted in zip(ready, done, strict=True)
                if extracted.goes_on
            ]

    def _count(self, outcomes: Mapping[str, int]) -> None:
        for outcome, number in outcomes.items():
            self._ports.measures.count(Event.LEARNT, outcome, number=number)

    async def _read_page(self, work: Work, counts: Counter[str]) -> Work | None:
        """Read the next messages of a thread; return its work if it goes on at once."""
        async with self._turn:
            stored = await self._ports.store.work.get(work.owner, work.kind, work.thread_id)
            if self._extractor is None or stored is None or stored.state is not WorkState.WAITING:
                return None
            try:
                done, _ = await extract_thread(stored, self._extractor, self._ports, now=self._clock())
            except NotNow as error:
                self._wait(error)
                counts["put_off"] += 1
                await self._put_off(stored, error.reason, may_park=False)
                return None
            except Exception as error:  # noqa: BLE001  one thread that cannot be read keeps no other from it
                fault = _fault_of(error)
                self._tell(fault)
                counts["failed"] += 1
                return await self._after_failure(stored, fault, counts)
            counts += Counter({"messages": done.message_count, **done.outcomes})
            self._count(done.outcomes)
            return replace(stored, seq=done.seq) if done.goes_on else None  # the next page looks how it stands

    async def _after_failure(self, work: Work, error: str, counts: Counter[str]) -> Work | None:
        """
        Put a thread off that could not be read; return its work if it goes on after all.

        It has failed too often: if what comes after the message can be read, it is the message, which is left out.
        """
        if work.attempts + 1 >= self._most_attempts and at_once(work) == 1 and self._extractor is not None:
            with contextlib.suppress(Exception):
                done, _ = await extract_thread(work, self._extractor, self._ports, now=self._clock(), skips=True)
                counts += Counter({"messages": done.message_count, "skipped": 1, **done.outcomes})
                return await self._ports.store.work.get(work.owner, work.kind, work.thread_id)
        with contextlib.suppress(Exception):  # the store may be what fails: then it is tried again anyway
            await self._put_off(work, error)
        return None

    async def _counted(self, progress: Progress) -> dict[str, int]:
        """Return what would be learnt; of what a language model would read only how much there is."""
        counts: Counter[str] = Counter()
        waiting = await self._ports.store.work.find(self.kind, states=[WorkState.WAITING], limit=MOST_WAITING)
        works = {_key(work): work for work in waiting}
        for work in await unnoticed(self._ports.store, now=progress.now, kind=self.kind):
            works.setdefault(_key(work), work)
        progress.total_count = len(works)
        for work in works.values():
            counts["threads"] += 1
            current: Work | None = work
            while current is not None and self._extractor is not None:
                asks = self._extractor if self.kind == EXTRACTION_JOB else Nobody()
                done, facts = await extract_thread(current, asks, self._ports, now=progress.now, dry_run=True)
                counts += Counter({"messages": done.message_count, "facts": len(facts)})
                current = replace(current, seq=done.seq) if done.goes_on else None
                await asyncio.sleep(BREATH_S)
            progress.done_count += 1
        return dict(counts)

    def _is_waiting(self) -> bool:
        """Whether the extractor can read nothing now."""
        return holds(self._not_before, self._clock(), AHEAD)

    def _wait(self, error: NotNow) -> None:
        """Leave the extractor alone for as long as it says."""
        self.fault = error.reason
        self._tell(error.reason)
        self._not_before = self._clock() + timedelta(seconds=error.for_s or FIRST_PAUSE_S)

    async def _put_off(self, work: Work, error: str, *, may_park: bool = True) -> None:
        attempts = work.attempts + 1
        parked = may_park and attempts >= self._most_attempts
        pause_s = backoff_s(attempts, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)
        later = replace(
            work,
            attempts=attempts,
            error=error,
            state=WorkState.PARKED if parked else WorkState.WAITING,
            due_time=self._clock() + timedelta(seconds=0 if parked else pause_s),
        )
        await write_work(work, later, self._ports, now=self._clock())
