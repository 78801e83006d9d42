"""Long work goes in turns, and a short call beside it does not wait for one at each of its steps."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from dataclasses import replace

from memoryd import turns
from memoryd.domain.rules import Rules
from memoryd.domain.writing import evict
from memoryd.domain.writing.judge import Known, Neighbour, Offer, contested_by, judge
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.read_statement import Reader
from memoryd.model.call_context import CallContext, in_call
from memoryd.model.memory import Draft, Outcome
from memoryd.model.trust import Trust
from memoryd.turns import TURN_S, in_turns
from tests.builders import NOW, entry, memory, open_duckdb, ports_over, ram_store


def busy(duration_s: float) -> None:
    until = time.perf_counter() + duration_s
    while time.perf_counter() < until:
        pass


async def test_a_short_call_of_many_steps_waits_for_few_turns_of_long_work():
    begun, seen = asyncio.Event(), []

    async def long_work() -> None:
        async for n in in_turns(range(200)):
            begun.set()
            seen.append(n)
            busy(1.5 * TURN_S)

    async def short_call() -> int:
        before = len(seen)
        for _ in range(40):
            busy(0.0002)
            await asyncio.sleep(0)
        return len(seen) - before

    work = asyncio.create_task(long_work())
    await begun.wait()
    waited = await short_call()
    assert 1 <= waited <= 12  # a turn a step would be 40
    await work
    assert list(range(200)) == seen


async def test_two_long_works_both_go_on():
    counts = {"one": 0, "two": 0}
    over = asyncio.Event()

    async def long_work(name: str) -> None:
        async for _ in in_turns(range(100)):
            busy(1.2 * TURN_S)
            counts[name] += 1
            if over.is_set():
                return
        over.set()

    await asyncio.gather(*map(long_work, counts))
    assert min(counts.values()) > 30


async def rounds_during(work) -> tuple[int, object]:
    """Return how many rounds of the loop others had while some work was done, and its result."""
    rounds, over = 0, False

    async def others() -> None:
        nonlocal rounds
        while not over:
            rounds += 1
            await asyncio.sleep(0)

    beat = asyncio.create_task(others())
    done = await work
    over = True
    await beat
    return rounds, done


async def test_what_a_statement_is_compared_with_is_read_in_turns(monkeypatch):
    monkeypatch.setattr(turns, "TURN_S", 0.0)  # as if each text took long to read
    held = [memory(f"Person {n} lives in Lisbon") for n in range(30)]
    new = memory("Ana lives in Porto")
    beside = Known(neighbours=[Neighbour(one, 0.5, same_subject=False, same_people=False) for one in held])
    offer = Offer(Draft(content="Ana lives in Porto"), new, b"")
    rounds, verdict = await rounds_during(judge(offer, beside, Reader(), now=NOW, rules=Rules()))
    assert Outcome.INSERTED is verdict.outcome
    assert rounds >= 30
    rounds, contested = await rounds_during(contested_by(new, beside.neighbours, Reader(), Rules()))
    assert [] == contested
    assert rounds >= 30


async def test_who_goes_for_a_new_memory_is_the_least_of_all_and_they_are_compared_in_turns(monkeypatch):
    monkeypatch.setattr(turns, "TURN_S", 0.0)
    monkeypatch.setattr(evict, "AHEAD", 3)
    dice = random.Random(4)
    entries = [entry(f"number{n}", confidence=dice.random(), trust=dice.choice([*Trust])) for n in range(300)]
    async with ports_over(ram_store()) as ports:
        index = ScopeIndex([entries])
        chosen = evict.least_valuable(index, ports, 5, set(), NOW, trust=Trust.HOST)
        rounds, victims = await rounds_during(chosen)
    decay = ports.policy.rules.decay
    best_last = sorted((one.memory for one in entries), key=lambda one: evict.worth(one, NOW, decay))
    assert [one.id for one in best_last[:5]] == [one.id for one in victims]
    assert rounds >= 300


async def test_a_grant_that_reads_much_leaves_threads_to_the_others(folder):
    store = open_duckdb(folder)
    readers, go_on = store.memories._readers, threading.Event()
    call = CallContext(time=NOW, call="c", rpc="ListMessages", door="sandbox", grant_id="g")
    try:
        with in_call(call):
            slow = [asyncio.create_task(readers.read(go_on.wait, 20)) for _ in range(8)]
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            assert 1 == await readers.read(lambda: 1)
            with in_call(replace(call, grant_id="other")):
                assert 2 == await readers.read(lambda: 2)
            for task in slow[:2]:
                task.cancel()  # who hangs up has not freed the thread
            await asyncio.sleep(0.05)
            with in_call(replace(call, grant_id="other")):
                assert 3 == await readers.read(lambda: 3)
        assert not any(task.done() for task in slow[2:])
        go_on.set()
        assert [True] * 6 == await asyncio.gather(*slow[2:])
        await asyncio.sleep(0.05)
        assert {} == readers._turns._held
    finally:
        go_on.set()
        await store.close()
