"""The collector comes by time for what is young, and for all else while nobody is served."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from memoryd.daemon import garbage
from memoryd.daemon.garbage import Garbage


class Circle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def paced(monkeypatch):
    """A collector that looks and collects often; the interpreter's own settings come back afterwards."""
    before = gc.get_threshold()
    monkeypatch.setattr(garbage, "LOOK_S", 0.0)
    monkeypatch.setattr(garbage, "FULL_EVERY_S", 0.0)
    monkeypatch.setattr(garbage, "WORTH_S", 0.0)
    yield monkeypatch
    gc.set_threshold(*before)
    gc.unfreeze()


async def is_gone(gone, most: int = 200) -> bool:
    for _ in range(most):
        if gone() is None:
            return True
        await asyncio.sleep(0.01)
    return False


async def test_what_is_young_is_collected_though_few_objects_were_made(paced):
    paced.setattr(garbage, "QUIET_SHARE", 0.0)  # it is never quiet
    work = asyncio.create_task(Garbage().collect())
    one = weakref.ref(Circle())
    assert await is_gone(one)
    work.cancel()


async def test_what_is_old_is_collected_while_nobody_is_served(paced):
    paced.setattr(garbage, "QUIET_SHARE", 0.0)
    held = Circle()
    collector = Garbage()
    gc.unfreeze()  # the circle with it, as if it had come later
    work = asyncio.create_task(collector.collect())
    gone = weakref.ref(held)
    del held
    assert not await is_gone(gone, 50)  # young passes do not look at it
    paced.setattr(garbage, "QUIET_SHARE", 1e9)
    assert await is_gone(gone)
    work.cancel()


def test_the_longer_a_pass_takes_the_sooner_comes_the_next(paced):
    collector = Garbage()
    pauses = {}
    for aim_s in (1e9, 0.0):  # every pass is shorter, or longer
        paced.setattr(garbage, "AIM_S", aim_s)
        for _ in range(10):
            collector._young()
        pauses[aim_s] = collector._pause_s
    assert {1e9: garbage.LONGEST_S, 0.0: garbage.SHORTEST_S} == pauses


async def test_what_is_old_is_collected_once_the_process_has_grown_however_busy_it_is(paced):
    paced.setattr(garbage, "QUIET_SHARE", 0.0)
    held, size = Circle(), [100 << 20]
    paced.setattr(garbage, "resident_bytes", lambda: size[0])
    collector = Garbage()
    gc.unfreeze()  # the circle with it, as if it had come later
    work = asyncio.create_task(collector.collect())
    gone = weakref.ref(held)
    del held
    size[0] += garbage.GROWN_BYTES
    assert not await is_gone(gone, 50)
    size[0] += 1
    assert await is_gone(gone)
    work.cancel()
