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
    await store.commit(*(ChangeSet(work=(one,)) for one in made))
    await store.commit(ChangeSet(work=(work(8, due_time=NOW + timedelta(seconds=1)),)))
    await store.commit(ChangeSet(work=(work(9, state=WorkState.IDLE),)))
    assert made[::-1] == await store.work_due("extraction", NOW, limit=9)
    assert made[:0:-1] == await store.work_due("extraction", NOW, limit=2)
    assert [] == await store.work_due("other", NOW, limit=9)
    assert {("extraction", WorkState.WAITING): 4, ("extraction", WorkState.IDLE): 1} == await store.work_counts()


async def test_work_never_goes_back(store):
    await store.commit(ChangeSet(work=(work(seq=7),)))
    await store.commit(ChangeSet(work=(work(seq=3, state=WorkState.PARKED, attempts=5, error="OSError"),)))
    held = await store.work(OWNERS[0], "extraction", "t0")
    assert work(seq=7, state=WorkState.PARKED, attempts=5, error="OSError") == held
    assert [held] == await store.work_in([WorkState.PARKED], limit=9)
    assert [] == await store.work_in([WorkState.PARKED], limit=9, kind="other")
    assert None is await store.work(OWNERS[1], "extraction", "t0")


async def test_work_goes_with_its_thread_and_with_its_owner(store):
    await store.commit(ChangeSet(conversation=ConversationChange(OWNERS[0], threads=(thread("t0"),))))
    await store.commit(*(ChangeSet(work=(work(n, owner=owner),)) for n in range(2) for owner in OWNERS))
    await store.commit(ChangeSet(conversation=ConversationChange(OWNERS[0], purge_threads=(thread("t0"),))))
    assert None is await store.work(OWNERS[0], "extraction", "t0")
    assert 5 == len(await store.work_in([WorkState.WAITING], limit=99))
    await store.commit(ChangeSet(purge_owner=OWNERS[1]))
    assert {OWNERS[0], OWNERS[2]} == {one.owner for one in await store.work_in([WorkState.WAITING], limit=99)}


async def test_runs_are_told_latest_first_and_the_last_of_each_job_are_kept(store):
    def run(n: int, job: str = "gc", **more) -> Run:
        return Run(id=f"{job}{n}", job=job, state=RunState.DONE, start_time=NOW + timedelta(minutes=n), **more)

    first = run(0, "decay", counts={"decayed": 3}, end_time=NOW, trigger="call", dry_run=True)
    await store.commit(ChangeSet(runs=(replace(first, state=RunState.RUNNING, end_time=None),)))
    await store.commit(ChangeSet(runs=(first,)))
    for n in range(MOST_RUNS + 3):
        await store.commit(ChangeSet(runs=(run(n),)))
    assert first == await store.run("decay0")
    assert (None, run(3)) == (await store.run("gc2"), await store.run("gc3"))
    assert [run(MOST_RUNS + 2), run(MOST_RUNS + 1)] == await store.runs(limit=2)
    assert [run(5)] == await store.runs(job="gc", limit=1, before=NOW + timedelta(minutes=6))
    assert [first] == await store.runs(job="decay", limit=9)


async def test_statements_since_a_time_are_live_and_come_with_all_of_the_last_time(store):
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

    async def since(minutes: int, until: int, limit: int) -> list[str]:
        after, last = NOW + timedelta(minutes=minutes), NOW + timedelta(minutes=until)
        return [one.id for one in await store.live_since(after, last, limit=limit)]

    assert ["m1", "m2", "m3"] == await since(0, 60, 2)
    assert ["m1"] == await since(0, 60, 1)
    assert ["m2", "m3", "m8", "m9"] == await since(1, 60, 9)
    assert ["m7", "m8"] == await since(2, 4, 9)  # what expires later is live until then
    assert [] == await since(5, 60, 9)


LATER = NOW + timedelta(minutes=1)


async def test_a_lease_is_taken_by_one_and_renewed_and_freed_by_its_holder_alone(store):
    mine, theirs = Lease("gc", "one", NOW), Lease("gc", "other", NOW)
    await store.commit(ChangeSet(leases=(mine,), leases_before={"gc": None}))
    for wrong in (
        ChangeSet(leases=(theirs,), leases_before={"gc": None}),  # who has not seen that it is taken
        ChangeSet(leases=(theirs,), leases_before={"gc": replace(mine, until=LATER)}),
        ChangeSet(leases=(theirs,)),  # renewed by another
        ChangeSet(leases=(Lease("decay", "one", NOW),)),  # renewed and never taken
    ):
        with pytest.raises(Contended):
            await store.commit(wrong, ChangeSet(marks={"never": NOW}))
    await store.commit(ChangeSet(freed_leases=(theirs,)))
    assert {"gc": mine} == await store.leases()
    assert {} == await store.marks()
    longer = replace(mine, until=LATER)
    await store.commit(ChangeSet(leases=(longer,)))
    assert {"gc": longer} == await store.leases()
    await store.commit(ChangeSet(leases=(theirs,), leases_before={"gc": longer}))  # it has ended
    with pytest.raises(Contended):
        await store.commit(ChangeSet(leases=(longer,)))
    await store.commit(ChangeSet(freed_leases=(theirs,)))
    assert {} == await store.leases()


async def test_counters_of_a_day_and_of_all_time_stand_apart_and_touch_nothing_else(store):
    first, day = CounterName("x:one"), CounterName("x:one", date(2026, 11, 1))
    await store.commit(ChangeSet(counters={first: 7, day: 3}, counters_before={first: None, day: None}))
    await store.commit(ChangeSet(counters={CounterName("x:two"): 1}))
    assert {first: 7, day: 3, CounterName("x:two"): 1} == await store.counters()
    with pytest.raises(Contended):
        await store.commit(ChangeSet(counters={first: 9}, counters_before={first: 8}))
    await store.commit(ChangeSet(counters={first: 8}, counters_before={first: 7}, forget_counters=(day,)))
    assert {first: 8, CounterName("x:two"): 1} == await store.counters()
