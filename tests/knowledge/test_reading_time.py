"""No text keeps the reader of messages busy: runs of spaces and marks once took minutes."""

from __future__ import annotations

import time
from datetime import date

import pytest

from memoryd.knowledge.extraction.facts import facts_in
from memoryd.knowledge.extraction.talk import stated_sentences
from memoryd.knowledge.statement.reader import MOST_CHARACTERS, statement_of

LONG = 250_000
UNITS = (
    " ", "\u00a0", "\u2003", "-", ":", ".", "`", "```", "'", '"', "(", "x.", "e.g. ", "Mr. ", "A. ", "\n", "> ",
    ", I am", "; ", "– ", "! ", "haha", "remember ", "remember that ", "for 2 weeks ", "until ", "and so ", "my wife ",
    "on june 5 ", "e\u0301", "ﷺ", "İ", "😀", "[", "{", "<", "\\", "//", "1,", "not ", "every ",
)  # fmt: skip
SHAPES = {
    **{f"{unit!r} in a statement": ("", f"I am vegan,{unit * (2900 // len(unit))}y?") for unit in UNITS},
    **{f"{unit!r} in an answer": ("Where do you live?", unit * (LONG // len(unit.encode())) + "x") for unit in UNITS},
    **{f"{unit!r} in a question": (unit * (LONG // len(unit.encode())) + "?", "Porto") for unit in UNITS},
    "what what": ("what " * 50_000 + "?", "Porto"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_message_is_read_at_once(shape):
    before, text = SHAPES[shape]
    began = time.process_time()
    facts_in(text, today=date(2026, 3, 10), before=before)
    stated_sentences(text)
    assert time.process_time() - began < 1  # mostly some milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "I'm in Lisbon for 99999999999 weeks", "Remember for 9999999999 years: my cat is called Tom",
        f"I'm away for {'9' * 4400} days", "I'm here for ٩٩٩٩٩٩٩٩ weeks", "My exam is in 99999999999 days",
        f"I am {'9' * 4400} years old", "I'm away until december 31 9999", "My flight is on 2026-02-30",
    ],
)  # fmt: skip
def test_no_number_is_too_large(text):
    assert isinstance(facts_in(text, today=date(2026, 3, 10)), list)


@pytest.mark.parametrize(
    "words", ["quit ", "not ", "used to hate ", "hated ", "gave a a ", "I love it and now ", "my a "]
)
def test_ends_and_turns_are_read_at_once(words):
    text = words * (MOST_CHARACTERS // len(words))
    began = time.process_time()
    statement_of(text)
    assert time.process_time() - began < 0.5  # mostly five milliseconds
