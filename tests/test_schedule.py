"""Jobs: when they are due, in which order, and what is made up for after a night that was missed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from memoryd.daemon import jobs
from memoryd.daemon.config import Config, ScheduleConfig
from memoryd.daemon.config_file import load_config
from memoryd.daemon.config_key import ConfigError
from memoryd.daemon.schedule import due_jobs, expressions_of
from memoryd.domain.forgetting.collect import collect
from memoryd.errors import Contended
from memoryd.model.change import ChangeSet
from memoryd.model.work import Lease
from memoryd.store.duckdb.space import FreeSpace
from tests.builders import NOW, entry, located, open_duckdb, ports_over, ram_store
from tests.shared_store import StoreView
from tests.support import PATIENCE_S, Daemon, until

UTC_ONLY = Config(schedule=ScheduleConfig(timezone="UTC"))
SUNDAY = datetime(2026, 11, 1, 12, tzinfo=UTC)


def ran(when):
    return dict.fromkeys(expressions_of(UTC_ONLY), when)


def test_a_job_is_due_once_its_time_has_come_and_not_again():
    assert [] == due_jobs(UTC_ONLY, ran(SUNDAY), SUNDAY + timedelta(hours=13))
    assert ["enrichment"] == due_jobs(UTC_ONLY, ran(SUNDAY), SUNDAY + timedelta(hours=14))
    assert [] == due_jobs(UTC_ONLY, ran(SUNDAY + timedelta(hours=14)), SUNDAY + timedelta(hours=14))


def test_missed_runs_are_made_up_for_once_in_order():
    assert ["enrichment", "consolidation", "judgement", "decay", "gc", "reflection", "compaction"] == due_jobs(
        UTC_ONLY, ran(SUNDAY), SUNDAY + timedelta(days=30)
    )


def test_a_job_that_never_ran_waits_for_its_first_time():
    assert [] == due_jobs(UTC_ONLY, {}, SUNDAY + timedelta(days=30))


def test_expressions_are_of_the_zone_that_is_named():
    berlin = Config(schedule=ScheduleConfig(timezone="Europe/Berlin"))
    at_one = SUNDAY.replace(hour=1) + timedelta(days=1)

    assert ["enrichment"] == due_jobs(berlin, ran(SUNDAY), at_one)
    assert [] == due_jobs(UTC_ONLY, ran(SUNDAY), at_one)


def test_an_empty_expression_means_never():
    assert "decay" not in expressions_of(Config(schedule=ScheduleConfig(decay="")))


@pytest.mark.parametrize(
    "text",
    ['decay = "every night"', 'decay = "99 4 * * *"', 'timezone = "Mars/Olympus"', 'gc = "1 2 3"'],
)
def test_what_is_no_schedule_is_refused_before_anything_is_opened(tmp_path, text):
    path = tmp_path / "memoryd.toml"
    path.write_text(f"[schedule]\n{text}\n")
    with pytest.raises(ConfigError, match=r"schedule\."):
        expressions_of(load_config(path, {}))


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
async def test_of_several_daemons_one_runs_a_job(kind, folder, clock):
    store, ran = ram_store() if kind == "ram" else open_duckdb(folder), []
    clock.now = NOW

    async def slow(progress):
        ran.append(progress.now)
        await asyncio.sleep(0.05)
        return {}

    async with ports_over(StoreView(store)) as one, ports_over(StoreView(store)) as other:
        table = {"decay": jobs.Job("decay", "", slow)}
        first, second = (jobs.Jobs(ports, Config(), table, clock) for ports in (one, other))

        async def run_decay(runner, last):
            await runner.run("decay", trigger="schedule", ran=last)

        await asyncio.gather(*(run_decay(runner, None) for runner in (first, second, first)))
        assert ([NOW], NOW) == (ran, (await store.work.marks())["decay"])
        clock.now = NOW + timedelta(seconds=1)
        await run_decay(second, None)  # who has not seen that it ran
        assert [NOW] == ran

        later = clock.now = NOW + timedelta(days=1)
        await store.commits.write(lease_of("decay", later + timedelta(seconds=50)))
        await run_decay(first, NOW)  # another one is at it …
        assert [NOW] == ran
        clock.now = later + timedelta(seconds=50)
        await run_decay(first, NOW)  # … and has ended without a word
        assert [NOW, later + timedelta(seconds=50)] == ran

        far = later + timedelta(days=9000)  # the clock of who leased it was wrong
        await store.commits.write(lease_of("decay", far))
        last = (await store.work.marks())["decay"]
        clock.now = later + timedelta(hours=1)
        await run_decay(first, last)
        assert 3 == len(ran)


def lease_of(name, until):
    return ChangeSet(leases=(Lease(name, "another", until),), leases_before={name: None})


async def test_a_job_runs_without_a_lease_where_the_disk_has_no_room_for_one(folder, monkeypatch):
    async with ports_over(open_duckdb(folder, min_free_bytes=64 << 20)) as ports:
        gone = entry("long gone", delete_time=NOW - timedelta(days=40), purge_time=NOW - timedelta(days=10))
        await ports.store.commits.write(ChangeSet(inserts=(gone,)))
        reserve = folder / "memory.duckdb.reserve"
        monkeypatch.setattr(FreeSpace, "bytes", property(lambda _: 0 if reserve.exists() else 4 << 20))
        assert await jobs.lease("gc", "run", ports.store, NOW, ran=None)
        assert {} == await ports.store.work.leases()
        assert 1 == (await collect(ports, now=NOW)).deleted_count
        assert await located(ports.store, gone.memory.id) is None


async def test_a_lease_that_could_not_be_taken_is_taken_once_there_is_room(folder, clock, monkeypatch):
    monkeypatch.setattr(jobs, "RENEW_S", 0.01)
    async with ports_over(open_duckdb(folder, min_free_bytes=64 << 20)) as ports:
        room = {"bytes": 4 << 20}
        monkeypatch.setattr(FreeSpace, "bytes", property(lambda _: room["bytes"]))

        async def work(progress):
            room["bytes"] = 1 << 40
            for _ in range(200):
                await asyncio.sleep(0.01)
                if "gc" in await ports.store.work.leases():
                    return {"held": 1}
            raise AssertionError("nobody holds the lease")

        runner = jobs.Jobs(ports, Config(), {"gc": jobs.Job("gc", "", work)}, clock)
        done = await runner.run("gc", trigger="call")
        assert {"held": 1} == done.counts
        assert {} == await ports.store.work.leases()


async def test_a_mark_counts_only_for_what_was_seen(folder):
    for store in (ram_store(), open_duckdb(folder)):
        await store.commits.write(ChangeSet(marks={"gc": NOW}))
        for wrong in ({"gc": None}, {"gc": NOW, "decay": NOW}):
            with pytest.raises(Contended):
                await store.commits.write(ChangeSet(marks={"gc": NOW + timedelta(days=1)}, marks_before=wrong))
        assert (NOW, None) == ((await store.work.marks())["gc"], (await store.work.marks()).get("decay"))
        now = NOW + timedelta(days=1)
        right = ChangeSet(marks={"gc": now}, marks_before={"gc": NOW, "decay": None})
        twice = await asyncio.gather(store.commits.write(right), store.commits.write(right), return_exceptions=True)
        assert [type(None), Contended] == [type(result) for result in twice]
        assert now == (await store.work.marks())["gc"]
        await store.close()


def test_the_daemon_runs_what_is_due(folder):
    config = '[embedding]\nprovider = "none"\n[schedule]\ndecay = "* * * * *"\ncompaction = ""\n'
    program = "import memoryd.daemon.jobs as d\nd.LOOK_S = 0.5\nfrom memoryd.__main__ import main\nmain()"
    daemon = Daemon(folder, config=config)
    with daemon.log.open("ab") as log:
        process = subprocess.Popen([sys.executable, "-c", program, *daemon.command("serve")[3:]], stderr=log)
    for _ in range(2):  # a cron's minute, and then some
        until(lambda: '"job": "decay"' in daemon.log.read_text())
    process.terminate()
    assert 0 == process.wait(timeout=PATIENCE_S)
    assert '"job": "decay"' in daemon.log.read_text()
