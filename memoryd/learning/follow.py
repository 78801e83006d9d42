"""The daemon's own learner: it follows the messages, reads threads when their time has come, and parks what fails."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from memoryd.domain.ports import Ports
from memoryd.learning.extract import extract_thread, notice
from memoryd.learning.extractor import Extractor, NotNow
from memoryd.model.change import ChangeSet
from memoryd.model.work import EXTRACTION_JOB, Run, RunState, Work, WorkState

__all__ = ["Learner", "Told", "retry_parked"]

LOOK_S = 5.0  # between two looks for threads whose time has come
THREADS = 16  # that are taken at once
FIRST_PAUSE_S, LONGEST_PAUSE_S = 30.0, 3600.0  # before a thread is tried again
MOST_WAITING = 10_000  # threads that one run takes
BREATH_S = 0.002  # between two threads, for calls that came meanwhile


class Told(Protocol):
    """How far a run is."""

    now: datetime
    dry_run: bool
    done_count: int
    total_count: int


async def retry_parked(
    ports: Ports, *, now: datetime, thread_id: str = "", agent_id: str = "", user_id: str = "", chat_id: str = ""
) -> int:
    """Let threads be tried again that were parked, all or some; return how many."""
    found = [
        work
        for work in await ports.store.work_in([WorkState.PARKED], limit=MOST_WAITING)
        if thread_id in {"", work.thread_id}
        and agent_id in {"", work.owner.agent_id}
        and user_id in {"", work.owner.scope.user_id}
        and chat_id in {"", work.owner.scope.chat_id}
    ]
    for work in found:
        again = replace(work, state=WorkState.WAITING, attempts=0, error="", due_time=now)
        await ports.store.commit(ChangeSet(work=(again,)))
    return len(found)


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
        self.fault = ""
        """Why nothing can be learnt now; empty: it can."""

    @property
    def name(self) -> str:
        """The extractor."""
        return "none" if self._extractor is None else self._extractor.name

    async def serve(self) -> None:
        """Learn until it is cancelled."""
        while self._extractor is not None:
            try:
                await self.step()
                self.fault = self.fault if self._is_waiting() else ""
            except Exception as error:  # noqa: BLE001  the store may be busy or full now; the next look comes soon
                self.fault = type(error).__name__
                self._tell(self.fault)
            await asyncio.sleep(LOOK_S)

    async def step(self) -> int:
        """Note what is new, then read every thread whose time has come; return how many messages were read."""
        looked = 1
        while looked:
            looked = await notice(self._ports, wait_s=self._wait_s, now=self._clock(), kind=self.kind)
        return await self.run()

    async def run(self, *, trigger: str = "messages") -> int:
        """Read every thread whose time has come, as one run of the job; return how many messages were read."""
        counts: Counter[str] = Counter()
        began = self._clock()
        while not self._is_waiting() and (
            due := await self._ports.store.work_due(self.kind, self._clock(), limit=THREADS)
        ):
            for work in due:
                if self._is_waiting():
                    break
                counts += await self.read(work)
                await asyncio.sleep(BREATH_S)
        if counts:
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
            await self._ports.store.commit(ChangeSet(runs=(done,)))
        return counts["messages"]

    async def everything(self, progress: Told) -> dict[str, int]:
        """Read every thread that waits, due or not; with dry_run only count what would be learnt."""
        counts: Counter[str] = Counter()
        looked = 1
        while looked and not progress.dry_run:
            looked = await notice(self._ports, wait_s=0, now=progress.now, kind=self.kind)
        waiting = await self._ports.store.work_in([WorkState.WAITING], limit=MOST_WAITING, kind=self.kind)
        progress.total_count = len(waiting)
        for work in waiting:
            if self._is_waiting():
                break
            if not progress.dry_run:
                counts += await self.read(work)
            elif self._extractor is not None:
                done, found = await extract_thread(work, self._extractor, self._ports, now=progress.now, dry_run=True)
                counts += Counter({"threads": 1, "messages": done.message_count, "facts": len(found)})
            progress.done_count += 1
            await asyncio.sleep(BREATH_S)
        return dict(counts)

    async def read(self, work: Work) -> Counter[str]:
        """Read one thread to its end; what fails is tried again later, and parked when it has failed too often."""
        counts: Counter[str] = Counter(threads=1)
        if self._extractor is None:
            return counts
        held: Work | None = work
        try:
            while held is not None:
                done, _ = await extract_thread(held, self._extractor, self._ports, now=self._clock())
                counts += Counter({"messages": done.message_count, **done.outcomes})
                if not done.goes_on:
                    break
                await asyncio.sleep(BREATH_S)
                held = await self._ports.store.work(work.owner, work.kind, work.thread_id)
        except NotNow as error:
            self._wait(error)
            counts["put_off"] += 1
            await self._put_off(held or work, error.reason, may_park=False)
        except Exception as error:  # noqa: BLE001  one thread that cannot be read keeps no other from it
            self._tell(type(error).__name__)
            counts["failed"] += 1
            with contextlib.suppress(Exception):  # the store may be what fails: then it is tried again anyway
                await self._put_off(held or work, type(error).__name__)
        return counts

    def _is_waiting(self) -> bool:
        """Whether the extractor can read nothing now; a time too far ahead comes from a clock that was wrong."""
        until, now = self._not_before, self._clock()
        return until is not None and now < until <= now + timedelta(days=1)

    def _wait(self, error: NotNow) -> None:
        """Leave the extractor alone for as long as it says."""
        self.fault = error.reason
        self._tell(error.reason)
        self._not_before = self._clock() + timedelta(seconds=error.for_s or FIRST_PAUSE_S)

    async def _put_off(self, work: Work, error: str, *, may_park: bool = True) -> None:
        attempts = work.attempts + 1
        parked = may_park and attempts >= self._most_attempts
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(attempts - 1, 10))
        later = replace(
            work,
            attempts=attempts,
            error=error,
            state=WorkState.PARKED if parked else WorkState.WAITING,
            due_time=self._clock() + timedelta(seconds=0 if parked else pause_s),
        )
        await self._ports.store.commit(ChangeSet(work=(later,)))
