"""Every reader with its corpus and some hundred mutations of it; `make fuzz` goes on from there with coverage."""

from __future__ import annotations

import os
import random

import pytest

from tests.fuzz import CORPUS, NAMES
from tests.fuzz.mutate import mutated
from tests.fuzz.targets import TARGETS

MUTATIONS = int(os.environ.get("MEMORYD_MUTATIONS", "400"))


def test_every_target_has_a_corpus():
    assert sorted(TARGETS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_no_bytes_bring_a_reader_to_an_error_that_it_does_not_promise(name):
    seeds = [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
    for seed in seeds:
        TARGETS[name](seed)
    rng = random.Random(name)
    for number in range(MUTATIONS):
        data = mutated(seeds, rng)
        try:
            TARGETS[name](data)
        except Exception as error:
            error.add_note(f"mutation {number} of {name}: {data!r:.2000}")
            raise
