"""Long work goes in turns, and a short call beside it does not wait for one at each of its steps."""

from __future__ import annotations

import asyncio
import time

from memoryd import turns
from memoryd.domain.rules import Rules
from memoryd.domain.writing.judge import Known, Neighbour, Offer, contested_by, judge
from memoryd.knowledge.reading import Reader
from memoryd.model.memory import Draft, Outcome
from memoryd.turns import TURN_S, in_turns
from tests.builders import NOW, memory


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


async def test_what_a_statement_is_compared_with_is_read_in_turns(monkeypatch):
    monkeypatch.setattr(turns, "TURN_S", 0.0)  # as if each text took long to read
    held = [memory(f"Person {n} lives in Lisbon") for n in range(30)]
    new = memory("Ana lives in Porto")
    beside = Known(neighbours=[Neighbour(one, 0.5, same_subject=False, same_people=False) for one in held])
    rounds, over = 0, False

    async def others() -> None:
        nonlocal rounds
        while not over:
            rounds += 1
            await asyncio.sleep(0)

    beat = asyncio.create_task(others())
    offer = Offer(Draft(content="Ana lives in Porto"), new, b"")
    rules = Rules()
    assert Outcome.INSERTED is (await judge(offer, beside, Reader(), now=NOW, rules=rules)).outcome
    judged = rounds
    assert [] == await contested_by(new, beside.neighbours, Reader(), rules)
    over = True
    await beat
    assert judged >= 30
    assert rounds >= judged + 30
