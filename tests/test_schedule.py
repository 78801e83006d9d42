"""Jobs: when they are due, in which order, and what is made up for after a night that was missed."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from memoryd.daemon.config import Config, ConfigError, ScheduleConfig
from memoryd.daemon.config_file import load_config
from memoryd.daemon.schedule import due_jobs, expressions_of
from tests.support import Daemon

UTC_ONLY = Config(schedule=ScheduleConfig(timezone="UTC"))
SUNDAY = datetime(2026, 11, 1, 12, tzinfo=UTC)


def ran(when):
    return dict.fromkeys(expressions_of(UTC_ONLY), when)


def test_a_job_is_due_once_its_time_has_come_and_not_again():
    assert [] == due_jobs(UTC_ONLY, ran(SUNDAY), SUNDAY + timedelta(hours=13))
    assert ["enrichment"] == due_jobs(UTC_ONLY, ran(SUNDAY), SUNDAY + timedelta(hours=14))
    assert [] == due_jobs(UTC_ONLY, ran(SUNDAY + timedelta(hours=14)), SUNDAY + timedelta(hours=14))


def test_missed_runs_are_made_up_for_once_in_order():
    assert ["enrichment", "decay", "gc", "compaction"] == due_jobs(UTC_ONLY, ran(SUNDAY), SUNDAY + timedelta(days=30))


def test_a_job_that_never_ran_waits_for_its_first_time():
    assert [] == due_jobs(UTC_ONLY, {}, SUNDAY + timedelta(days=30))


def test_expressions_are_of_the_zone_that_is_named():
    berlin = Config(schedule=ScheduleConfig(timezone="Europe/Berlin"))
    at_one = SUNDAY.replace(hour=1) + timedelta(days=1)

    assert ["enrichment"] == due_jobs(berlin, ran(SUNDAY), at_one)
    assert [] == due_jobs(UTC_ONLY, ran(SUNDAY), at_one)


def test_an_empty_expression_means_never():
    assert "decay" not in expressions_of(Config(schedule=ScheduleConfig(decay="")))


@pytest.mark.parametrize(
    "text",
    ['decay = "every night"', 'decay = "99 4 * * *"', 'timezone = "Mars/Olympus"', 'gc = "1 2 3"'],
)
def test_what_is_no_schedule_is_refused_before_anything_is_opened(tmp_path, text):
    path = tmp_path / "memoryd.toml"
    path.write_text(f"[schedule]\n{text}\n")
    with pytest.raises(ConfigError, match=r"schedule\."):
        expressions_of(load_config(path, {}))


def test_the_daemon_runs_what_is_due(folder):
    config = '[embedding]\nprovider = "none"\n[schedule]\ndecay = "* * * * *"\ncompaction = ""\n'
    program = "import memoryd.daemon.serve as d\nd.SCHEDULE_S = 0.5\nfrom memoryd.__main__ import main\nmain()"
    daemon = Daemon(folder, config=config)
    with daemon.log.open("ab") as log:
        process = subprocess.Popen([sys.executable, "-c", program, *daemon.command("serve")[3:]], stderr=log)
    deadline = time.monotonic() + 100  # a cron's minute and then some
    while "job_done" not in daemon.log.read_text() and time.monotonic() < deadline:
        time.sleep(0.2)
    process.terminate()
    assert 0 == process.wait(timeout=30)
    assert '"job": "decay"' in daemon.log.read_text()
