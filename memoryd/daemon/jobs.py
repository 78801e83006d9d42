"""
The work that the daemon does by itself or by call: one run at a time of each job, written down, and cancelled by call.

A daemon leases a job before it runs it, so that of several before one store one runs it. Every job may be run again at
any time: a lease that has ended early does no harm. A run that fails is tried again after a while, and after some
attempts when the job is next due.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from memoryd.daemon.config import Config
from memoryd.daemon.schedule import due_jobs, expressions_of, first_seen, misdated, next_time
from memoryd.domain.background import BackgroundWorker, message_of
from memoryd.domain.claims import take
from memoryd.domain.clock import CLOCK_SEEN
from memoryd.domain.ports import Ports
from memoryd.errors import Conflict, InvalidArgument, MemorydError, RunNotFound, Unavailable
from memoryd.model.call_context import CallContext, in_call
from memoryd.model.change import ChangeSet
from memoryd.model.measures import Event, Quantity
from memoryd.model.reports import JobStatus
from memoryd.model.validation import check_id
from memoryd.model.work import Lease, Run, RunState, WorkState
from memoryd.store.base import Store

__all__ = ["Job", "Jobs", "Progress", "lease", "look_at_clock"]

LEASE = timedelta(minutes=1)  # after a kill no one runs a job for so long
RENEW_S = 15.0  # before a lease ends, that of a long run is renewed
LOOK_FOR_STOP_S = 3.0  # so late is it noticed that another daemon was asked to stop a run
CLOCK_NOTED = timedelta(hours=1)  # so often is the time written down
LAST_RUNS = 20  # the last that was no dry run is shown
MOST_UNWRITTEN = 20  # runs that are told although the store has no room to note them
LEAST_OF_ID = 8  # characters that stand for a run
LOOK_S = 30.0  # so late may a job begin
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)  # before a failed run is tried again
MOST_ATTEMPTS = 5  # in a row; then the job waits for its next time

log = structlog.get_logger("memoryd.daemon")


class Progress:
    """How far a run is; a job tells it."""

    def __init__(self, now: datetime, *, dry_run: bool = False) -> None:
        """Begin at nothing."""
        self.now, self.dry_run = now, dry_run
        self.done_count = 0
        self.total_count = 0
        self.counts: Counter[str] = Counter()
        """What came of it so far, for a run that is cancelled; as far as the job tells."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job by its name."""

    name: str
    meaning: str
    run: Callable[[Progress], Awaitable[Mapping[str, int]]]
    """Does it, and returns what came of it; with `progress.dry_run` it only counts."""
    has_dry_run: bool = True


async def look_at_clock(ports: Ports, now: datetime, noted: datetime | None = None) -> None:
    """Write the time down now and then, if it is believed: the next start compares the clock with it."""
    believed = ports.shared.clock is not None and ports.shared.clock.look(now)
    if believed and (noted is None or abs(now - noted) >= CLOCK_NOTED):
        await ports.store.commits.write(ChangeSet(marks={CLOCK_SEEN: now}))


async def lease(name: str, holder: str, store: Store, now: datetime, *, ran: datetime | None) -> bool:
    """Take a job that ran last at a time (None: never); False if someone else runs it, or has run it since."""
    taken = Lease(name, holder, now + LEASE)
    try:
        return await take(taken, store, now, longest=2 * LEASE, marks_before={name: ran})
    except Unavailable:
        return True  # the disk may be full, and garbage collection makes room


class Jobs:
    """Runs jobs when they are due, and when someone asks for it."""

    def __init__(self, ports: Ports, config: Config, jobs: Mapping[str, Job], clock: Callable[[], datetime]) -> None:
        """Take the jobs by name."""
        self._ports, self._config, self._jobs, self._clock = ports, config, jobs, clock
        for name in jobs:
            ports.measures.count(Event.JOB_RUN, name, RunState.FAILED.value, number=0)  # so that the first shows
        self._running: dict[str, tuple[Run, Progress, asyncio.Task[Run]]] = {}
        self._beginning: set[str] = set()
        self._unwritten: deque[Run] = deque(maxlen=MOST_UNWRITTEN)
        """Runs that ended and could not be noted in the store."""
        self._tidied: datetime | None = None
        self._failed: dict[str, tuple[int, datetime]] = {}
        """How often a job has failed in a row, and when it is tried again."""

    # --- by the clock ---

    async def serve(self) -> None:
        """Run what is due until it is cancelled, those first that were missed while the daemon was down."""
        await BackgroundWorker(
            step=self.look, pause_s=LOOK_S, tell=lambda fault: log.error("schedule_failed", error=fault)
        ).serve(begins_with_pause=True)

    async def look(self) -> list[Run]:
        """Run what is due now, in order; return the runs."""
        ports, now = self._ports, self._clock()
        ran = await ports.store.work.marks()
        await look_at_clock(ports, now, ran.get(CLOCK_SEEN))
        if self._tidied is None or abs(now - self._tidied) >= LEASE:
            await self.tidy()
        new = {first_seen(name): now for name in expressions_of(self._config) if first_seen(name) not in ran}
        if not ports.is_behind(now):
            new |= misdated(ran, now)
        if new:
            await ports.store.commits.write(ChangeSet(marks=new))
            ran |= new
        done = []
        for name in due_jobs(self._config, ran, now):
            if name in self._jobs and self._clock() >= self._failed.get(name, (0, now))[1]:
                run = await self.run(name, trigger="schedule", ran=ran.get(name))
                done += [run] if run is not None else []
        return done

    async def begin(self, *, gc: bool) -> None:
        """Do what belongs to the start of the daemon: note what was lost, and collect garbage."""
        try:
            await self.tidy()
            if gc:
                await self.run("gc", trigger="start", ran=(await self._ports.store.work.marks()).get("gc"))
        except Exception as error:  # noqa: BLE001  the daemon serves all the same
            log.error("jobs_not_begun", error=type(error).__name__)  # noqa: TRY400  a trace may hold content

    async def tidy(self) -> None:
        """Note as lost what an earlier daemon was running when it ended."""
        self._tidied = now = self._clock()
        leases = await self._ports.store.work.leases()
        for run in await self._ports.store.work.runs(limit=1000):
            held = leases.get(run.job)
            if run.state is RunState.RUNNING and run.job not in self._running and (held is None or held.until <= now):
                await self._ports.store.commits.write(
                    ChangeSet(runs=(replace(run, state=RunState.LOST, end_time=now),)),
                )

    # --- by call ---

    @property
    def names(self) -> Sequence[str]:
        """What there is."""
        return tuple(self._jobs)

    def job(self, name: str) -> Job:
        """Return the job of a name; InvalidArgument names those there are."""
        if check_id(name, "job") not in self._jobs:
            why = "; for backup set backup.directory, and restart memoryd" if name == "backup" else ""
            raise InvalidArgument(f"job is {name!r}; it must be one of {', '.join(self._jobs)}{why}", field="job")
        return self._jobs[name]

    async def run(self, name: str, *, trigger: str, ran: datetime | None = None, dry_run: bool = False) -> Run | None:
        """Run a job to its end, and return the run; None if someone else runs it, or has run it since."""
        begun = await self._begin(name, trigger=trigger, ran=ran, dry_run=dry_run)
        return None if begun is None else await begun[1]

    async def start(self, name: str, *, dry_run: bool = False) -> Run:
        """Begin a run by call, or join the one that is under way; a dry run is over when this returns."""
        job = self.job(name)
        if dry_run and not job.has_dry_run:
            raise InvalidArgument(f"{name} has no dry run; it changes no memory", field="dry_run")
        if name in self._running:
            run = self._running[name][0]
            if run.dry_run != dry_run:
                raise Conflict(f"{'a dry run of ' if run.dry_run else ''}{name} runs now; wait for it", field="job")
            return self.now(run)
        ran = (await self._ports.store.work.marks()).get(name)
        begun = await self._begin(name, trigger="call", ran=ran, dry_run=dry_run)
        if begun is None:
            raise Conflict(f"{name} is leased to a run that goes on, or was killed within a minute", field="job")
        return await begun[1] if dry_run else begun[0]

    async def cancel(self, run_id: str) -> Run:
        """
        End a run: what it has done stays done, and the next run goes on.

        One that another daemon runs is asked to stop, which it does when it looks next.
        """
        latest = await self.find(run_id)
        task = next((task for run, _, task in self._running.values() if run.id == latest.id), None)
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task], timeout=1.0)
        elif latest.state is RunState.RUNNING:
            await self._ports.store.commits.write(ChangeSet(stop_runs=(latest.id,)))
        return await self.find(latest.id)

    async def find(self, run_id: str) -> Run:
        """Return a run as it is now, by its id or the beginning of it; RunNotFound."""
        found: dict[str, Run] = {}
        if len(run_id) >= LEAST_OF_ID:
            unwritten = [run for run, _, _ in self._running.values()] + list(self._unwritten)
            found = {run.id: run for run in unwritten if run.id.startswith(run_id)}
            found |= {run.id: run for run in await self._ports.store.work.runs(limit=2, prefix=run_id)}
        run = next(iter(found.values())) if len(found) == 1 else None
        if run is None:
            raise RunNotFound(f"there is no run {run_id}; see: memoryd jobs list", field="id")
        return self.now(run)

    def now(self, run: Run) -> Run:
        """Return a run with how far it is, or how it ended where that could not be noted."""
        ended = next((one for one in self._unwritten if one.id == run.id), None)
        if ended is not None:
            return ended
        running = self._running.get(run.job)
        if running is None or running[0].id != run.id:
            return run
        return replace(run, done_count=running[1].done_count, total_count=running[1].total_count)

    async def runs(self, *, job: str = "", limit: int, before: datetime | None = None) -> list[Run]:
        """Return the last runs, of one job or of all."""
        if job:
            self.job(job)
        return [self.now(run) for run in await self._ports.store.work.runs(job=job, limit=limit, before=before)]

    async def status(self) -> list[JobStatus]:
        """Return every job, with when it runs next and how its last run went."""
        store, now = self._ports.store, self._clock()
        noted, counts = await store.work.marks(), await store.work.counts()
        expressions = expressions_of(self._config)
        statuses = []
        for name, job in self._jobs.items():
            runs = await self.runs(job=name, limit=LAST_RUNS)
            last = [run for run in runs if not run.dry_run or run.state is RunState.RUNNING][:1]
            last_time = noted.get(name, noted.get(first_seen(name), now))
            statuses.append(
                JobStatus(
                    name=name,
                    meaning=job.meaning,
                    schedule=expressions.get(name, ""),
                    next_time=next_time(self._config, name, last_time) if name in expressions else None,
                    last_run=last[0] if last else None,
                    waiting_count=counts.get((name, WorkState.WAITING), 0),
                    parked_count=counts.get((name, WorkState.PARKED), 0),
                    attempts=self._failed.get(name, (0, now))[0],
                    has_dry_run=job.has_dry_run,
                )
            )
        return statuses

    async def stop(self) -> None:
        """Cancel what runs; it is noted, and the next run goes on."""
        tasks = [task for _, _, task in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- one run ---

    async def _begin(
        self, name: str, *, trigger: str, ran: datetime | None, dry_run: bool
    ) -> tuple[Run, asyncio.Task[Run]] | None:
        """Begin a run; None where one is under way, here or elsewhere."""
        if name in self._running or name in self._beginning:
            return None
        self._beginning.add(name)
        try:
            run_id = self._ports.new_id()
            if not dry_run and not await lease(name, run_id, self._ports.store, self._clock(), ran=ran):
                return None
            run = Run(
                id=run_id, job=name, state=RunState.RUNNING, start_time=self._clock(), trigger=trigger,
                dry_run=dry_run,
            )  # fmt: skip
            with contextlib.suppress(Unavailable):  # the disk may be full, and garbage collection makes room
                await self._ports.store.commits.write(ChangeSet(runs=(run,)))
            progress = Progress(run.start_time, dry_run=dry_run)
            task = asyncio.create_task(self._to_its_end(run, progress))
            self._running[name] = (run, progress, task)
        finally:
            self._beginning.discard(name)
        return run, task

    async def _to_its_end(self, run: Run, progress: Progress) -> Run:
        context = CallContext(time=run.start_time, call=secrets.token_hex(6), rpc=run.job, door="daemon")
        began = time.monotonic()
        beside = [asyncio.create_task(self._renew(run))]
        if self._ports.store.is_shared:
            beside.append(asyncio.create_task(self._stop_if_asked(run)))
        state, counts, error = RunState.DONE, {}, ""
        try:
            with in_call(context):
                counts = dict(await self._jobs[run.job].run(progress))
        except asyncio.CancelledError:
            state, counts = RunState.CANCELLED, dict(progress.counts)
        except Exception as fault:  # noqa: BLE001  the daemon serves all the same, and tries again later
            state, counts, error = RunState.FAILED, dict(progress.counts), message_of(fault)
        for task in beside:
            task.cancel()
        done = replace(
            run, state=state, end_time=self._clock(), done_count=progress.done_count,
            total_count=progress.total_count, counts=counts, error=error,
        )  # fmt: skip
        try:
            await self._write_down(done)
        except MemorydError as fault:  # the disk may be full: who waits for the run is told all the same
            self._unwritten.append(done)
            self._failed.setdefault(run.job, (0, self._clock() + FIRST_PAUSE))  # it stays due
            why = message_of(fault)
            log.error("job_not_noted", job=run.job, run=run.id, error=why)  # noqa: TRY400  a trace may hold content
        finally:
            del self._running[run.job]
        duration_s = round(time.monotonic() - began, 3)
        self._ports.measures.measure(Quantity.JOB, duration_s, run.job)
        self._ports.measures.count(Event.JOB_RUN, run.job, state.value)
        if state is RunState.FAILED:
            log.error("job_failed", job=run.job, error=error, run=run.id)
        else:
            log.info("job_done", job=run.job, state=state.value, counts=counts, duration_s=duration_s, run=run.id)
        return done

    async def _write_down(self, done: Run) -> None:
        """Note how a run went; a job that failed stays due until it has failed too often."""
        now = self._clock()
        attempts = self._failed.pop(done.job, (0, now))[0]
        tries_again = done.state is RunState.FAILED and attempts + 1 < MOST_ATTEMPTS
        if tries_again:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempts)
            self._failed[done.job] = (attempts + 1, now + pause)
        is_over = not done.dry_run and not tries_again and done.state is not RunState.CANCELLED
        marks = {done.job: done.start_time} if is_over else {}
        freed = (Lease(done.job, done.id, now),)
        await self._ports.store.commits.write(ChangeSet(marks=marks, freed_leases=freed, runs=(done,)))

    async def _stop_if_asked(self, run: Run) -> None:
        """Look whether the run was asked to stop at another daemon, until it was."""
        asked = False
        while not asked:
            await asyncio.sleep(LOOK_FOR_STOP_S)
            with contextlib.suppress(MemorydError):  # it is looked for again
                asked = any(one.stop_requested for one in await self._ports.store.work.runs(limit=1, prefix=run.id))
        self._running[run.job][2].cancel()

    async def _renew(self, run: Run) -> None:
        while not run.dry_run:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(MemorydError):  # the disk may be full, or the lease has ended and is another's
                now = self._clock()
                held = (await self._ports.store.work.leases()).get(run.job)
                is_free = held is None or held.until <= now  # it could not be taken when the run began
                renewed = Lease(run.job, run.id, now + LEASE)
                before = {run.job: held} if is_free else {}
                await self._ports.store.commits.write(ChangeSet(leases=(renewed,), leases_before=before))
