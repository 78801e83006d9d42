"""Another engine joins the conformance suite by one small class."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.builders import ram_store
from tests.conformance.engines import Engine

OTHER = Engine("other", lambda _: ram_store(), {"restart": "it forgets", "files": "it has none"})


def run(*selected: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "MEMORYD_TEST_ENGINES": "tests.test_engines:OTHER"}
    given = [sys.executable, "-m", "pytest", "-vv", "-p", "no:cacheprovider", *selected]
    return subprocess.run(given, check=False, env=env, capture_output=True, text=True, timeout=100)


def test_an_engine_that_the_environment_names_is_held_to_the_same_promises():
    done = run("tests/conformance/test_receipts.py", "-k", "other and every_sort")
    assert (0, 1) == (done.returncode, done.stdout.count("[other] PASSED")), done.stdout


def test_it_is_excused_from_the_categories_that_it_names_alone():
    done = run("tests/conformance/test_restarts.py")
    assert 0 == done.returncode, done.stdout
    assert (0, 0) == (done.stdout.count("[other]"), done.stdout.count("[ram]"))
    assert 0 < done.stdout.count("[duckdb] PASSED")


@pytest.mark.parametrize("excused", [{"weather": "it rains"}, {"files": ""}])
def test_nobody_is_excused_without_a_reason_or_from_what_there_is_not(excused):
    with pytest.raises(ValueError, match="is excused from"):
        Engine("x", lambda _: ram_store(), excused)
