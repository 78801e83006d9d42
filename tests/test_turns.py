"""Long work goes in turns, and a short call beside it does not wait for one at each of its steps."""

from __future__ import annotations

import asyncio
import time

from memoryd.turns import TURN_S, in_turns


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
