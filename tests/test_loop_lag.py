"""What holds the event loop is seen, in status and in the log."""

from __future__ import annotations

import asyncio
import time

import pytest

from memoryd.daemon import loop_lag
from memoryd.daemon.loop_lag import LoopLag
from tests.forking import run_command
from tests.support import running


async def test_what_holds_the_loop_is_told_and_the_largest_of_a_minute_is_kept():
    told = []
    lag = LoopLag(lambda *blocked: told.append(blocked))
    assert 0 == lag.largest_s()
    watching = asyncio.create_task(lag.watch())
    await asyncio.sleep(0.01)
    time.sleep(0.7)  # noqa: ASYNC251  it holds the loop
    await asyncio.sleep(0.2)
    assert 0.6 < lag.largest_s() < 5
    assert [1] == [count for _, count in told]
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching


def test_the_largest_of_the_last_minute_is_that_of_every_minute(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(loop_lag.time, "monotonic", lambda: now[0])
    lag = LoopLag(lambda *_: None)
    late = [(step * 7.0, float((step * 37) % 23)) for step in range(200)]
    for time_s, late_s in late:
        now[0] = time_s
        lag._note(time_s, late_s)
        assert lag.largest_s() == max(value for when, value in late if time_s - 60 <= when <= time_s)
    now[0] += 61
    assert 0 == lag.largest_s()


def test_a_loop_that_is_held_again_and_again_is_told_once_a_minute():
    told = []
    lag = LoopLag(lambda *blocked: told.append(blocked))
    for step in range(150):
        lag._note(float(step), 0.5 + (step % 7) / 10)
    assert [(0.5, 1), (1.1, 60), (1.1, 60)] == [(round(largest, 1), count) for largest, count in told]
    lag._note(181.0, 0.1)
    assert (1.1, 29) == told[-1]


def test_the_status_shows_it(folder):
    with running(folder, config='[embedding]\nprovider = "none"\n') as daemon:
        shown = run_command(daemon.command("status"), capture_output=True, text=True, check=True)
        assert " ms at the most for the event loop, in the last minute" in shown.stdout
        with daemon.client() as host:
            assert 0 <= host.server_info().max_loop_lag.total_seconds() < 60
