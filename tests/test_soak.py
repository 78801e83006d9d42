"""The soak in short: some seconds of load with a restart, a kill and a restore. `make soak` runs a day."""

from __future__ import annotations

from tests.soak.clock import faketime_library
from tests.soak.run import Plan, Soak
from tests.soak.watch import Sample, slope_percent, spread

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
        restarts=2,
        restore_s=length_s / 2,
        restores=1,
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


def test_what_grows_in_a_process_is_seen():
    def made(minute: int, *, leak: int) -> Sample:
        return Sample(
            at_s=60.0 * minute, run=1, age_s=60.0 * minute, resident=(300 << 20) + leak * minute,
            threads=47, descriptors=27 + minute * leak // (1 << 21), database=0, log=0,
        )  # fmt: skip

    steady, growing = ([made(minute, leak=leak) for minute in range(600)] for leak in (0, 1 << 20))
    assert (0, 0) == (slope_percent(steady), spread([one.descriptors for one in steady]))
    assert slope_percent(growing) > 5
    assert spread([one.descriptors for one in growing]) > 100
