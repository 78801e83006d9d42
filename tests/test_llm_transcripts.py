"""What a real small model said of twenty exchanges, replayed: what is taken of it is what was taken of it then."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from memoryd.learning.llm_extractor import LlmExtractor, ReplyRefused
from tests.llm.exchanges import EXCHANGES, Recorded, exchange_of, taken

ROWS = [json.loads(line) for line in (Path(__file__).parent / "llm" / "transcripts.jsonl").read_text().splitlines()]


def test_every_exchange_was_recorded():
    assert [*map(list, EXCHANGES)] == [row["said"] for row in ROWS]
    assert 12 <= sum(len(row["taken"]) for row in ROWS)


@pytest.mark.parametrize("n", range(len(ROWS)))
async def test_what_is_taken_of_a_reply_that_was_recorded(n):
    row = ROWS[n]
    found = await LlmExtractor(Recorded([row["reply"]])).extract(exchange_of(row["said"]))
    assert row["taken"] == taken(found)


@pytest.mark.parametrize("n", range(len(ROWS)))
async def test_of_a_reply_that_was_cut_anywhere_no_more_is_taken(n):
    row = ROWS[n]
    for end in range(0, len(row["reply"]), 7):
        extractor = LlmExtractor(Recorded([row["reply"][:end] or "{"]))
        found = []
        with suppress(ReplyRefused):
            found = taken(await extractor.extract(exchange_of(row["said"])))
        assert all(one in row["taken"] for one in found)
