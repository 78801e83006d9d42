"""The soak in short: some seconds of load with a restart, a kill and a restore. `make soak` runs a day."""

from __future__ import annotations

from tests.soak.clock import faketime_library
from tests.soak.run import Plan, Soak

NO_MODEL = '[embedding]\nprovider = "none"\n[readers]\nkeeping = "none"\npeople = "none"\nanswer = "none"\n'


def test_some_seconds_of_load_with_a_restart_a_kill_and_a_restore_lose_nothing(folder):
    factor = 20.0 if faketime_library() else 1.0
    length_s = 9 * factor
    plan = Plan(
        seconds=9,
        factor=factor,
        workers=3,
        seed=3,
        pace_s=0.03,
        restart_s=length_s / 3,
        restore_s=length_s / 2,
        steps={1: 3600.0},
        sample_s=1,
        config=NO_MODEL,
    )
    told: list[str] = []
    soak = Soak(folder, plan, say=told.append)
    found = soak.run()
    assert [] == found.faults + soak.figures.unexpected, told
    assert ["SIGTERM", "SIGKILL"] == [how for how, *_ in found.restarts]
    assert found.restores
    assert found.checked > 20
