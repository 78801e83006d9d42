"""What is counted of the calls and writes of a grant."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta

import pytest

from memoryd.errors import LimitExceeded
from memoryd.identity.grants import Grants
from memoryd.model.change import ChangeSet
from memoryd.model.grant import Quota
from memoryd.store.duckdb import writer
from memoryd.store.duckdb.usage import counted_on
from tests.builders import NOW, entry, memory, open_duckdb, ports_over, ram_store
from tests.grants_helpers import grant


async def test_calls_a_second_are_a_bucket_that_fills_again():
    async with ports_over(ram_store()) as ports:
        times = [0.0]
        grants = Grants(ports.store, [], [], lambda: times[0], os.urandom, today=NOW.date())
        held = grant(quota=Quota(calls_per_second=2))
        for _ in range(2):
            await grants.charge(held, 0, NOW)
        with pytest.raises(LimitExceeded, match=r"wait 0\.50 s") as caught:
            await grants.charge(held, 0, NOW)
        assert "calls_per_second" == caught.value.limit
        times[0] = 0.5
        await grants.charge(held, 0, NOW)
        with pytest.raises(LimitExceeded):
            await grants.charge(held, 0, NOW)
        times[0] = 1000.0
        for _ in range(2):
            await grants.charge(held, 0, NOW)
        with pytest.raises(LimitExceeded):
            await grants.charge(held, 0, NOW)


async def test_writes_a_day_begin_anew_at_midnight_utc_and_never_as_a_clock_steps_back():
    async with ports_over(ram_store()) as ports:
        grants = Grants(ports.store, [], [], lambda: 0.0, os.urandom, today=NOW.date())
        held = grant(quota=Quota(writes_per_day=3))
        await grants.charge(held, 2, NOW)
        with pytest.raises(LimitExceeded, match="3 writes a day"):
            await grants.charge(held, 2, NOW)
        with pytest.raises(LimitExceeded, match="counts as 4 writes .* allows 3 a day; send less"):
            await grants.charge(held, 4, NOW)
        await grants.charge(held, 1, NOW)
        with pytest.raises(LimitExceeded):
            await grants.charge(held, 1, NOW - timedelta(days=1))
        await grants.charge(held, 3, NOW + timedelta(days=1))
        assert 3 == (await grants.usage(held.id, NOW)).writes_today


async def test_calls_that_wait_for_the_first_count_of_a_day_share_it_and_use_up_no_more_than_there_is(
    folder, monkeypatch
):
    counted = []
    monkeypatch.setattr(writer, "counted_on", lambda con, day: counted.append(day) or counted_on(con, day))
    async with ports_over(open_duckdb(folder)) as ports:
        grants = Grants(ports.store, [], [], lambda: 0.0, os.urandom, today=NOW.date())
        held = grant(quota=Quota(writes_per_day=5))
        cancelled = asyncio.create_task(grants.charge(held, 1, NOW))
        await asyncio.sleep(0)
        cancelled.cancel()
        each = await asyncio.gather(*(grants.charge(held, 2, NOW) for _ in range(6)), return_exceptions=True)
        assert [None] * 2 + [LimitExceeded] * 4 == [one and type(one) for one in each]
        assert 4 == (await grants.usage(held.id, NOW)).writes_today
        assert [NOW.date()] == counted


async def test_what_was_written_before_the_start_is_not_given_back_by_a_purge():
    async with ports_over(ram_store()) as ports:
        written = entry(memory("text", grant_id="g1", create_time=NOW))
        await ports.store.commits.write(ChangeSet(inserts=(written,)))
        grants = Grants(ports.store, [], [], lambda: 0.0, os.urandom, today=NOW.date())
        await ports.store.commits.write(ChangeSet(purges=(written.memory,)))
        assert 1 == (await grants.usage("g1", NOW)).writes_today


async def test_a_row_that_counts_nothing_any_more_is_removed(folder):
    async with ports_over(open_duckdb(folder)) as ports:
        written = [entry(f"statement {n}", grant_id=f"g{n}") for n in range(2)]
        await ports.store.commits.write(ChangeSet(inserts=tuple(written)))
        await ports.store.commits.write(ChangeSet(purges=(written[0].memory,)))
        left = await ports.store._readers.read(ports.store._readers.rows, "SELECT grant_id FROM usage", [])
        assert [("g1",)] == [tuple(row) for row in left]
