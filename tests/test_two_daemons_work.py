"""Several daemons before one store: of what one has to do, one does it, and the others do something else."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memoryd.daemon.config import Config
from memoryd.daemon.jobs import Job, Jobs
from memoryd.domain.claims import LEASE as CLAIM
from memoryd.domain.claims import claim_name
from memoryd.domain.conversation.embed import MessageEmbedder
from memoryd.domain.forgetting.elsewhere import PurgesElsewhere
from memoryd.domain.pages import LEASE as PAGE_LEASE
from memoryd.domain.pages import done, free, taken
from memoryd.domain.writing.reembed import Reembedder
from memoryd.errors import Conflict
from memoryd.learning.follow import Learner
from memoryd.learning.host_worker import LEASE, complete_session, session_messages
from memoryd.learning.nightly import complete
from memoryd.model.change import ChangeSet
from memoryd.model.conversation import SessionState
from memoryd.model.learnt import SessionKey
from memoryd.model.memory import Draft, Kind
from memoryd.model.message_draft import MessageDraft
from memoryd.model.query import Filter
from memoryd.model.scope import Owner
from memoryd.model.talk import MessageSearch
from memoryd.model.work import CounterName, Lease, RunState
from memoryd.store.ram.state import _leases_after as leases_after
from tests.builders import ALICE, NOW, STORES, HashEncoder, Local, open_kind, ports_over
from tests.shared_store import comes_between, view_of
from tests.support import PATIENCE_S

OWNER = Owner("default", ALICE)


@pytest.fixture(params=STORES)
async def store(request, folder):
    opened = open_kind(request.param, folder)
    yield opened
    await opened.close()


@pytest.fixture
async def daemons(store):
    """Ports of three daemons."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(ports_over(view_of(store))) for _ in range(3)]


async def ended_session(ports, clock, thread_id="t"):
    """A session that waits to be learnt from."""
    host = Local(ports, clock, user_id="alice")
    await host.append(thread_id, [MessageDraft(content="hello there")])
    ended = await host.end_session(thread_id)
    return SessionKey(OWNER, thread_id, ended.id)


async def test_a_session_that_workers_of_all_daemons_want_at_once_is_leased_to_one(daemons, clock):
    for n in range(5):
        key = await ended_session(daemons[0], clock, f"t{n}")
        asked = (session_messages(key, f"worker{n}", daemons[n % 3], now=clock(), page_size=10) for n in range(6))
        got = await asyncio.gather(*asked, return_exceptions=True)
        leased = [one[2].lease_by for one in got if not isinstance(one, BaseException)]
        assert 1 == len(leased), got
        assert all(isinstance(one, Conflict) for one in got if isinstance(one, BaseException))
        known = await daemons[1].store.conversations.session(OWNER, f"t{n}", key.session_id)
        assert leased == [known.lease_by]


async def test_a_session_that_goes_on_at_one_while_it_is_completed_at_another_is_not_lost(daemons, clock):
    one, other, _ = daemons
    key = await ended_session(one, clock)
    await session_messages(key, "worker", other, now=clock())
    host = Local(one, clock, user_id="alice")
    more = [MessageDraft(content="and one thing more")]
    comes_between(other.store, lambda: host.append("t", more, session_id=key.session_id))
    with pytest.raises(Conflict, match="goes on"):
        await complete_session(key, "worker", other, now=clock())
    [session] = (await host.sessions("t")).sessions
    assert (SessionState.OPEN, 2) == (session.state, session.message_count)


async def test_a_night_completes_no_session_that_goes_on_elsewhere(daemons, clock):
    one, other, _ = daemons
    key = await ended_session(one, clock)
    known = await other.store.conversations.session(OWNER, "t", key.session_id)
    host = Local(one, clock, user_id="alice")
    more = [MessageDraft(content="and one thing more")]
    comes_between(other.store, lambda: host.append("t", more, session_id=key.session_id))
    await complete(known, other, now=clock())
    assert SessionState.OPEN is (await one.store.conversations.session(OWNER, "t", key.session_id)).state


async def test_a_lease_that_has_ended_is_taken_by_another_and_only_that_one_completes(daemons, clock):
    one, other, third = daemons
    key = await ended_session(one, clock)
    await session_messages(key, "first", one, now=clock())
    later = clock() + 3 * LEASE + timedelta(seconds=1)
    await session_messages(key, "second", other, now=later)
    with pytest.raises(Conflict, match="second works on"):
        await complete_session(key, "first", third, now=later)
    done = await complete_session(key, "second", third, now=later)
    assert SessionState.DONE is done.state


def jobs_of(daemons, clock, run) -> list[Jobs]:
    return [Jobs(ports, Config(), {"gc": Job("gc", "x", run)}, clock) for ports in daemons]


async def test_a_job_is_run_by_one_of_all_that_start_it_at_once(daemons, clock):
    ran = []

    async def count(progress):
        ran.append(progress)
        await asyncio.sleep(0.05)
        return {}

    copies = jobs_of(daemons, clock, count)
    got = await asyncio.gather(*(jobs.start("gc") for jobs in copies), return_exceptions=True)
    assert 2 == sum(isinstance(one, Conflict) for one in got)
    for jobs in copies:
        await jobs.stop()
    assert 1 == len(ran)


async def test_a_run_is_stopped_through_any_daemon(daemons, clock, monkeypatch):
    monkeypatch.setattr("memoryd.daemon.jobs.LOOK_FOR_STOP_S", 0.02)

    async def long(progress):
        progress.counts["moved"] = 1
        await asyncio.sleep(PATIENCE_S)
        return {}

    one, other, _ = jobs_of(daemons, clock, long)
    begun = await one.start("gc")
    told = await other.cancel(begun.id[:12])
    assert (RunState.RUNNING, True) == (told.state, told.stop_requested)
    await asyncio.wait_for(asyncio.wait([one._running["gc"][2]]), PATIENCE_S / 2)
    run = await other.find(begun.id)
    assert (RunState.CANCELLED, {"moved": 1}, False) == (run.state, dict(run.counts), run.stop_requested)
    assert run == await other.cancel(begun.id)  # what has ended stays as it is


async def test_what_one_purges_leaves_the_memory_of_all_though_no_one_asks(daemons, clock):
    hosts = [Local(ports, clock, user_id="alice") for ports in daemons]
    kept, gone = [(await hosts[0].add(text)).memory for text in ("heron at the lighthouse", "my code is 4711")]
    await hosts[0].append("t", [MessageDraft(content="the code is 4711 indeed")])
    await hosts[0].put_note("codes/door", "4711", is_searched=True)
    for host in hosts:
        assert 2 == len((await host.search("code heron")).hits)
        await host.search_messages(MessageSearch(text="code"))
        await host.search("4711", filter=Filter(kinds=frozenset({Kind.NOTE})))
    looks = [PurgesElsewhere(ports) for ports in daemons]
    assert [0, 0, 0] == [await look.look() for look in looks]
    await hosts[0].delete(gone.id, purge=True)
    await hosts[0].delete_thread("t")
    await hosts[0].delete_notes("codes/door")
    told = []
    daemons[1].indexes.on_lost(lambda: told.append(1))
    held = [ports.indexes.holds(gone.id) for ports in daemons]
    assert [False, True, True] == held  # unserved, but there
    dropped = [await look.look() for look in looks]
    assert [0, 3, 3] == dropped, "the indexes of memories, of messages and of notes"
    assert [False] * 3 == [ports.indexes.holds(gone.id) for ports in daemons]
    assert [1] == told
    assert [0, 0, 0] == [await look.look() for look in looks]
    for host in hosts:
        assert [kept.id] == [hit.memory.id for hit in (await host.search("code heron")).hits]


async def many_messages(ports, clock, count: int) -> None:
    host = Local(ports, clock, user_id="alice")
    for n in range(0, count, 32):
        drafts = [MessageDraft(content=f"said {k}") for k in range(n, min(count, n + 32))]
        await host.append(f"t{n % 5}", drafts)


def counted(daemons, clock):
    """An embedder of messages of each daemon, and how many texts each has embedded."""
    made = [Counter() for _ in daemons]
    for ports, texts_of in zip(daemons, made, strict=True):
        documents = ports.embedder.documents

        async def count(texts, texts_of=texts_of, documents=documents, **more):
            texts_of.update(texts)
            await asyncio.sleep(0.02)  # as a model takes its time, the others find pages of their own
            return await documents(texts, **more)

        ports.embedder.documents = count
    return [MessageEmbedder(ports, clock, print) for ports in daemons], made


async def test_each_daemon_embeds_messages_of_its_own(daemons, clock):
    await many_messages(daemons[0], clock, 1000)
    embedders, made = counted(daemons, clock)

    async def embed_all(embedder):
        while await embedder.step():
            pass

    await asyncio.gather(*map(embed_all, embedders))
    every = sum(made, Counter())
    assert 1000 == len(every) == every.total(), "each text once"
    assert 2 <= sum(one.total() >= 128 for one in made)
    work = daemons[0].store.work
    assert {} == await work.leases()
    assert 0 == await embedders[1].pending()
    found = await Local(daemons[2], clock, user_id="alice").search_messages(MessageSearch(text="said 977"))
    assert "said 977" in [hit.message.content for hit in found.hits]


async def test_a_page_whose_daemon_has_gone_is_embedded_by_another_and_the_rest_is_kept(daemons, clock):
    await many_messages(daemons[0], clock, 300)
    (gone, other, third), made = counted(daemons, clock)

    async def killed(*given, **more):
        raise asyncio.CancelledError

    documents, daemons[0].embedder.documents = daemons[0].embedder.documents, killed
    with pytest.raises(asyncio.CancelledError):
        await gone.step()
    daemons[0].embedder.documents = documents
    while await other.step():  # what comes after that page
        pass
    assert 300 - 128 == made[1].total()
    assert 300 == await third.pending()
    clock.now += 2 * PAGE_LEASE
    while await third.step():
        pass
    assert (128, 0) == (made[2].total(), await third.pending())
    assert {} == await daemons[0].store.work.leases()


async def test_a_daemon_that_was_taken_for_gone_writes_nothing_twice(daemons, clock):
    await many_messages(daemons[0], clock, 128)
    (slow, other, _), made = counted(daemons, clock)
    documents = daemons[0].embedder.documents

    waits = [True]

    async def late(texts, **more):
        if waits.pop() if waits else False:
            clock.now += 2 * PAGE_LEASE
            while await other.step():
                pass
        return await documents(texts, **more)

    daemons[0].embedder.documents = late
    assert await slow.step()
    assert not await slow.step()
    assert 128 == made[1].total()
    assert {} == await daemons[0].store.work.leases()


@given(st.lists(st.tuples(st.sampled_from(["take", "end", "die", "later"]), st.integers(0, 3)), max_size=60))
@example([("take", 2), ("take", 0), ("later", 0), ("take", 1), ("take", 3), ("end", 0), ("end", 3), ("end", 1)])
def test_pages_are_each_done_once_whatever_order_they_end_in(steps):
    queue, last, now = CounterName("q"), 50, NOW
    counter, leases, hands, ended = 0, {}, {}, []

    def written(change):
        nonlocal counter, leases
        assert change.counters_before == {queue: counter}
        assert all(leases.get(name) == before for name, before in change.leases_before.items())
        leases = leases_after(leases, change)
        counter = change.counters.get(queue, counter)

    for what, who in steps:
        if what == "later":
            now += PAGE_LEASE
        elif what == "die":
            hands.pop(who, None)
        elif what == "take" and who not in hands:
            after, until = free(queue, counter, leases, now)
            end = min(after + 5, last if until is None else min(until, last))
            if end > after:
                lease, change = taken(queue, counter, (after, end), f"d{who}", leases, now)
                written(change)
                hands[who] = ((after, end), lease)
        elif what == "end" and who in hands:
            page, lease = hands.pop(who)
            change = done(queue, counter, page, lease, leases, now)
            if change is not None:
                written(change)
                ended.append(page)
    numbers = [n for first, end in ended for n in range(first, end)]
    assert len(numbers) == len(set(numbers))
    assert set(range(counter)) <= set(numbers)
    assert all(int(name.partition("@")[2]) >= counter for name in leases)


class Costly:
    """An extractor that is paid for each exchange, and takes its time."""

    name = "costly"

    def __init__(self, read: list) -> None:
        self.read = read

    async def extract(self, exchange):
        self.read += [message.id for message in exchange.new]
        await asyncio.sleep(0.02)
        return []


async def test_of_the_threads_that_wait_each_is_read_at_one_daemon(daemons, clock):
    for n in range(12):
        host = Local(daemons[0], clock, user_id=f"user{n % 4}")
        await host.append(f"t{n}", [MessageDraft(content=f"said {n} {k}") for k in range(3)])
    clock.now += timedelta(minutes=1)
    read: list[list[str]] = [[], [], []]
    told: list[str] = []
    learners = [
        Learner(ports, Costly(some), clock, told.append, wait_s=0)
        for ports, some in zip(daemons, read, strict=True)
    ]  # fmt: skip

    async def learn(learner):
        while await learner.step():
            pass

    await asyncio.gather(*map(learn, learners))
    await learn(learners[0])  # what the others had in hand when this one looked
    counted = Counter(message_id for some in read for message_id in some)
    assert (36, 36) == (len(counted), counted.total()), "each message is paid for once"
    assert 2 <= sum(map(bool, read))
    assert ([], {}) == (told, await daemons[0].store.work.leases())


async def test_a_language_model_that_a_killed_daemon_had_asked_is_asked_again_once_its_claim_has_ended(daemons, clock):
    await Local(daemons[0], clock, user_id="alice").append("t", [MessageDraft(content="said once")])
    clock.now += timedelta(minutes=1)
    read: list[str] = []
    learner = Learner(daemons[1], Costly(read), clock, print, wait_s=0)
    name = claim_name(learner.kind, OWNER)
    await daemons[0].store.commits.write(
        ChangeSet(leases=(Lease(name, "killed", clock() + CLAIM),), leases_before={name: None})
    )
    assert 0 == await learner.step()
    clock.now += CLAIM + timedelta(seconds=1)
    assert 1 == await learner.step()
    assert 1 == len(read)


async def test_memories_are_embedded_anew_by_all_daemons_together(store, clock, monkeypatch):
    monkeypatch.setattr("memoryd.domain.writing.reembed.LOOK_AGAIN_S", 0.02)
    async with ports_over(view_of(store), close=False) as ports:
        for n in range(4):
            host = Local(ports, clock, user_id=f"user{n}")
            await host.add_batch([Draft(content=f"number{n} {k} apart") for k in range(250)])

    class Other(HashEncoder):
        fingerprint = "another-hash-of-words-32"

    async with AsyncExitStack() as stack:
        daemons = [await stack.enter_async_context(ports_over(view_of(store), encoder=Other())) for _ in range(3)]
        _, made = counted(daemons, clock)
        passes = [Reembedder(ports, clock, lambda *_: None) for ports in daemons]

        async def whole_pass(one):
            while await one._step():
                pass

        await asyncio.gather(*map(whole_pass, passes))
        assert [0, 0, 0] == [await one.pending() for one in passes]
        every = sum(made, Counter())
        assert 1000 == len(every)
        assert every.total() < 2000, "a page that is written in part may be begun by another too, not all by two"
        assert 2 <= sum(bool(one) for one in made)
        assert {} == await daemons[0].store.work.leases()
