"""What every store promises of work in the background: see `store.work`."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from memoryd.errors import Contended
from memoryd.model.change import ChangeSet, ConversationChange, Entry
from memoryd.model.conversation import Thread
from memoryd.model.memory import Kind
from memoryd.model.scope import Owner
from memoryd.model.work import CounterName, Lease, Run, RunState, Work, WorkState
from memoryd.store.memories import NOT_RETIRED, Order, place_in_time
from memoryd.store.work import MOST_RUNS
from tests.builders import ALICE, BOB, NOW, TEAM, entry, memory
from tests.conformance.store_helpers import put

OWNERS = [Owner("default", scope) for scope in (ALICE, BOB, TEAM)]


def work(n: int = 0, *, owner: Owner = OWNERS[0], **more) -> Work:
    return Work(**{"kind": "extraction", "owner": owner, "thread_id": f"t{n}", "due_time": NOW, **more})


def thread(thread_id: str, owner: Owner = OWNERS[0]) -> Thread:
    return Thread(
        id=thread_id, agent_id=owner.agent_id, scope=owner.scope, create_time=NOW, update_time=NOW, revision=1
    )


async def test_what_is_due_comes_first_due_first_and_of_all_owners(store):
    made = [work(n, owner=owner, due_time=NOW - timedelta(minutes=n)) for n, owner in enumerate(OWNERS)]
    await store.commits.write(*(ChangeSet(work=(one,)) for one in made))
    await store.commits.write(ChangeSet(work=(work(8, due_time=NOW + timedelta(seconds=1)),)))
    await store.commits.write(ChangeSet(work=(work(9, state=WorkState.IDLE),)))
    assert made[::-1] == await store.work.find("extraction", states=[WorkState.WAITING], due_by=NOW, limit=9)
    assert made[:0:-1] == await store.work.find("extraction", states=[WorkState.WAITING], due_by=NOW, limit=2)
    assert [] == await store.work.find("other", states=[WorkState.WAITING], due_by=NOW, limit=9)
    assert {("extraction", WorkState.WAITING): 4, ("extraction", WorkState.IDLE): 1} == await store.work.counts()


async def test_work_never_goes_back(store):
    await store.commits.write(ChangeSet(work=(work(seq=7),)))
    await store.commits.write(ChangeSet(work=(work(seq=3, state=WorkState.PARKED, attempts=5, error="OSError"),)))
    held = await store.work.get(OWNERS[0], "extraction", "t0")
    assert work(seq=7, state=WorkState.PARKED, attempts=5, error="OSError") == held
    assert [held] == await store.work.find(states=[WorkState.PARKED], limit=9)
    assert [] == await store.work.find("other", states=[WorkState.PARKED], limit=9)
    assert None is await store.work.get(OWNERS[1], "extraction", "t0")


async def test_work_goes_with_its_thread_and_with_its_owner(store):
    await store.commits.write(ChangeSet(conversation=ConversationChange(OWNERS[0], threads=(thread("t0"),))))
    await store.commits.write(*(ChangeSet(work=(work(n, owner=owner),)) for n in range(2) for owner in OWNERS))
    await store.commits.write(ChangeSet(conversation=ConversationChange(OWNERS[0], purge_threads=(thread("t0"),))))
    assert None is await store.work.get(OWNERS[0], "extraction", "t0")
    assert 5 == len(await store.work.find(states=[WorkState.WAITING], limit=99))
    await store.commits.write(ChangeSet(purge_owner=OWNERS[1]))
    assert {OWNERS[0], OWNERS[2]} == {one.owner for one in await store.work.find(states=[WorkState.WAITING], limit=99)}


async def test_a_run_is_asked_to_stop_as_long_as_it_runs_and_no_other_is(store):
    runs = [Run(id=f"r{n}", job="gc", state=RunState.RUNNING, start_time=NOW + timedelta(minutes=n)) for n in range(3)]
    await store.commits.write(ChangeSet(runs=tuple(runs)))
    await store.commits.write(ChangeSet(runs=(replace(runs[2], state=RunState.DONE, end_time=NOW),)))
    await store.commits.write(ChangeSet(stop_runs=("r1", "r2", "r9")))
    known = {run.id: run for run in await store.work.runs(limit=5)}
    assert {"r0": False, "r1": True, "r2": False} == {name: run.stop_requested for name, run in known.items()}
    assert replace(runs[1], stop_requested=True) == known["r1"]


async def test_runs_are_told_latest_first_and_the_last_of_each_job_are_kept(store):
    def run(n: int, job: str = "gc", **more) -> Run:
        return Run(id=f"{job}{n}", job=job, state=RunState.DONE, start_time=NOW + timedelta(minutes=n), **more)

    first = run(0, "decay", counts={"decayed": 3}, end_time=NOW, trigger="call", dry_run=True)
    await store.commits.write(ChangeSet(runs=(replace(first, state=RunState.RUNNING, end_time=None),)))
    await store.commits.write(ChangeSet(runs=(first,)))
    for n in range(MOST_RUNS + 3):
        await store.commits.write(ChangeSet(runs=(run(n),)))
    assert first == (await store.work.runs(limit=1, prefix="decay0"))[0]
    kept = {one.id for one in await store.work.runs(job="gc", limit=2 * MOST_RUNS)}
    assert (MOST_RUNS, True, False) == (len(kept), "gc3" in kept, "gc2" in kept)
    assert [run(MOST_RUNS + 2), run(MOST_RUNS + 1)] == await store.work.runs(limit=2)
    assert [run(5)] == await store.work.runs(job="gc", limit=1, before=NOW + timedelta(minutes=6))
    assert [first] == await store.work.runs(job="decay", limit=9)


async def test_statements_since_a_time_are_live_and_come_oldest_first(store):
    def said(n: int, minutes: int, **more) -> Entry:
        time = NOW + timedelta(minutes=minutes)
        return entry(memory(f"statement {n}", id=f"m{n}", create_time=time, event_time=time, **more))

    later = NOW + timedelta(minutes=9)
    rows = [
        said(0, 0),
        said(1, 1),
        said(2, 2, scope=BOB),
        said(3, 2, agent_id="other"),
        said(4, 2, kind=Kind.EPISODE),
        said(5, 3, delete_time=later),
        said(6, 3, supersede_time=later, superseded_by="m1"),
        said(7, 3, expire_time=later),
        said(8, 4, scope=TEAM),
        said(9, 5),
    ]
    await put(store, *rows)

    async def since(minutes: int, until: int, limit: int = 9, after: str = "") -> list[str]:
        begin, end = NOW + timedelta(minutes=minutes), NOW + timedelta(minutes=until)
        wanted = replace(NOT_RETIRED, is_statement=True, created_after=begin, created_until=end)
        found = await store.memories.scan(wanted, limit=limit, after=after, order=Order.OLDEST)
        return [one.id for one in found]

    assert ["m1", "m2"] == await since(0, 60, 2)
    assert ["m3", "m8"] == await since(0, 60, 2, place_in_time(NOW + timedelta(minutes=2), "m2"))
    assert ["m2", "m3", "m8", "m9"] == await since(1, 60)
    assert ["m7", "m8"] == await since(2, 4)  # what expires later is live until then
    assert [] == await since(5, 60)


LATER = NOW + timedelta(minutes=1)


async def test_a_lease_is_taken_by_one_and_renewed_and_freed_by_its_holder_alone(store):
    mine, theirs = Lease("gc", "one", NOW), Lease("gc", "other", NOW)
    await store.commits.write(ChangeSet(leases=(mine,), leases_before={"gc": None}))
    for wrong in (
        ChangeSet(leases=(theirs,), leases_before={"gc": None}),  # who has not seen that it is taken
        ChangeSet(leases=(theirs,), leases_before={"gc": replace(mine, until=LATER)}),
        ChangeSet(leases=(theirs,)),  # renewed by another
        ChangeSet(leases=(Lease("decay", "one", NOW),)),  # renewed and never taken
    ):
        with pytest.raises(Contended):
            await store.commits.write(wrong, ChangeSet(marks={"never": NOW}))
    await store.commits.write(ChangeSet(freed_leases=(theirs,)))
    assert {"gc": mine} == await store.work.leases()
    assert {} == await store.work.marks()
    longer = replace(mine, until=LATER)
    await store.commits.write(ChangeSet(leases=(longer,)))
    assert {"gc": longer} == await store.work.leases()
    await store.commits.write(ChangeSet(leases=(theirs,), leases_before={"gc": longer}))  # it has ended
    with pytest.raises(Contended):
        await store.commits.write(ChangeSet(leases=(longer,)))
    await store.commits.write(ChangeSet(freed_leases=(theirs,)))
    assert {} == await store.work.leases()


async def test_counters_of_a_day_and_of_all_time_stand_apart_and_touch_nothing_else(store):
    first, day = CounterName("x:one"), CounterName("x:one", date(2026, 11, 1))
    await store.commits.write(ChangeSet(counters={first: 7, day: 3}, counters_before={first: None, day: None}))
    await store.commits.write(ChangeSet(counters={CounterName("x:two"): 1}))
    assert {first: 7, day: 3, CounterName("x:two"): 1} == await store.work.counters()
    with pytest.raises(Contended):
        await store.commits.write(ChangeSet(counters={first: 9}, counters_before={first: 8}))
    await store.commits.write(ChangeSet(counters={first: 8}, counters_before={first: 7}, forget_counters=(day,)))
    assert {first: 8, CounterName("x:two"): 1} == await store.work.counters()
