"""Fixtures: stores, ports with a clock that is handed in, and a real daemon; and which tests may be skipped."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from hypothesis import settings

from memoryd.embedding.packaged import builtin_encoder
from tests.builders import Local, open_duckdb, ports_over, ram_store
from tests.doors import a_world
from tests.forking import run_command
from tests.http_helpers import door
from tests.llm_endpoint import MADE, chat_endpoint
from tests.support import BIN, PATIENCE_S, Daemon, figures, running, short_folder
from tests.web_helpers import Inspector, inspecting

settings.register_profile("same", derandomize=True, deadline=None)  # a change passes or fails, whenever it is tested
settings.register_profile("random", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("MEMORYD_EXAMPLES", "same"))

MEMORY, ENOUGH = Path("/dev/shm"), 6 << 30
if os.environ.get("MEMORYD_ON_DISK") != "1" and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH:
    tempfile.tempdir = str(MEMORY)  # a third of the time of a test is waiting for a disk
SLOW = Path(__file__).parent / "slow.txt"
BEGIN = datetime(2026, 11, 1, 12, tzinfo=UTC)


class Clock:
    """A wall clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> datetime:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += timedelta(days=days)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    """One daemon with the packaged model, shared; every test brings users of its own."""
    with short_folder() as place, running(place) as started:
        yield started


@pytest.fixture(scope="session")
def inspected() -> Iterator[Daemon]:
    """A daemon with all that the inspector shows."""
    parts = "[metrics]\nenabled = true\n[memory]\nextraction_review = true\n"
    with short_folder() as place, short_folder() as backups:
        with running(place, config=f'{parts}[backup]\ndirectory = "{backups}"\n') as started:
            yield started


@pytest.fixture(scope="session")
def site(inspected: Daemon) -> Iterator[Inspector]:
    """The inspector over it, in the browser that has used its link."""
    with inspecting(inspected) as inspector:
        yield inspector


@pytest.fixture(scope="session")
def packaged_encoder():
    return builtin_encoder()


@pytest.fixture(params=["ram", "duckdb"])
async def alice(request, folder, packaged_encoder, clock):
    """What Alice has in a store of each kind, with the packaged model; the one on a disk has a ledger."""
    store = ram_store() if request.param == "ram" else open_duckdb(folder, ledger=folder / "ledger")
    async with ports_over(store, encoder=packaged_encoder) as ports:
        yield Local(ports, clock, user_id="alice")


@pytest.fixture(scope="module")
def world():
    """A daemon with every door open, for the tests of one module."""
    with short_folder() as place, a_world(place) as made:
        yield made


@pytest.fixture(scope="module")
def address(world) -> Iterator[str]:
    """Where `memoryd http` listens before the world's shared socket."""
    with door(world.shared) as (found, _):
        yield found


@pytest.fixture
def http(address) -> Iterator[httpx.Client]:
    """A client of it."""
    with httpx.Client(base_url=address, timeout=PATIENCE_S) as opened:
        yield opened


_users = itertools.count()


@pytest.fixture
def user() -> str:
    return f"user{next(_users)}"


@pytest.fixture
def memory(daemon, user):
    """Runs `memory …` as a new user and returns (exit code, stdout, stderr)."""

    def run(*words: str, stdin: str | bytes = "", **env: str):
        values = {
            "PATH": os.environ["PATH"], "HOME": str(daemon.folder), "LANG": "C.UTF-8",
            "MEMORY_ENDPOINT": daemon.endpoint, "MEMORY_USER_ID": user, **env,
        }  # fmt: skip
        values = {key: value for key, value in values.items() if value}
        raw = stdin if isinstance(stdin, bytes) else stdin.encode()
        done = run_command([BIN / "memory", *words], input=raw, env=values, capture_output=True, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of its own with a short path."""
    with short_folder() as path:
        yield path


def pytest_collection_modifyitems(items) -> None:
    """Mark as slow what tests/slow.txt lists: by its file, its function or its case."""
    listed = set(SLOW.read_text().splitlines())
    for item in items:
        function = item.nodeid.partition("[")[0]
        if not listed.isdisjoint({item.nodeid, function, function.partition("::")[0]}):
            item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter) -> None:
    """Print what was measured in passing; with MEMORYD_SKIPS, name the skips that nobody has allowed."""
    for figure in figures:
        terminalreporter.write_line(figure)
    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"skipped {report.nodeid}: {_reason(report)}")
    for reason in sorted(_unforeseen(terminalreporter)):
        terminalreporter.write_line(f"a skip that tests/skips.txt does not allow: {reason}", red=True)


def pytest_sessionfinish(session) -> None:
    """Fail a run that skipped what it must not."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and _unforeseen(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _reason(report) -> str:
    return str(report.longrepr[2]).removeprefix("Skipped: ")


def _unforeseen(reporter) -> set[str]:
    if not os.environ.get("MEMORYD_SKIPS"):
        return set()
    lines = Path(os.environ["MEMORYD_SKIPS"]).read_text().splitlines()
    allowed = {line.partition("#")[0].strip() for line in lines} - {""}
    return {_reason(report) for report in reporter.stats.get("skipped", [])} - allowed


@pytest.fixture
async def ram_ports():
    """A daemon's ports over a store in memory."""
    async with ports_over(ram_store()) as made:
        yield made


@pytest.fixture
async def chat():
    """The endpoint of a language model, on loopback."""
    with chat_endpoint() as made:
        yield made
        while MADE:
            await MADE.pop().close()
