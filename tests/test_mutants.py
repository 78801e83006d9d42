"""The planted bugs are kept up with the code that they are planted in; `make mutants` sees that each is killed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.mutants import MUTANTS
from tests.plant_mutants import ROOT


@pytest.mark.parametrize(("name", "old", "new", "tests"), MUTANTS, ids=range(len(MUTANTS)))
def test_a_planted_bug_has_its_place_and_its_tests(name, old, new, tests):
    text = (ROOT / name).read_text()
    assert text.count(old) >= 1, "what it replaces is gone"
    assert old != new
    assert all(Path(ROOT / test).is_file() for test in tests.split())


def test_the_list_of_planted_bugs_names_every_file_that_has_one():
    listed = set(re.findall(r"`((?:memoryd|client)/[\w./]+)`", (ROOT / "tests" / "mutants.md").read_text()))
    assert listed == {name for name, *_ in MUTANTS}
