"""Sessions end by silence: across restarts, and whatever the wall clock does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from memory_client import MessageDraft, SessionState

from memoryd.domain.clock import ClockWatch
from memoryd.domain.conversation.waking import end_idle_sessions
from memoryd.errors import Unavailable
from tests.builders import Local, open_duckdb, ports_over, ram_store, with_ports

HELLO = MessageDraft(content="hello")


class Uptime:
    """Seconds that pass for certain."""

    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def no_fault(fault: str) -> None:
    raise AssertionError(fault)


async def states(memory, thread: str) -> list[tuple[str, str]]:
    return [(one.state.value, one.end_reason) for one in (await memory.sessions(thread)).sessions]


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
async def test_a_leap_of_the_clock_ends_no_session_and_what_was_said_ahead_of_it_does_not_stay_open(
    kind, clock, folder
):
    store = ram_store() if kind == "ram" else open_duckdb(folder)
    uptime = Uptime()
    async with ports_over(store) as plain:
        ports = with_ports(plain, clock=ClockWatch(clock.now, clock.now, uptime))
        memory = Local(ports, clock, user_id="alice")
        await memory.append("t", HELLO, session_id="s")
        clock.now += timedelta(days=400)
        uptime.seconds += 60
        assert not ports.shared.clock.look(clock.now)
        assert 0 == await end_idle_sessions(ports, no_fault, now=clock.now)
        assert "s" == (await memory.append("t", HELLO)).session_id  # nor does what is said then
        await memory.append("ahead", HELLO, session_id="x")
        clock.now -= timedelta(days=400, minutes=-29)
        uptime.seconds += 28 * 60
        ports.shared.clock.look(clock.now)
        assert 2 == await end_idle_sessions(ports, no_fault, now=clock.now)  # both were heard of at no known time
        clock.now += timedelta(minutes=1)
        uptime.seconds += 60
        again = await memory.append("t", HELLO)
        assert clock.now == (await memory.thread("t")).update_time
        assert 0 == await end_idle_sessions(ports, no_fault, now=clock.now + timedelta(minutes=29))
        clock.now += timedelta(minutes=30, seconds=1)
        uptime.seconds += 30 * 60 + 1
        assert 1 == await end_idle_sessions(ports, no_fault, now=clock.now)
        assert [("pending", "idle")] * 2 == await states(memory, "t")
        assert again.session_id in {one.id for one in (await memory.sessions("t")).sessions}


async def test_a_clock_that_was_set_back_ends_nothing(clock):
    uptime = Uptime()
    async with ports_over(ram_store()) as plain:
        ports = with_ports(plain, clock=ClockWatch(clock.now, clock.now, uptime))
        memory = Local(ports, clock, user_id="alice")
        await memory.append("t", HELLO, session_id="s")
        clock.now -= timedelta(days=9000)  # as a machine wakes without a battery
        ports.shared.clock.look(clock.now)
        assert 0 == await end_idle_sessions(ports, no_fault, now=clock.now)
        assert "s" == (await memory.append("t", HELLO)).session_id


async def test_after_a_restart_the_silence_before_it_counts(clock, folder):
    async with ports_over(open_duckdb(folder)) as ports:
        await Local(ports, clock, user_id="alice").append("t", HELLO, session_id="s")
    clock.now += timedelta(minutes=31)
    async with ports_over(open_duckdb(folder)) as ports:
        assert 1 == await end_idle_sessions(ports, no_fault, now=clock.now)
        assert [("pending", "idle")] == await states(Local(ports, clock, user_id="alice"), "t")


async def test_many_idle_sessions_end_in_one_look_and_a_fault_of_one_keeps_no_other(clock):
    async with ports_over(ram_store()) as ports:
        memory = Local(ports, clock, user_id="alice")
        for n in range(250):
            await memory.append(f"t{n}", HELLO, session_id="s")
        clock.now += timedelta(minutes=31)
        commit, told = ports.store.commits.write, []

        async def failing(*changes):
            if any(thread.id == "t7" for one in changes for thread in one.conversation.threads):
                raise Unavailable("the disk is full")
            await commit(*changes)

        ports.store.commits.write = failing
        assert 249 == await end_idle_sessions(ports, told.append, now=clock.now)
        assert ["Unavailable"] == list(dict.fromkeys(told))
        ports.store.commits.write = commit
        assert 1 == await end_idle_sessions(ports, no_fault, now=clock.now)
        assert not (await memory.sessions(states=[SessionState.OPEN])).sessions
