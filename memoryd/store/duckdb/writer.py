"""
The one thread that writes.

Change sets queue; it takes what is there into one transaction, commits, notes the number in the side file, and hands
the result to the event loop. If a joint transaction fails it is rolled back and each change set is tried alone, so that
only the guilty one errs. No change set can end the thread; a database that DuckDB declares dead ends the daemon.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from typing import TypeVar

import duckdb

from memoryd.errors import Contended, LimitExceeded, MemorydError, OutcomeUnknown, StoreDamaged, Unavailable
from memoryd.model.call_context import CallContext, Journal, current_call
from memoryd.model.change import ChangeSet
from memoryd.model.commits import Head, Recalled
from memoryd.model.measures import NO_MEASURES, Measures, Quantity
from memoryd.model.scope import Owner
from memoryd.store import rows
from memoryd.store.base import Spool
from memoryd.store.duckdb.changes import add_recalls, write
from memoryd.store.duckdb.checkpoints import IDLE_WAL_BYTES, Checkpoints
from memoryd.store.duckdb.damage import damage_of
from memoryd.store.duckdb.opening import Opened
from memoryd.store.duckdb.purges import no_purge, record_purge
from memoryd.store.duckdb.space import FreeSpace
from memoryd.store.duckdb.usage import UsageChanges, UsageCounts, counted_on, totals
from memoryd.store.duckdb.vectors import VectorColumns
from memoryd.store.ledger import PurgeLedger
from memoryd.store.notes import searched_notes
from memoryd.store.recent import Heads, RecentChanges

__all__ = ["Writer"]

MOST_TOGETHER = 256  # change sets in one transaction
UNREADABLE = (
    "part of the database cannot be read, and trying again does not help; the operator finds more with: memoryd status"
)
IDLE_S = 5.0  # so long without a write, and the log is folded in

T = TypeVar("T")


@dataclass(slots=True)
class _Job:
    """The change sets of one commit, or a function of the connection that runs between transactions."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]
    changes: Sequence[ChangeSet] = ()
    run: Callable[[duckdb.DuckDBPyConnection], object] | None = None
    call_context: CallContext | None = None


class Writer:
    """Owns the connection that writes."""

    def __init__(
        self,
        opened: Opened,
        *,
        min_free_bytes: int,
        on_fatal: Callable[[str], None],
        journal: Journal | None = None,
        ledger: PurgeLedger | None = None,
        spool: Spool | None = None,
        measures: Measures = NO_MEASURES,
    ) -> None:
        """
        Start the thread. Below min_free_bytes of free space, inserts are refused.

        With a spool the log is kept for who ships it, when it is folded in.
        """
        self._opened = opened
        self._con = opened.connection
        self._seq = opened.commit_seq
        self.space = FreeSpace(opened.path, min_free_bytes)
        self.space.keep_reserve()
        self.damage = ""
        """What is damaged of the file, as far as anybody has seen; empty: nothing."""
        self.ended_by_damage = False
        self._newest = opened.connection.execute("SELECT newest_create_time FROM commits").fetchall()[0][0]
        newest = None if self._newest is None else self._newest.replace(tzinfo=UTC)
        self._heads = Heads(Head(opened.commit_seq, newest))  # of this thread
        self.recent = RecentChanges(Head(opened.commit_seq, newest))
        """What was announced of late: it changes on the event loop alone, together with those who follow."""
        self.usage = UsageCounts(totals(opened.connection))
        """What came through each grant; it changes on the event loop alone."""
        self._counting: dict[date, asyncio.Future[None]] = {}
        self.recent_episodes = RecentChanges(Head(opened.commit_seq))  # the same of messages
        self.recent_notes = RecentChanges(Head(opened.commit_seq))  # and of notes
        self.vectors = VectorColumns(opened.connection)
        self.message_vectors = VectorColumns(opened.connection, "message_vectors")
        self._on_fatal = on_fatal
        self._journal, self._ledger = journal, ledger
        self.checkpoints, self._measures = Checkpoints(opened, self.space, spool, measures), measures
        self._fatal = ""
        self._closed = False
        self._ending = False  # the thread has seen that it is to end
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="store-writer", daemon=True)
        self._thread.start()

    @property
    def commit_seq(self) -> int:
        """The number of the last change set."""
        return self._seq

    @property
    def waiting(self) -> int:
        """How many changes wait for the thread."""
        return self._jobs.qsize()

    async def commit(self, changes: Sequence[ChangeSet]) -> None:
        """Queue change sets and wait for them; see Commits.write."""
        await self._submit(changes=changes)

    async def run(self, function: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """Run a function between transactions, and return what it returns."""
        results: list[T] = []
        await self._submit(run=lambda con: results.append(function(con)))
        return results[0]

    async def count_day(self, day: date) -> None:
        """Let `usage` know what was created on a day; who asks meanwhile waits for the same count."""
        if day not in self._counting:
            self._counting[day] = asyncio.ensure_future(self._count_day(day))
            self._counting[day].add_done_callback(lambda _: self._counting.pop(day))
        await asyncio.shield(self._counting[day])

    async def _count_day(self, day: date) -> None:
        loop = asyncio.get_running_loop()

        def count(con: duckdb.DuckDBPyConnection) -> None:
            loop.call_soon_threadsafe(self.usage.begin, day, *counted_on(con, day))  # in the order of the commits

        await self._submit(run=count)

    async def _submit(
        self,
        *,
        changes: Sequence[ChangeSet] = (),
        run: Callable[[duckdb.DuckDBPyConnection], object] | None = None,
    ) -> None:
        if self._closed:
            raise Unavailable("the daemon is shutting down; nothing was written")
        loop = asyncio.get_running_loop()
        job = _Job(loop, loop.create_future(), changes, run, current_call())
        self._jobs.put(job)
        await asyncio.shield(job.future)

    def rebind(self) -> None:
        """Go on with the connection that the database has now; called in this thread."""
        self._con = self._opened.connection
        self.checkpoints.attach()

    def close(self) -> None:
        """Finish what is queued, fold the log in, end the thread."""
        self._closed = True
        self._jobs.put(None)
        self._thread.join()

    # --- the thread ---

    def _work(self) -> None:
        try:
            self._take_jobs()
        except BaseException as error:  # noqa: BLE001  no one may wait for a thread that has ended
            self.fail(type(error).__name__)
            while not self._ending:
                job = self._jobs.get()
                if job is None:
                    return
                self._refuse([job], self._ended())

    def fail(self, fault: str, *, damaged: bool = False) -> None:
        """Give the database up; called in this thread."""
        self.ended_by_damage = damaged
        self._fatal = fault
        self._on_fatal(fault)

    def _ended(self) -> MemorydError:
        """Return why nothing is written any more; callers learn no path."""
        if self.ended_by_damage:
            return StoreDamaged(UNREADABLE)
        return Unavailable(f"the store has failed ({self._fatal}); memoryd is restarting")

    @staticmethod
    def _refuse(jobs: Sequence[_Job], error: Exception) -> None:
        for job in jobs:
            job.loop.call_soon_threadsafe(_finish, job, error)

    def _take_jobs(self) -> None:
        idle_at: float | None = None  # when no one has written for so long that the log is folded in
        while True:
            if idle_at is not None and time.monotonic() >= idle_at:
                self._look_after_files()
                idle_at = None
            try:
                job = self._jobs.get(timeout=None if idle_at is None else max(0.0, idle_at - time.monotonic()))
            except queue.Empty:
                continue
            jobs: list[_Job] = []
            while job is not None:
                jobs.append(job)
                if len(jobs) == MOST_TOGETHER or self._jobs.empty():
                    break
                job = self._jobs.get()
            self._ending = job is None
            try:
                self._do(jobs)
            except BaseException:
                self._refuse(jobs, OutcomeUnknown("the store has failed; whether this was written is not known"))
                raise
            if any(done.changes for done in jobs):
                idle_at = time.monotonic() + IDLE_S
            if job is None:
                self.checkpoints.end()
                self._fold()
                self.checkpoints.keep_log()
                return

    def _look_after_files(self) -> None:
        self._fold(least_bytes=IDLE_WAL_BYTES)
        with contextlib.suppress(OSError):  # a file system that does not answer; a write will tell
            self.space.keep_reserve()

    def _do(self, jobs: Sequence[_Job]) -> None:
        commits = [job for job in jobs if job.run is None]
        if commits:
            self._commit_jobs(commits)
        for job in jobs:
            if job.run is None:
                continue
            error = self._attempt(job.run)
            job.loop.call_soon_threadsafe(_finish, job, error)

    def _commit_jobs(self, jobs: Sequence[_Job]) -> None:
        jobs = self._in_time(jobs)
        if not jobs:
            return
        first = self._seq + 1
        usage: list[UsageChanges] = []
        began = time.perf_counter()
        error = self._attempt(lambda _: usage.append(self._transact([(job.changes, job.call_context) for job in jobs])))
        self._measures.measure(Quantity.COMMIT, time.perf_counter() - began)
        self._measures.measure(Quantity.BATCH, sum(len(job.changes) for job in jobs))
        if error is None:
            try:
                self._opened.watermark.advance(self._seq)
            except OSError as fault:  # it is committed, so it is acknowledged; but nothing more is promised
                self.fail(f"side file: {fault.strerror}")
            is_due = self.checkpoints.are_due(self._seq)  # first, so that its time is before the answer
            jobs[0].loop.call_soon_threadsafe(self._acknowledge, list(jobs), first, usage[0])
            if is_due:
                self._fold()
        elif len(jobs) == 1 or self._fatal:
            self._refuse(jobs, error)
        else:
            for job in jobs:
                self._commit_jobs([job])

    def _in_time(self, jobs: Sequence[_Job]) -> list[_Job]:
        """Refuse the jobs that were decided before the last commit of an owner or of grants, and return the others."""
        committing: set[Owner | None] = set()
        timely = []
        for job in jobs:
            try:
                self._heads.check(job.changes, committing)
            except Contended as error:
                self._refuse([job], error)
            else:
                timely.append(job)
        return timely

    def _acknowledge(self, jobs: Sequence[_Job], first_seq: int, usage: UsageChanges) -> None:
        """On the loop: tell who follows the commits, then who waits."""
        self.usage.add(usage)
        loop = jobs[0].loop
        for seq, change in enumerate((change for job in jobs for change in job.changes), first_seq):
            self.recent.tell(seq, change, loop)
            talk = change.conversation
            if talk is not None and talk.is_found_anew:
                self.recent_episodes.tell(seq, talk.episodes, loop)
            if (found := searched_notes(change)) is not None:
                self.recent_notes.tell(seq, found, loop)
        for job in jobs:
            _finish(job, None)

    def _attempt(self, run: Callable[[duckdb.DuckDBPyConnection], object]) -> MemorydError | None:
        """Run something, and return what went wrong in words of the contract."""
        if self._fatal:
            return self._ended()
        try:
            run(self._con)
        except Exception as error:  # noqa: BLE001  the writer outlives every request
            _roll_back(self._con)  # again, as for want of memory even a roll-back can fail
            return self.explain(error)
        return None

    def explain(self, error: Exception) -> MemorydError:
        """Return a fault of the engine in words of the contract; the end of the database is the end of the daemon."""
        if isinstance(error, MemorydError):
            return error
        damage = self._note_damage(error)
        if damage:
            if isinstance(error, duckdb.FatalException | duckdb.InternalException):
                self.fail(damage, damaged=True)
            return StoreDamaged(UNREADABLE)
        if isinstance(error, duckdb.OutOfMemoryException):
            return LimitExceeded("the call needs more memory than store.memory_limit_bytes", limit="store_memory")
        if isinstance(error, duckdb.FatalException | duckdb.InternalException) or "invalidated" in str(error):
            self.fail(type(error).__name__)
        return Unavailable(f"the store has a fault ({type(error).__name__}); nothing was written")

    def _note_damage(self, error: BaseException) -> str:
        """Return what an error says of damage, and keep it for the status; empty if it says nothing."""
        damage = damage_of(self._opened.path, error)
        self.damage = self.damage or damage
        return damage

    def note_recalls(self, con: duckdb.DuckDBPyConnection, recalls: Mapping[str, Recalled]) -> None:
        """Add to the counts of recalls, unless the disk is nearly full: a search must not fill it."""
        if self.space.has_room():
            add_recalls(con, recalls)

    def _transact(self, work: Sequence[tuple[Sequence[ChangeSet], CallContext | None]]) -> UsageChanges:
        """Write change sets in one transaction, and return what they change of the usage of grants."""
        changes = [change for together, _ in work for change in together]
        self.space.check([together for together, _ in work])
        con = self._con
        seq = self._seq + len(changes)
        for change in changes:
            for size in change.vector_sizes:
                (self.vectors if change.conversation is None else self.message_vectors).ensure(con, size)
        unrecord = no_purge
        con.begin()
        try:
            usage = write(con, changes, self._seq + 1, self.vectors.dimensions)
            times = [rows.naive(entry.memory.create_time) for c in changes for entry in c.inserts]
            newest = max([time for time in (*times, self._newest) if time is not None], default=None)
            con.execute("UPDATE commits SET commit_seq = ?, newest_create_time = ?", [seq, newest])
            unrecord = record_purge(con, self._ledger, changes, seq)
            flushed = self._journal.record(work) if self._journal else None
            try:
                con.commit()
            except (duckdb.FatalException, duckdb.InternalException, duckdb.IOException) as error:
                # the log may hold it: only a restart can tell
                damage = self._note_damage(error)
                self.fail(damage or type(error).__name__, damaged=bool(damage))
                raise OutcomeUnknown(
                    f"the commit failed ({type(error).__name__}); whether it was written is known after the restart"
                ) from None
        except BaseException:
            _roll_back(con)
            if not self._fatal:
                unrecord()
            raise
        for number, change in enumerate(changes, self._seq + 1):
            self._heads.grants += change.changes_grants
            owner = change.decided_of
            if owner is not None:
                self._heads.advance(owner, number, change)
        self._seq, self._newest = seq, newest
        if flushed is not None:
            flushed()
        return usage

    def _fold(self, *, least_bytes: int = 0) -> None:
        if self._fatal:
            return
        try:
            self.checkpoints.fold(least_bytes)
        except duckdb.Error as error:
            self.explain(error)


def _finish(job: _Job, error: Exception | None) -> None:
    if not job.future.done():
        job.future.set_result(None) if error is None else job.future.set_exception(error)


def _roll_back(con: duckdb.DuckDBPyConnection) -> None:
    with contextlib.suppress(duckdb.Error):  # the commit had ended it already, or the database is dead
        con.execute("ROLLBACK")
