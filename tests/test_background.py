"""Work in the background goes on whatever a step meets, and rests in between."""

from __future__ import annotations

import asyncio

import pytest
from memory_client import MessageDraft

from memoryd.domain.background import BackgroundWorker, message_of
from memoryd.errors import Unavailable
from memoryd.learning import follow
from memoryd.learning.extract import notice
from memoryd.learning.rules import RulesExtractor
from tests.builders import Local, ports_over, ram_store


class Rests:
    """A clock for `asyncio.sleep`: notes how long each rest is, and ends the work after some."""

    def __init__(self, monkeypatch, most: int) -> None:
        self.seconds, self._most, self._sleep = [], most, asyncio.sleep
        monkeypatch.setattr(asyncio, "sleep", self.sleep)

    async def sleep(self, seconds, result=None):
        self.seconds.append(seconds)
        if len(self.seconds) >= self._most:
            raise asyncio.CancelledError
        await self._sleep(0, result)


async def until(is_so) -> None:
    for _ in range(1000):
        if is_so():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come to pass")


def steps(*outcomes):
    left = list(outcomes)

    async def step():
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return step, left


async def served(worker, **more):
    with pytest.raises(asyncio.CancelledError):
        await worker.serve(**more)


async def test_it_rests_between_steps_and_not_where_more_is_to_be_done(monkeypatch):
    rests, (step, left) = Rests(monkeypatch, 3), steps(None, True, True, False, None)
    await served(BackgroundWorker(step=step, pause_s=7, tell=print))
    assert ([7, 7, 7], []) == (rests.seconds, left)


async def test_it_may_begin_with_a_pause(monkeypatch):
    rests, (step, left) = Rests(monkeypatch, 1), steps(None)
    await served(BackgroundWorker(step=step, pause_s=7, tell=print), begins_with_pause=True)
    assert ([7], [None]) == (rests.seconds, left)


@pytest.mark.parametrize(
    ("describe", "expected"), [({}, "Unavailable"), ({"describe": message_of}, "the disk is full")]
)
async def test_faults_are_told_without_content_and_pauses_grow_until_a_step_succeeds(monkeypatch, describe, expected):
    quoting = ValueError("alice said something")
    outcomes = [quoting, quoting, Unavailable("the disk is full"), None, quoting, True, quoting]
    rests, told, (step, _) = Rests(monkeypatch, 6), [], steps(*outcomes)
    await served(
        BackgroundWorker(step=step, pause_s=30, fault_pause_s=1, longest_fault_pause_s=3, tell=told.append, **describe)
    )
    assert [1, 2, 3, 30, 3, 1] == rests.seconds
    assert ["ValueError", "ValueError", expected, "ValueError", "ValueError"] == told


async def test_what_its_maker_names_ends_it():
    told, (step, left) = [], steps(ZeroDivisionError(), None)
    await BackgroundWorker(step=step, pause_s=0, tell=told.append, ends_with=(ZeroDivisionError,)).serve()
    assert (["ZeroDivisionError"], [None]) == (told, left)


async def test_a_pause_ends_early_where_there_is_something_to_do():
    wake, seen = asyncio.Event(), []

    async def step():
        seen.append(1)
        wake.clear()

    work = asyncio.create_task(BackgroundWorker(step=step, pause_s=3600, tell=print, wake=wake).serve())
    for n in range(1, 4):
        await until(lambda n=n: len(seen) >= n)
        wake.set()
    work.cancel()
    assert 3 <= len(seen)


async def test_who_says_something_all_the_time_keeps_nobody_from_being_learnt_from(clock, monkeypatch):
    looks = 0
    async with ports_over(ram_store()) as ports:
        alice, flood = (Local(ports, clock, user_id=name) for name in ("alice", "flood"))
        await alice.append("t", MessageDraft(content="I'm vegan"))

        async def notice_under_flood(*args, **more):
            nonlocal looks
            looks += 1
            assert looks < 9, "it looks for what is new as long as there is any"
            await flood.append(f"t{looks}", MessageDraft(content="ok"))
            return await notice(*args, **more)

        monkeypatch.setattr(follow, "notice", notice_under_flood)
        await follow.Learner(ports, RulesExtractor(), clock, lambda _: None, wait_s=0).step()
        assert ["I'm vegan"] == [memory.content for memory in (await alice.page()).memories]
