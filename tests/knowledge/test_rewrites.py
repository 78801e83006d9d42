"""Each row of rewrites.txt does what its example says, and the rest of a sentence stays as it is."""

from __future__ import annotations

import pytest

from memoryd.knowledge.statement.rewrites import REWRITES, rewritten


@pytest.mark.parametrize("row", REWRITES, ids=lambda row: row.example[0])
def test_a_row_puts_its_example_plainly(row):
    said, becomes = row.example
    assert row.pattern.search(said)
    assert (becomes, row.is_sure) == rewritten(said)


@pytest.mark.parametrize(
    "text", ["i like tea", "my car is red", "Anna left the room", "i have three dogs", "", "i left early"]
)
def test_what_is_plain_stays(text):
    assert (text, True) == rewritten(text)
