"""A caller who goes away, a grant that ends, a store that closes: what is whole, and what is not begun."""

from __future__ import annotations

import asyncio
import os
import threading
import time

import pytest

from memoryd import turns
from memoryd.domain.completion import run_to_completion
from memoryd.domain.forgetting.sweep import Match, forget_matching
from memoryd.domain.retrieval.presentation import present
from memoryd.domain.scopes import Scopes
from memoryd.domain.writing.add import add, add_batch
from memoryd.errors import Contended, Unauthenticated, Unavailable
from memoryd.identity.grants import Grants
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet
from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.memory import Draft
from memoryd.model.scope import Owner
from tests.builders import ALICE, NOW, entry, memory, open_duckdb, ports_over, ram_store, visible_to, with_ports

OWNER = Owner("default", ALICE)
CALLER = Caller(user_id="alice")


async def stored(ports, count: int) -> None:
    await ports.store.commits.write(ChangeSet(inserts=tuple(entry(f"spam {n}") for n in range(count))))


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_a_delete_of_many_whose_caller_goes_is_whole_or_not_begun(monkeypatch, after):
    """Its caller goes as commit number `after` begins; 0: while it waits for the lock."""
    async with ports_over(ram_store()) as ports:
        await stored(ports, 500)
        commit, commits, done = ports.store.commits.write, [], []

        async def counted(change):
            commits.append(change)
            if len(commits) == after:
                caller.cancel()
                await asyncio.sleep(0.01)
            await commit(change)
            done.append(change)

        monkeypatch.setattr(ports.store.commits, "write", counted)

        async def delete(request_id="r1"):
            return await forget_matching(Match(text="spam"), CALLER, ports, now=NOW, request_id=request_id)

        await ports.indexes.get(OWNER)
        caller = asyncio.create_task(run_to_completion(delete()))
        if not after:
            async with ports.shared.locks.hold([OWNER]):  # it waits for its turn
                await asyncio.sleep(0.01)
                caller.cancel()
                await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await caller
        for _ in range(200):
            await asyncio.sleep(0.01)
            if len(done) == (4 if after else 0):
                break
        monkeypatch.undo()
        live = await ports.store.memories.page(visible_to(ALICE), Match(text="spam").filter, now=NOW, limit=1000)
        assert (0 if after else 500) == len(live)
        assert 500 == (await delete()).deleted_count  # the same request again: its first answer, or all of it now


async def test_a_write_that_others_always_come_before_ends_when_its_caller_goes(monkeypatch):
    async with ports_over(ram_store()) as ports:
        tries = []

        async def refused(*changes):
            tries.append(changes)
            if len(tries) == 2:
                caller.cancel()
                await asyncio.sleep(0)
            raise Contended("planted")

        monkeypatch.setattr(ports.store.commits, "write", refused)
        caller = asyncio.create_task(run_to_completion(add(Draft(content="x"), CALLER, ports, now=NOW)))
        with pytest.raises(asyncio.CancelledError):
            await caller
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert 2 == len(tries)


@pytest.mark.parametrize("content", ["I like tea", "My password is hunter2-Xk9!vQ"])
async def test_a_grant_that_has_ended_gets_no_answer_whatever_becomes_of_the_statement(content):
    async with ports_over(ram_store()) as open_ports:
        grants = Grants(open_ports.store, [], [], time.monotonic, os.urandom, today=NOW.date())
        ports = with_ports(open_ports, grants=grants)
        gone = Caller(user_id="alice", grant_id="g" * 26)
        with pytest.raises(Unauthenticated):
            await add(Draft(content=content), gone, ports, now=NOW)


async def test_a_call_holds_no_index_that_was_dropped_while_it_waited():
    async with ports_over(ram_store()) as ports:
        tom = Mention("t" * 26, "Tom Baker", Form.NAME, EntityType.PERSON, about=True)
        memories = [memory(f"Tom Baker is tall {n}", mentions=(tom,)) for n in range(300)]
        await ports.store.commits.write(ChangeSet(inserts=tuple(map(entry, memories))))
        scopes = Scopes(ports)
        assert 1 == len(await scopes.people(OWNER))
        held = await scopes.index(OWNER)
        await ports.store.commits.write(ChangeSet(purges=tuple(memories)))  # too many to erase in place
        assert 0 == len(await scopes.people(OWNER))
        assert held is not await scopes.index(OWNER)


async def test_a_store_that_closes_refuses_reads_at_once(folder):
    store = open_duckdb(folder)
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await store.people.entities(OWNER)
    await asyncio.gather(closing, store.close())


async def test_long_labels_are_searched_for_secrets_in_a_thread_and_long_lists_are_shown_in_turns(clock, monkeypatch):
    """What a sandbox may send must not hold up the loop, on which everybody is served."""
    seen = []

    def detector(_texts) -> bool:
        seen.append(threading.current_thread() is threading.main_thread())
        return False

    async with ports_over(ram_store()) as open_ports:
        ports = with_ports(open_ports, secrets=detector)
        labels = {f"k{n}": "my pin code is not " * 10 for n in range(30)}
        short, labelled = Draft(content="x"), Draft(content="x", metadata=labels)
        await add(short, CALLER, ports, now=NOW)
        await add_batch([labelled, labelled], CALLER, ports, now=NOW)
        assert [True, False, False] == seen

        served, going = [], asyncio.Event()

        async def others():
            while not going.is_set():
                served.append(1)
                await asyncio.sleep(0)

        task = asyncio.create_task(others())
        await asyncio.sleep(0)
        before = len(served)
        await present([memory(f"number {n}") for n in range(32)], CALLER, ports, NOW)
        assert len(served) - before < 32  # short ones share a turn
        monkeypatch.setattr(turns, "TURN_S", 0.0)
        before = len(served)
        await present([memory(f"number {n}") for n in range(32)], CALLER, ports, NOW)
        assert len(served) - before >= 32
        going.set()
        await task
