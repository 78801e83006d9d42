"""Another engine joins the conformance suite by one small class."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.builders import STORES, ram_store
from tests.conformance.engines import Engine

OTHER = Engine("other", lambda _: ram_store(), {"restart": "it forgets", "files": "it has none"})


def run(*selected: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "MEMORYD_TEST_ENGINES": "tests.test_engines:OTHER"}
    given = [sys.executable, "-m", "pytest", "-vv", "-p", "no:cacheprovider", *selected]
    return subprocess.run(given, check=False, env=env, capture_output=True, text=True, timeout=100)


def test_an_engine_that_the_environment_names_is_held_to_all_promises_but_those_that_it_is_excused_from():
    done = run(
        "tests/conformance/test_receipts.py", "tests/conformance/test_restarts.py", "-k", "every_sort or restarts"
    )
    assert 0 == done.returncode, done.stdout
    passed = [
        line.split("::")[1].split()[0] for line in done.stdout.splitlines() if line.endswith("%]") and "::" in line
    ]
    assert {"other", *STORES} == {one.partition("[")[2][:-1] for one in passed if "every_sort" in one}
    assert {*STORES} - {"ram"} == {one.partition("[")[2][:-1] for one in passed if "every_sort" not in one}


@pytest.mark.parametrize("excused", [{"weather": "it rains"}, {"files": ""}])
def test_nobody_is_excused_without_a_reason_or_from_what_there_is_not(excused):
    with pytest.raises(ValueError, match="is excused from"):
        Engine("x", lambda _: ram_store(), excused)
