"""A clock that was wrong: what follows it, what does not, and what waits until it is believed again."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import UTC, datetime, timedelta

import pytest

from memoryd.daemon.config import Config, MemoryConfig
from memoryd.daemon.schedule import due_jobs, first_seen, misdated
from memoryd.domain.clock import CLOCK_SEEN, ClockWatch
from memoryd.domain.decay import confidence_at
from memoryd.domain.forgetting.collect import collect
from memoryd.domain.forgetting.decay import forget_faded
from memoryd.errors import InvalidArgument
from memoryd.identity.grants import Grants
from memoryd.model.change import ChangeSet
from memoryd.model.grant import Quota
from memoryd.model.memory import Kind, Source
from memoryd.model.reports import GcReport
from tests.builders import Local, entry, memory, open_duckdb, ports_over, ram_store, with_ports
from tests.forking import run_command
from tests.grants_helpers import grant
from tests.support import Daemon

TEN_YEARS = 3652
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


class Uptime:
    """Seconds that pass when they are told to, as the clock does of its own."""

    def __init__(self, clock) -> None:
        self.clock, self.seconds = clock, 1000.0

    def __call__(self) -> float:
        return self.seconds

    def pass_hours(self, hours: float) -> None:
        self.seconds += hours * 3600
        self.clock.pass_days(hours / 24)


@pytest.fixture
def uptime(clock) -> Uptime:
    return Uptime(clock)


# --- what follows the clock ---


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
def test_after_a_write_ten_years_ahead_only_create_time_goes_on_from_there(kind, clock, folder):
    async def run():
        async with ports_over(ram_store() if kind == "ram" else open_duckdb(folder)) as ports:
            alice = Local(ports, clock, user_id="alice")
            clock.pass_days(TEN_YEARS)
            wrong = (await alice.add("I live in Rome", key="home")).memory
            clock.pass_days(-TEN_YEARS)

            soon = (await alice.add("the guest room is free", expires_days=14)).memory
            dated = await alice.add("the dentist is tomorrow", expire_time=clock.now + timedelta(days=1))
            moved = await alice.add("I live in Paris", key="home")
            replaced = (await alice.history(wrong.id)).memories[0]
            gone = await alice.delete(soon.id)
            with pytest.raises(InvalidArgument):
                await alice.add("too late", expire_time=clock.now - timedelta(days=1))

            assert soon.create_time > wrong.create_time > clock.now + timedelta(days=TEN_YEARS - 1)
            assert clock.now + timedelta(days=14) == soon.expire_time
            assert clock.now == soon.event_time
            assert clock.now + timedelta(days=1) == dated.memory.expire_time
            assert (wrong.id,) == moved.superseded_ids
            assert clock.now == replaced.supersede_time
            assert clock.now + timedelta(days=30) == gone.purge_time
            clock.pass_days(15)
            assert [moved.memory.id] == [m.id for m in (await alice.page()).memories]

    asyncio.run(run())


def test_two_adds_at_one_time_have_no_event_time_of_their_own(clock):
    async def run():
        async with ports_over(ram_store()) as ports:
            alice = Local(ports, clock, user_id="alice")
            made = [(await alice.add(f"the {word} shop opens at nine")).memory for word in ("book", "shoe", "fish")]
            assert [None] * 3 == [memory.own_event_time for memory in made]
            assert [memory.create_time for memory in made] == [memory.event_time for memory in made]

    asyncio.run(run())


def test_what_was_deleted_or_replaced_under_a_wrong_clock_is_purged_after_its_grace_all_the_same(clock):
    async def run():
        async with ports_over(ram_store()) as ports:
            alice = Local(ports, clock, user_id="alice")
            old = (await alice.add("I live in Rome", key="home")).memory
            gone = (await alice.add("my aunt sells bread")).memory
            clock.pass_days(TEN_YEARS)
            await alice.add("I live in Paris", key="home")
            await alice.delete(gone.id)
            clock.pass_days(-TEN_YEARS)

            assert 0 == (await collect(ports, now=clock.now)).deleted_count
            clock.pass_days(29)
            assert 0 == (await collect(ports, now=clock.now)).deleted_count
            await alice.restore(gone.id)
            await alice.delete(gone.id)
            clock.pass_days(31)
            assert 1 == (await collect(ports, now=clock.now)).deleted_count
            clock.pass_days(121)
            assert 1 == (await collect(ports, now=clock.now)).superseded_count
            assert [] == await ports.store.memories.entries(old.owner, [old.id, gone.id])

    asyncio.run(run())


def test_a_recall_of_the_future_keeps_nothing_from_fading():
    ahead = NOW + timedelta(days=TEN_YEARS)
    extracted = {"source": Source(channel="extraction"), "event_time": NOW - timedelta(days=100)}
    right = memory("x", create_time=NOW - timedelta(days=100), **extracted)
    recalled = memory("x", create_time=NOW - timedelta(days=100), trusted_recall_time=ahead, **extracted)
    reinforced = memory("x", create_time=NOW - timedelta(days=100), reinforce_time=ahead, **extracted)
    misdated_one = memory("x", create_time=ahead, **extracted)

    assert confidence_at(right, NOW, "gentle") < 0.4
    for one in (recalled, reinforced, misdated_one):
        assert confidence_at(right, NOW, "gentle") == confidence_at(one, NOW, "gentle")


def test_a_clock_that_is_behind_shortens_no_grace(clock, uptime):
    async def run():
        async with ports_over(ram_store()) as ports:
            alice = Local(ports, clock, user_id="alice")
            await alice.add("I live in Rome", key="home")
            await alice.add("I live in Paris", key="home")
            before = (await alice.add("my aunt sells bread")).memory
            promised = (await alice.delete(before.id)).purge_time
            seen = clock.now

            clock.pass_days(-400)
            ports = alice.ports = with_ports(ports, clock=ClockWatch(clock.now, seen, uptime))
            assert GcReport() == await collect(ports, now=clock.now)
            late = (await alice.add("my uncle sells fish")).memory
            assert seen + timedelta(days=30) == (await alice.delete(late.id)).purge_time
            clock.pass_days(400)
            uptime.pass_hours(0.1)

            assert ports.shared.clock.look(clock.now)
            assert GcReport() == await collect(ports, now=clock.now)
            assert promised == (await ports.store.memories.entries(before.owner, [before.id]))[0].memory.purge_time
            clock.pass_days(31)
            ports.shared.clock.believe(clock.now)
            assert 2 == (await collect(ports, now=clock.now)).deleted_count

    asyncio.run(run())


def test_a_job_that_ran_in_the_future_is_due_again_from_now_on():
    ahead = NOW + timedelta(days=TEN_YEARS)
    ran = {"gc": ahead, first_seen("decay"): ahead, "enrichment": NOW - timedelta(hours=1), "last purge": ahead}

    assert {"gc": NOW, first_seen("decay"): NOW} == misdated(ran, NOW)
    assert ["decay", "gc"] == [
        name for name in due_jobs(Config(), ran | misdated(ran, NOW), NOW + timedelta(days=1.5)) if name != "enrichment"
    ]


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
def test_the_writes_of_a_day_are_those_of_that_day(kind, folder):
    async def run():
        store = ram_store() if kind == "ram" else open_duckdb(folder)
        async with ports_over(store):
            times = (NOW, NOW - timedelta(days=1), NOW + timedelta(days=TEN_YEARS))
            made = [memory(f"m{n}", create_time=time, grant_id="g1") for n, time in enumerate(times)]
            await store.commits.write(ChangeSet(inserts=tuple(map(entry, made))))
            days = (NOW.date(), times[1].date(), times[2].date(), NOW.date() - timedelta(days=9))
            assert [1, 1, 1, 0] == [(await store.grants.usage("g1", day)).writes_today for day in days]
            assert 3 == (await store.grants.usage("g1", days[0])).stored_memories

    asyncio.run(run())


@pytest.mark.parametrize(("days", "left"), [(1, 5), (2, 0), (TEN_YEARS, 0)])
async def test_writes_are_counted_anew_once_the_clock_is_set_back_by_more_than_a_day(days, left):
    async with ports_over(ram_store()) as ports:
        grants = Grants(ports.store, [], [], lambda: 0.0, os.urandom, today=NOW.date())
        await grants.charge(grant(quota=Quota()), 5, NOW + timedelta(days=days))
        assert left == (await grants.usage(grant().id, NOW)).writes_today


# --- when the clock is believed ---


def test_a_short_stop_a_long_uptime_and_a_small_step_are_plausible(clock, uptime):
    watch = ClockWatch(clock.now, clock.now - timedelta(days=6), uptime)
    assert watch.look(clock.now)
    for _ in range(400):
        uptime.pass_hours(24)
        assert watch.look(clock.now)
        assert "" == watch.doubt(clock.now)
    clock.pass_days(0.5 / 24)
    assert "" == watch.doubt(clock.now)


@pytest.mark.parametrize("days", [7.1, 40, 40_000])
def test_a_start_far_ahead_is_in_doubt_until_a_day_has_gone_by(clock, uptime, days):
    watch = ClockWatch(clock.now, clock.now - timedelta(days=days), uptime)

    assert "gc --clock-is-right" in watch.doubt(clock.now)
    assert not watch.look(clock.now)
    for _ in range(23):
        uptime.pass_hours(1)
        assert not watch.look(clock.now)
    uptime.pass_hours(1.1)
    assert watch.look(clock.now)
    assert "" == watch.doubt(clock.now)


def test_a_jump_while_it_runs_is_seen_at_once_and_forgotten_when_it_is_undone(clock, uptime):
    watch = ClockWatch(clock.now, None, uptime)
    uptime.pass_hours(5)

    clock.pass_days(40)
    assert watch.doubt(clock.now).startswith("the clock has gone forward by 40 days")
    assert not watch.look(clock.now)
    clock.pass_days(-40)
    assert "" == watch.doubt(clock.now)
    assert watch.look(clock.now)


def test_a_second_jump_begins_the_day_anew(clock, uptime):
    watch = ClockWatch(clock.now, None, uptime)
    clock.pass_days(40)
    watch.look(clock.now)
    uptime.pass_hours(23)
    clock.pass_days(40)
    watch.look(clock.now)
    uptime.pass_hours(23)
    assert not watch.look(clock.now)
    uptime.pass_hours(2)
    assert watch.look(clock.now)


def test_a_clock_that_starts_at_zero_and_is_then_set_right_is_believed(clock, uptime):
    seen = clock.now - timedelta(hours=2)
    clock.pass_days(-20_000)
    watch = ClockWatch(clock.now, seen, uptime)
    assert not watch.look(clock.now)  # so that this time is not written down
    clock.pass_days(20_000)
    assert watch.look(clock.now)
    assert "" == watch.doubt(clock.now)


def test_the_operator_s_word_ends_the_doubt(clock, uptime):
    watch = ClockWatch(clock.now, clock.now - timedelta(days=40), uptime)
    watch.believe(clock.now)
    assert watch.look(clock.now)
    clock.pass_days(1)
    assert watch.doubt(clock.now)


# --- what waits ---


def test_purge_decay_and_eviction_wait_while_the_clock_is_in_doubt(clock, uptime):
    async def run():
        config = Config(memory=MemoryConfig(max_entries=3, decay="ebbinghaus"))
        async with ports_over(ram_store(), config) as ports:
            ports = with_ports(ports, clock=ClockWatch(clock.now, None, uptime))
            alice = Local(ports, clock, user_id="alice")
            gone = (await alice.add("my aunt sells bread")).memory
            await alice.delete(gone.id)
            kept = [(await alice.add(f"the {word} shop opens at nine")).memory for word in ("book", "shoe", "fish")]

            clock.pass_days(400)
            report, faded = await collect(ports, now=clock.now), await forget_faded(ports, now=clock.now)
            dry = (
                await collect(ports, now=clock.now, dry_run=True),
                await forget_faded(ports, now=clock.now, dry_run=True),
            )
            more = (await alice.add("the toy shop opens at ten")).memory

            assert (0, True) == (report.deleted_count, bool(report.held))
            assert ((), True) == (faded.faded, bool(faded.held))
            assert (1, True, 3, True) == (
                dry[0].deleted_count, bool(dry[0].held), len(dry[1].faded), bool(dry[1].held),
            )  # fmt: skip
            assert {m.id for m in (*kept, more)} == {m.id for m in (await alice.page()).memories}

            ports.shared.clock.believe(clock.now)
            await alice.add("the tea shop opens at ten")
            assert 3 == len((await alice.page()).memories)
            assert 1 == (await collect(ports, now=clock.now)).deleted_count
            assert (await forget_faded(ports, now=clock.now)).faded

    asyncio.run(run())


def wait_for(condition, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_start_forty_days_ahead_purges_nothing_until_it_is_confirmed(folder):
    daemon = Daemon(folder, config='[embedding]\nprovider = "none"\n')
    past = datetime.now(UTC) - timedelta(days=40)

    async def fill():
        store = open_duckdb(folder)
        deleted = memory("deleted", create_time=past, delete_time=past, purge_time=past + timedelta(days=30))
        ahead = memory("ahead", create_time=datetime.now(UTC) + timedelta(days=TEN_YEARS), kind=Kind.FACT)
        await store.commits.write(
            *ChangeSet(inserts=(entry(deleted), entry(ahead)), marks={CLOCK_SEEN: past}).by_owner(),
        )
        await store.close()
        return deleted.id

    deleted_id = asyncio.run(fill())

    def command(*words):
        done = run_command(daemon.command(*words), capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    daemon.start()
    try:
        wait_for(lambda: "held=" in daemon.log.read_text() or '"held"' in daemon.log.read_text())
        _, status, _ = command("status")
        held = command("gc")
        dry = command("gc", "--dry-run")
        with daemon.client() as client:
            assert client.run_gc().held
            assert client.verify_forgotten(deleted_id).traces  # it is there
        daemon.stop()
        daemon.start()  # a restart does not make it plausible
        again = command("gc")
        done = command("gc", "--clock-is-right")
        daemon.stop()
        daemon.start()
        after = command("gc")
        _, quiet, _ = command("status")
    finally:
        daemon.stop()

    assert "the clock has gone forward by 40 days" in status
    assert "days ahead of the clock" in status
    assert (1, "") == held[:2]
    assert "memoryd gc --clock-is-right" in held[2]
    assert (0, True) == (dry[0], dry[1].startswith("would erase 1 deleted"))
    assert 1 == again[0]
    assert (0, True) == (done[0], done[1].startswith("erased 1 deleted"))
    assert (0, True) == (after[0], after[1].startswith("erased 0 deleted"))
    assert "gone forward" not in quiet
