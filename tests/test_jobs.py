"""Runs of jobs: written down, tried again, cancelled; a year of nights by a clock handed in; and the commands."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import timedelta

import pytest
from memory_client import InvalidArgument, MemorydError, MessageDraft, RunNotFound

from memoryd.daemon.config import Config, ScheduleConfig
from memoryd.daemon.jobs import MOST_ATTEMPTS, Job, Jobs
from memoryd.errors import Conflict, Unavailable
from memoryd.learning.follow import Learner
from memoryd.model.change import ChangeSet
from memoryd.model.work import EXTRACTION_JOB, Lease, Run, RunState, WorkState
from tests.builders import Local, open_duckdb, ports_over, ram_store
from tests.support import running

UTC_ONLY = Config(schedule=ScheduleConfig(timezone="UTC"))


@pytest.fixture(params=["ram", "duckdb"])
async def ports(request, folder):
    store = ram_store() if request.param == "ram" else open_duckdb(folder)
    async with ports_over(store) as made:
        yield made


class Work:
    """A job that does what it is told."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.let = asyncio.Event()
        self.let.set()
        self.runs = 0

    async def __call__(self, progress):
        self.runs += 1
        progress.total_count = 2
        for _ in range(2):
            progress.done_count += 1
            progress.counts["moved"] += 1
            await self.let.wait()
        if self.fault is not None:
            raise self.fault
        return {"moved": 2}


def jobs_over(ports, clock, **works) -> Jobs:
    return Jobs(ports, UTC_ONLY, {name: Job(name, "", work) for name, work in works.items()}, clock)


async def test_a_run_is_written_down_with_what_came_of_it(ports, clock):
    jobs = jobs_over(ports, clock, decay=Work())
    begun = await jobs.start("decay")
    assert RunState.RUNNING is begun.state
    await jobs._running["decay"][2]
    done = await jobs.find(begun.id)
    assert (RunState.DONE, {"moved": 2}, 2, 2, "call") == (
        done.state, dict(done.counts), done.done_count, done.total_count, done.trigger,
    )  # fmt: skip
    status = {one.name: one for one in await jobs.status()}["decay"]
    assert (done, "0 4 * * *") == (status.last_run, status.schedule)
    assert status.next_time > clock()


async def test_a_run_tells_how_far_it_is_and_is_joined_and_cancelled(ports, clock):
    work = Work()
    work.let.clear()
    jobs = jobs_over(ports, clock, gc=work)
    begun = await jobs.start("gc")
    await asyncio.sleep(0)
    now = await jobs.find(begun.id)
    assert (begun.id, 1, 2) == (now.id, now.done_count, now.total_count)
    assert begun.id == (await jobs.start("gc")).id  # one at a time
    cancelled = await jobs.cancel(begun.id[:12])
    assert (RunState.CANCELLED, {"moved": 1}) == (cancelled.state, dict(cancelled.counts))
    assert RunState.CANCELLED is (await jobs.cancel(begun.id)).state
    work.let.set()
    again = await jobs.run("gc", trigger="call")
    assert (RunState.DONE, 2) == (again.state, work.runs)


async def test_a_run_that_a_full_disk_keeps_from_being_noted_is_told_all_the_same(ports, clock, monkeypatch):
    work, write = Work(), ports.store.commits.write
    jobs = jobs_over(ports, clock, decay=work)
    await jobs.look()

    async def full(*changes):
        if any(change.runs or change.leases or change.freed_leases for change in changes):
            raise Unavailable("the disk has 0 MiB free")
        await write(*changes)

    monkeypatch.setattr(ports.store.commits, "write", full)
    work.let.clear()
    begun = await jobs.start("decay")
    await asyncio.sleep(0)
    assert (RunState.RUNNING, 1) == ((await jobs.find(begun.id)).state, (await jobs.find(begun.id[:12])).done_count)
    work.let.set()
    await jobs._running["decay"][2]
    assert (RunState.DONE, begun.id) == ((await jobs.find(begun.id)).state, (await jobs.find(begun.id[:12])).id)
    with pytest.raises(RunNotFound):
        await jobs.find("a" * 26)
    clock.pass_days(1)
    assert ([RunState.DONE], 2) == ([run.state for run in await jobs.look()], work.runs)
    assert ([], 2) == (await jobs.look(), work.runs)  # it stays due, and waits a while
    clock.now += timedelta(hours=1)
    await jobs.look()
    assert 3 == work.runs


async def test_what_fails_is_tried_again_and_then_waits_for_its_next_time(ports, clock):
    work = Work()
    work.fault = OSError("secret content")
    jobs = jobs_over(ports, clock, decay=work)
    await jobs.look()
    clock.pass_days(1)
    for attempt in range(1, MOST_ATTEMPTS + 1):
        run = (await jobs.look())[0]
        assert (RunState.FAILED, "OSError", attempt) == (run.state, run.error, work.runs)
        assert [] == await jobs.look()  # not at once
        clock.now += timedelta(hours=1)
    assert [] == await jobs.look()
    work.fault = None
    clock.pass_days(1)
    assert [RunState.DONE] == [run.state for run in await jobs.look()]


async def test_forty_five_nights_run_every_job_when_it_is_due_and_in_order(ports, clock):
    seen = []

    def noting(name):
        async def work(progress):
            seen.append((name, progress.now))
            return {}

        return work

    names = ("enrichment", "consolidation", "decay", "gc", "reflection", "compaction")
    jobs = jobs_over(ports, clock, **{name: noting(name) for name in names})
    await jobs.look()
    for _ in range(45):
        clock.pass_days(1)
        await jobs.look()
    counts = Counter(name for name, _ in seen)
    assert {45} == {counts[name] for name in ("enrichment", "consolidation", "decay", "gc")}
    assert {6} == {counts[name] for name in ("reflection", "compaction")} - {7}
    nights = [[name for name, at in seen if at == night] for night in dict.fromkeys(at for _, at in seen)]
    assert all(night == [name for name in names if name in night] for night in nights)
    clock.pass_days(90)  # while it was down
    assert list(names) == [run.job for run in await jobs.look()]


async def test_what_an_earlier_daemon_ran_is_lost_and_what_another_runs_is_not(ports, clock):
    lost = Run(id="a" * 26, job="gc", state=RunState.RUNNING, start_time=clock() - timedelta(hours=1))
    other = Run(id="b" * 26, job="decay", state=RunState.RUNNING, start_time=clock())
    lease = Lease("decay", other.id, clock() + timedelta(seconds=50))
    await ports.store.commits.write(ChangeSet(runs=(lost, other), leases=(lease,), leases_before={"decay": None}))
    jobs = jobs_over(ports, clock, gc=Work(), decay=Work())
    await jobs.begin(gc=False)
    assert [RunState.LOST, RunState.RUNNING] == [(await jobs.find(run.id)).state for run in (lost, other)]
    with pytest.raises(Conflict, match="decay is leased to a run that goes on"):
        await jobs.start("decay")


async def test_what_there_is_not_is_refused_by_name(ports, clock):
    jobs = jobs_over(ports, clock, gc=Work())
    with pytest.raises(InvalidArgument, match="job is 'gx'; it must be one of gc"):
        await jobs.start("gx")
    with pytest.raises(RunNotFound):
        await jobs.find("c" * 26)


async def test_stopping_ends_what_runs_within_a_second(ports, clock):
    work = Work()
    work.let.clear()
    jobs = jobs_over(ports, clock, gc=work)
    begun = await jobs.start("gc")
    await asyncio.wait_for(jobs.stop(), 1)
    assert RunState.CANCELLED is (await jobs.find(begun.id)).state


async def test_everything_that_waits_is_learnt_from_with_a_dry_run_before(ports, clock):
    from memoryd.daemon.jobs import Progress
    from memoryd.learning.rules import RulesExtractor

    memory = Local(ports, clock, user_id="alice")
    await memory.append("t", MessageDraft(content="I'm vegan and I live in Oslo"))
    learner = Learner(ports, RulesExtractor(), clock, print, wait_s=3600)
    await learner.step()
    counted = await learner.everything(Progress(clock(), dry_run=True))
    assert ({"threads": 1, "messages": 1, "facts": 2}, []) == (counted, (await memory.page()).memories or [])
    assert 2 == (await learner.everything(Progress(clock())))["inserted"]
    assert {(EXTRACTION_JOB, WorkState.IDLE): 1} == await ports.store.work.counts()


def test_the_commands_show_run_and_cancel(folder, capsys):
    from memoryd.cli import main as admin

    with running(folder, config='[embedding]\nprovider = "none"\n[learning]\nwait_s = 3600\n') as daemon:

        def run(*words: str) -> tuple[int, str]:
            code = admin.run([*words, "--socket", str(daemon.socket)])
            return code, capsys.readouterr().out

        with daemon.client() as memory:
            memory.append("t", [MessageDraft(content=text) for text in ("I'm vegan", "I live in Oslo", "I have a dog")])
            code, told = run("consolidate")
            assert (0, True) == (code, "inserted 3" in told)
            assert 3 == len(memory.page().memories)
            assert "owners 1, reflections 1" in run("reflect", "--dry-run")[1]
            assert "owners 1, reflections 1" in run("reflect")[1]
            assert 4 == len(memory.page().memories)
            listed = json.loads(run("jobs", "list", "--json")[1])
            assert "consolidation" in [job["name"] for job in listed["jobs"] if job["last_run"]]
            assert "consolidation" in run("jobs", "list")[1]
            shown = json.loads(run("jobs", "show", "reflection", "--json")[1])["runs"]
            assert [False, True] == [one["dry_run"] for one in shown]
            assert shown[0]["id"] in run("jobs", "show", shown[0]["id"])[1]
            assert shown[0]["id"] in run("jobs", "show", shown[0]["id"][:8])[1]
            assert (1, "") == run("jobs", "cancel", "reflection")
            last = {job["name"]: job["last_run"] for job in json.loads(run("jobs", "list", "--json")[1])["jobs"]}
            assert not last["reflection"]["dry_run"]
            assert (0, "no thread is parked\n") == run("jobs", "retry")
            assert 2 == run("jobs", "run", "nothing")[0]
            assert 2 == run("jobs", "run", "compaction", "--dry-run")[0]
            with pytest.raises(MemorydError):
                memory.job_run("x" * 26)


async def test_a_dry_run_is_not_taken_for_a_run(ports, clock):
    slow = Work()
    jobs = jobs_over(ports, clock, decay=slow)
    first = asyncio.create_task(jobs.start("decay", dry_run=True))
    second = asyncio.create_task(jobs.start("decay", dry_run=True))
    done = await asyncio.gather(first, second, return_exceptions=True)
    assert 1 <= sum(isinstance(one, Run) and one.state is RunState.DONE for one in done)
    assert not any(isinstance(one, KeyError) for one in done)
