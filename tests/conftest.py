"""Fixtures: stores, ports with a clock that is handed in, and a real daemon."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support import Daemon, running

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
def daemon(tmp_path_factory) -> Daemon:
    """One daemon with the packaged model, shared; every test brings users of its own."""
    with running(tmp_path_factory.mktemp("d")) as started:
        yield started


_users = itertools.count()


@pytest.fixture
def user() -> str:
    return f"user{next(_users)}"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of its own with a short path: a socket's may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="m", ignore_cleanup_errors=True) as path:
        yield Path(path)
