"""Several daemons before one store: each decides on what all have committed, and nothing is done twice or lost."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from memoryd.daemon.config import Config, MemoryConfig
from memoryd.domain.pipeline import ATTEMPTS
from memoryd.domain.writing.add import add
from memoryd.errors import Contended, LimitExceeded, Unavailable
from memoryd.identity.grants import Grants
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, RecordedRequest, Tombstone
from memoryd.model.commits import Applied, Head
from memoryd.model.entity import Entity
from memoryd.model.grant import Quota
from memoryd.model.memory import Draft, Outcome
from memoryd.model.message_draft import MessageDraft
from memoryd.model.query import Filter
from memoryd.model.receipt import MemoriesReceipt, MemoryRef
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.store.recent import RecentChanges
from tests.builders import (
    ALICE,
    BOB,
    NOW,
    STORES,
    Local,
    entry,
    open_kind,
    ports_over,
    ram_store,
    with_ports,
)
from tests.grants_helpers import grant
from tests.shared_store import view_of

OWNER = Owner("default", ALICE)


@asynccontextmanager
async def daemons(store, clock, *, count=2, **memory):
    """Clients for user alice, one for each daemon before a store."""
    async with AsyncExitStack() as stack:
        views = [view_of(store) for _ in range(count)]
        config = Config(memory=MemoryConfig(**memory))
        ports = [await stack.enter_async_context(ports_over(view, config)) for view in views]
        yield [Local(each, clock, user_id="alice") for each in ports]


@pytest.fixture(params=STORES)
async def store(request, folder):
    opened = open_kind(request.param, folder)
    yield opened
    await opened.close()


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


async def test_what_a_grant_may_store_is_counted_over_all_daemons(store, clock):
    async with daemons(store, clock) as clients:
        inside = [Local(one.ports, clock, user_id="alice", grant_id="g1", stored_memories=5) for one in clients]
        outcomes = [(await inside[n % 2].add(f"number{n} apart")).outcome for n in range(8)]
        assert [Outcome.INSERTED] * 5 + [Outcome.REJECTED] * 3 == outcomes


def four_writes_a_day(clients, clock):
    """A grant of so many, each daemon's copy of the grants, and a client of the grant at each."""
    held = grant(quota=Quota(writes_per_day=4))
    copies = [Grants(one.ports.store, [], [], lambda: 0.0, os.urandom, today=NOW.date()) for one in clients]
    return held, copies, [Local(one.ports, clock, user_id="alice", grant_id=held.id) for one in clients]


async def test_the_writes_of_a_day_are_counted_over_all_daemons(store, clock):
    async with daemons(store, clock) as clients:
        held, daemons_grants, inside = four_writes_a_day(clients, clock)
        for n in range(4):
            await daemons_grants[n % 2].charge(held, 1, clock())
            written = await inside[n % 2].add(f"number{n} apart")
        for grants in daemons_grants:
            with pytest.raises(LimitExceeded, match="4 writes a day"):
                await grants.charge(held, 1, clock())
        await inside[1].delete(written.memory.id, purge=True)
        with pytest.raises(LimitExceeded):  # it was written all the same
            await daemons_grants[1].charge(held, 1, clock())


async def test_messages_are_writes_of_a_day_too_at_whichever_daemon_and_after_they_were_erased(store, clock):
    async with daemons(store, clock) as clients:
        held, daemons_grants, inside = four_writes_a_day(clients, clock)
        for n in range(4):
            await daemons_grants[n % 2].charge(held, 1, clock())
            await inside[n % 2].append("t", [MessageDraft(content=f"said {n}")])
            assert [n + 1] * 2 == [(await one.usage(held.id, clock())).writes_today for one in daemons_grants]
        for grants in daemons_grants:
            with pytest.raises(LimitExceeded, match="4 writes a day"):
                await grants.charge(held, 1, clock())
        await clients[0].delete_thread("t")
        with pytest.raises(LimitExceeded):
            await daemons_grants[1].charge(held, 1, clock())


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
    store.commits.memories._recent = RecentChanges(Head(), most_bytes=20_000)
    async with daemons(store, clock) as (one, other):
        await other.add("apple")
        for n in range(30):
            await one.add(f"apple number{n} apart")
        assert await store.commits.memories.changes(OWNER, 1) is None
        assert 20 == len((await other.search("apple", limit=20)).hits)
        assert Outcome.REINFORCED is (await other.add("apple number29 apart")).outcome


async def test_notes_of_requests_in_a_chat_hold_up_nothing_that_is_decided_of_the_user(store, clock):
    async with daemons(store, clock, count=1) as (alice,):
        alice.ports = with_ports(alice.ports, secrets=Counted())
        done = asyncio.Event()
        in_chat = alice.acting_for(user_id="alice", chat_id="team")

        async def share():
            for n in range(1000):
                if done.is_set():
                    return n
                await in_chat.add(f"shared number{n} apart", shared=True, request_id=str(uuid.uuid4()))
            return 1000

        sharing = asyncio.create_task(share())
        await asyncio.sleep(0.05)
        await alice.add_batch([Draft(content=f"personal number{n} apart") for n in range(60)])
        done.set()
        assert await sharing > 1
        assert 60 == alice.ports.guards.secrets.texts["personal"]  # each was prepared once


class Counted:
    """Looks for secrets, finds none, and counts the texts that begin with a word."""

    def __init__(self) -> None:
        self.texts = Counter()

    def __call__(self, texts) -> bool:
        self.texts[next(iter(texts)).partition(" ")[0]] += 1
        return False


async def test_what_is_decided_again_is_not_prepared_again(clock):
    async with daemons(ram_store(), clock, count=1) as (alice,):
        alice.ports = with_ports(alice.ports, secrets=Counted())
        commit, tries = alice.ports.store.commits.write, []

        async def late(*changes):
            tries.append(changes)
            if len(tries) < 4:
                raise Contended("planted")
            await commit(*changes)

        alice.ports.store.commits.write = late
        await alice.add_batch([Draft(content=f"word number{n} apart") for n in range(5)], request_id="r1")
        assert (4, 5) == (len(tries), alice.ports.guards.secrets.texts["word"])


async def test_one_delete_of_many_sent_to_all_at_once_gets_one_answer(store, clock):
    async with daemons(store, clock) as clients:
        await clients[0].add_batch([Draft(content=f"spam number{n}") for n in range(300)])
        once = str(uuid.uuid4())
        results = await asyncio.gather(*(one.delete_matching(text="spam", request_id=once) for one in clients))
        assert 1 == len({result.deleted_ids for result in results})
        assert [] == await contents(clients[0])


async def test_a_purge_of_another_is_taken_out_of_what_is_kept_of_texts(clock):
    async with daemons(ram_store(), clock) as (one, other):
        made = (await one.add("heron at the lighthouse")).memory
        forgotten = []
        other.ports.embedder.forget_queries = lambda: forgotten.append(1)
        await other.search("heron lighthouse")
        assert [] == forgotten
        await one.delete(made.id, purge=True)
        await other.search("anything")
        assert [1] == forgotten


async def test_what_another_adds_with_lower_trust_goes_first_here_too(clock):
    async with daemons(ram_store(), clock, max_entries=4) as (one, other):
        made = [(await one.add(f"of the host, number{n}")).memory for n in range(5)]
        await one.delete(made[-1].id)
        sandbox = Caller(user_id="alice", trust=Trust.SANDBOX)
        await add(Draft(content="of a sandbox"), sandbox, other.ports, now=clock())
        await one.search("fetched")
        await one.add("of the host, number5")
        assert "of a sandbox" not in await contents(other)
        index = one.ports.indexes.ready(OWNER)
        queue = one.ports.shared.victims[index]
        assert len(queue) == len(set(queue))


async def test_an_owner_too_large_for_memory_is_looked_at_again_once_something_is_purged(clock):
    async with daemons(ram_store(), clock) as (one, other):
        drafts = [Draft(content=f"number{n} apart " + "x" * 200, key=f"k{n}") for n in range(150)]  # none repeats one
        made = [result.memory for result in await one.add_batch(drafts)]
        index = await one.ports.indexes.get(OWNER)  # all of the commit: it is brought in by turns
        index.reader.forget()
        size = index.nbytes
        loads, read = [], other.ports.store._store.commits.memories.snapshot
        other.ports.store.commits.memories.snapshot = lambda *given: loads.append(1) or read(*given)
        other.ports.indexes._budget = size // 2
        for _ in range(3):
            assert await other.ports.indexes.get(OWNER) is None
            await one.add(f"one more {len(loads)}")
        assert 1 == len(loads)
        await one.ports.store.commits.write(ChangeSet(purges=tuple(made[:140])))
        assert await other.ports.indexes.get(OWNER) is not None
        assert 2 == len(loads)


async def test_an_index_that_has_missed_a_commit_keeps_nothing_that_is_purged(folder, clock):
    store = open_kind("duckdb", folder)
    store._writer.recent = store.commits.memories._recent = RecentChanges(Head(), most_heads=4)
    async with daemons(store, clock, count=1) as (alice,):
        made = (await alice.add("heron at the lighthouse")).memory
        for n in range(9):
            await alice.acting_for(user_id=f"u{n}").add("of another")
        await alice.ports.store.commits.write(ChangeSet(purges=(made,)))  # nobody asks for the index before
        assert not alice.ports.indexes.holds(made.id)


@pytest.mark.parametrize("often", [3, 100])
async def test_a_write_decides_again_when_others_come_between_and_fails_if_they_always_do(often, store, clock):
    async with daemons(store, clock, count=1) as (alice,):
        commit, tries = alice.ports.store.commits.write, []

        async def late(*changes):
            tries.append(changes)
            if len(tries) <= often:
                await store.commits.write(
                    ChangeSet(inserts=(entry(f"of another {len(tries)}", create_time=clock.now),)),
                )
            await commit(*changes)

        alice.ports.store.commits.write = late
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
        commit = alice.ports.store.commits.write

        async def refused(*_):
            raise fault("planted")

        alice.ports.store.commits.write = refused
        for _ in range(2):
            with pytest.raises(fault):
                await alice.add_batch([Draft(content="never stored"), Draft(content="nor this one")])
        alice.ports.store.commits.write = commit
        made = (await alice.add("stored")).memory
        assert clock.now == made.create_time
        assert ["number1 apart", "number2 apart", "stored"] == await contents(alice)


def change(text, *, scope=ALICE, create_time=NOW, **more):
    return ChangeSet(inserts=(entry(text, scope=scope, create_time=create_time),), **more)


def texts(applied):
    return [made.memory.content for made in applied.change.inserts]


def test_recent_changes_are_bounded_and_never_claim_more_than_they_know():
    recent = RecentChanges(Head(10, NOW), most_bytes=8_000, most_heads=8)
    assert (Applied(10, ChangeSet(), 10), Head(10, NOW)) == (recent.since(OWNER, 10), recent.heads.of(OWNER))
    assert recent.since(OWNER, 9) is None  # before the start
    for seq in range(11, 15):
        recent.add(seq, change(f"{seq}"))
    assert ["13", "14"] == texts(recent.since(OWNER, 12))
    for seq in range(15, 40):
        recent.add(seq, change(f"{seq}"))
    assert recent.since(OWNER, 12) is None
    assert ["38", "39"] == texts(recent.since(OWNER, 37))
    recent.add(40, change("x" * 9_000))  # larger than all that is kept
    assert (None, ()) == (recent.since(OWNER, 39), recent.since(OWNER, 40).change.inserts)
    recent.add(41, change("small again"))
    assert ["small again"] == texts(recent.since(OWNER, 40))
    newest = NOW + timedelta(days=1)
    for n in range(9):
        recent.add(42 + n, change("of another", scope=replace(BOB, user_id=f"u{n}"), create_time=newest))
    assert newest == recent.heads.of(OWNER).newest_create_time  # nor this
    assert 41 <= recent.heads.of(OWNER).commit_seq <= 50  # not known exactly any more: later than it is
    assert (None, ()) == (recent.since(OWNER, 40), recent.since(OWNER, 50).change.inserts)
    with pytest.raises(Contended):
        recent.heads.check([change("y", based_on=40)], set())
    recent.heads.check([change("y", based_on=50), change("z")], set())


def test_recent_changes_are_bounded_whatever_they_are_made_of():
    stones = tuple(Tombstone(OWNER, bytes([n]) * 32) for n in range(100))
    rows = tuple(Entity(f"e{n}", OWNER, NOW, Trust.HOST) for n in range(100))
    request = RecordedRequest(
        OWNER, "DeleteMemory", "r" * 100, "h", MemoriesReceipt((MemoryRef(OWNER, "i" * 26),) * 1000), NOW
    )
    for made in (ChangeSet(tombstones=stones), ChangeSet(lift=stones), ChangeSet(entities=rows)):
        recent = RecentChanges(Head(), most_bytes=200_000)
        for seq in range(1, 20):
            recent.add(seq, replace(made, request=request))
        assert 1 < len(recent._kept) < 10
    recent = RecentChanges(Head())
    recent.add(1, replace(change("kept"), request=request))
    recent.add(2, ChangeSet(request=request))  # which is no change of the owner's state
    assert "iiii" not in repr(recent._kept)
    assert ([1], 1) == ([recent.since(OWNER, 0).commit_seq], recent.heads.of(OWNER).commit_seq)
