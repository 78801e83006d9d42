"""Several daemons before one store: each decides on what all have committed, and nothing is done twice or lost."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from memoryd.daemon.config import Config, MemoryConfig
from memoryd.domain.pipeline import ATTEMPTS
from memoryd.errors import Contended, Unavailable
from memoryd.model.change import ChangeSet, Head
from memoryd.model.memory import Draft, Outcome
from memoryd.model.query import Filter
from memoryd.model.scope import Owner
from memoryd.store.recent import RecentChanges
from tests.builders import ALICE, BOB, NOW, Local, entry, open_duckdb, ports_over, ram_store
from tests.shared_store import StoreView

OWNER = Owner("default", ALICE)


@asynccontextmanager
async def daemons(store, clock, *, count=2, **memory):
    """Clients for user alice, one for each daemon before a store."""
    async with AsyncExitStack() as stack:
        views = [StoreView(store) for _ in range(count)]
        config = Config(memory=MemoryConfig(**memory))
        ports = [await stack.enter_async_context(ports_over(view, config)) for view in views]
        yield [Local(each, clock, user_id="alice") for each in ports]


@pytest.fixture(params=["ram", "duckdb"])
def store(request, folder):
    return ram_store() if request.param == "ram" else open_duckdb(folder)


async def contents(client, **wanted):
    return sorted(memory.content for memory in (await client.page(page_size=100, filter=Filter(**wanted))).memories)


async def test_one_statement_told_to_all_at_once_is_stored_once(store, clock):
    async with daemons(store, clock, count=3) as clients:
        calls = [clients[n % 3].add("the team ships on Friday") for n in range(12)]
        outcomes = [result.outcome for result in await asyncio.gather(*calls)]
        assert (1, 11) == (outcomes.count(Outcome.INSERTED), outcomes.count(Outcome.REINFORCED))
        assert [["the team ships on Friday"]] * 3 == [await contents(one) for one in clients]


async def test_one_request_sent_to_all_at_once_is_carried_out_once(store, clock):
    async with daemons(store, clock, count=3) as clients:
        once, batch = str(uuid.uuid4()), [Draft(content=f"item {n}") for n in range(20)]
        results = await asyncio.gather(*(one.add_batch(batch, request_id=once) for one in clients))
        ids = {tuple(item.memory.id for item in result) for result in results}
        assert (1, 20) == (len(ids), len(await contents(clients[0])))
        assert {Outcome.INSERTED} == {item.outcome for result in results for item in result}


async def test_of_a_key_that_all_write_at_once_one_value_is_live(store, clock):
    async with daemons(store, clock, count=3) as clients:
        await asyncio.gather(*(clients[n % 3].add(f"colour {n}", key="colour") for n in range(9)))
        assert [1] * 3 == [len(await contents(one)) for one in clients]
        assert 9 == len(await contents(clients[0], include_superseded=True))


async def test_a_full_scope_stays_within_its_cap(store, clock):
    async with daemons(store, clock, max_entries=5) as clients:
        await asyncio.gather(*(clients[n % 2].add(f"number{n} apart") for n in range(14)))
        assert [5, 5] == [len(await contents(one)) for one in clients]


async def test_what_one_purges_no_other_finds_or_brings_back(store, clock):
    async with daemons(store, clock) as (one, other):
        made = [(await one.add(f"apple number{n}")).memory for n in range(3)]
        assert 3 == len((await other.search("apple")).hits)
        await asyncio.gather(*(one.delete(memory.id, purge=True) for memory in made[:2]), other.add("apple pie"))
        assert ["apple number2", "apple pie"] == sorted(h.memory.content for h in (await other.search("apple")).hits)
        assert not other.ports.indexes.holds(made[0].id)


async def test_an_index_that_has_missed_more_than_is_kept_is_loaded_again(clock):
    store = ram_store()
    store._recent = RecentChanges(Head(), most_bytes=20_000)
    async with daemons(store, clock) as (one, other):
        await other.add("apple")
        for n in range(30):
            await one.add(f"apple number{n} apart")
        assert await store.changes(OWNER, 1) is None
        assert 20 == len((await other.search("apple", limit=20)).hits)
        assert Outcome.REINFORCED is (await other.add("apple number29 apart")).outcome


@pytest.mark.parametrize("often", [3, 100])
async def test_a_write_decides_again_when_others_come_between_and_fails_if_they_always_do(often, store, clock):
    async with daemons(store, clock, count=1) as (alice,):
        commit, tries = alice.ports.store.commit, []

        async def late(*changes):
            tries.append(changes)
            if len(tries) <= often:
                await store.commit(ChangeSet(inserts=(entry(f"of another {len(tries)}", create_time=clock.now),)))
            await commit(*changes)

        alice.ports.store.commit = late
        if often == 3:
            made = (await alice.add("mine")).memory
            assert (clock.now + timedelta(microseconds=1), 4) == (
                made.create_time,
                len(tries),
            )  # after those of others
        else:
            with pytest.raises(Contended) as caught:
                await alice.add("mine")
            assert (True, ATTEMPTS) == (isinstance(caught.value, Unavailable), len(tries))  # clients send it again
        assert (often == 3) == ("mine" in await contents(alice))


@pytest.mark.parametrize("fault", [Unavailable, Contended])
async def test_a_write_that_is_not_committed_leaves_no_trace(fault, clock):
    async with daemons(ram_store(), clock, max_entries=3) as (alice, _):
        for n in range(3):
            await alice.add(f"number{n} apart")
            clock.pass_days(1)
        commit = alice.ports.store.commit

        async def refused(*_):
            raise fault("planted")

        alice.ports.store.commit = refused
        for _ in range(2):
            with pytest.raises(fault):
                await alice.add_batch([Draft(content="never stored"), Draft(content="nor this one")])
        alice.ports.store.commit = commit
        made = (await alice.add("stored")).memory
        assert clock.now == made.create_time
        assert ["number1 apart", "number2 apart", "stored"] == await contents(alice)


def change(text, *, scope=ALICE, **more):
    return ChangeSet(inserts=(entry(text, scope=scope),), **more)


def test_recent_changes_are_bounded_and_never_claim_more_than_they_know():
    recent = RecentChanges(Head(10, NOW), most_bytes=8_000, most_heads=8)
    assert ([], Head(10, NOW)) == (recent.since(OWNER, 10), recent.heads.of(OWNER))
    assert recent.since(OWNER, 9) is None  # before the start
    for seq in range(11, 15):
        recent.add(seq, change(f"{seq}"))
    assert [13, 14] == [applied.commit_seq for applied in recent.since(OWNER, 12)]
    for seq in range(15, 40):
        recent.add(seq, change(f"{seq}"))
    assert recent.since(OWNER, 12) is None
    assert [38, 39] == [applied.commit_seq for applied in recent.since(OWNER, 37)]
    recent.add(40, change("x" * 9_000))  # larger than all that is kept
    assert (None, []) == (recent.since(OWNER, 39), recent.since(OWNER, 40))
    recent.add(41, change("small again"))
    assert [41] == [applied.commit_seq for applied in recent.since(OWNER, 40)]
    for n in range(9):
        recent.add(42 + n, change("of another", scope=replace(BOB, user_id=f"u{n}")))
    assert 41 <= recent.heads.of(OWNER).commit_seq <= 50  # not known exactly any more: later than it is
    assert (None, []) == (recent.since(OWNER, 40), recent.since(OWNER, 50))
    with pytest.raises(Contended):
        recent.heads.check([change("y", based_on=40)])
    recent.heads.check([change("y", based_on=50), change("z")])
