"""What a reply of a language model says, in whatever form it comes."""

from __future__ import annotations

import json

import pytest

from memoryd.llm.replies import SaidInReply, facts_in_reply, text_in_reply, verdict_in_reply

REPLIES = {
    '{"facts": [{"fact": "I like tea", "message": 3}]}': [("I like tea", 3)],
    '```json\n{"facts": [{"fact": "I like tea", "message": 3}]}\n```': [("I like tea", 3)],
    'Sure! {"facts": [{"fact": "I like tea", "message": 3}]} Anything else?': [("I like tea", 3)],
    '<think>{"facts": [{"fact": "no"}]}</think>{"facts": [{"fact": "I like tea"}]}': [("I like tea", None)],
    '[{"fact": "I like tea", "message": true}]': [("I like tea", None)],
    '["I like tea"]': [("I like tea", None)],
    '{"facts": [{"fact": "I like tea", "message": 1}, {"fact": "I ha': [("I like tea", 1)],
    '{"facts": [{"fact": "I li': None,
    "[" * 100_000: None,
    '{"a":' * 100_000: None,
    "": None,
    "- I like tea\n* I have a dog\n3. I run\n": [("I like tea", None), ("I have a dog", None), ("I run", None)],
    "Here are the facts:\n- I like tea\n\nNote that this is all.": [("I like tea", None)],
    "NONE": [],
    "None.": [],
    "nothing to note": [],
    "{}": [],
    '{"facts": null}': [],
    "null": [],
    '{"facts": [NaN, 1e999, {"fact": "I like tea", "confidence": NaN}]}': [("I like tea", None)],
}  # fmt: skip


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: reply[:40])
def test_a_reply_is_read_in_whatever_form_it_comes(reply):
    found = facts_in_reply(reply)
    assert REPLIES[reply] == (None if found is None else [(one.fact, one.message) for one in found])


def test_of_one_reply_so_many_facts_are_taken():
    assert 50 == len(facts_in_reply(json.dumps({"facts": ["I like tea"] * 1000})))
    assert 50 == len(facts_in_reply("- I like tea\n" * 1000))
    assert [SaidInReply("a", None, "", 1.0)] == facts_in_reply('{"facts": [{"fact": "a", "confidence": 7}]}')


def test_a_verdict_is_one_or_none():
    some = frozenset(["both", "unsure"])
    for reply, verdict in {
        '{"verdict": "both"}': "both", "Both.": "both", "both or unsure": "", '{"verdict": 3}': "", "": "",
        '{"verdict": "BOTH"}': "both", "I would say unsure": "unsure", '{"verdict": "replaces"}': "",
    }.items():  # fmt: skip
        assert verdict == verdict_in_reply(reply, some), reply


def test_a_text_is_taken_whole_or_not():
    for reply, text in {
        '{"digest": " A. "}': "A.", "A plain text.": "A plain text.", '{"digest": "A': "", "{}": "",
        "I'm sorry, I cannot.": "", "<think>x</think>A.": "A.",
    }.items():  # fmt: skip
        assert text == text_in_reply(reply, "digest"), reply
