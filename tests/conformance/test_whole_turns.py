"""A page that the API of a model takes: no tool's result without its call, nothing empty for want of room."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from memory_client import MessageDraft, Role, ToolCall


def turn(n: int, tools: int, size: int = 10) -> list[MessageDraft]:
    calls = [ToolCall("look", "{}", f"c{n}-{k}") for k in range(tools)]
    return [
        MessageDraft(content=f"question {n}"),
        *([MessageDraft(role="assistant", content=f"let me look {n}", tool_calls=calls)] if tools else []),
        *(MessageDraft(role="tool", content="x" * size, tool_call_id=call.id) for call in calls),
        MessageDraft(role="assistant", content=f"answer {n}"),
    ]


def orphans(messages) -> list[str]:
    """The results on a page whose call is not before them."""
    called, found = set(), []
    for message in messages:
        called |= {call.id for call in message.tool_calls}
        if message.role is Role.TOOL and message.tool_call_id not in called:
            found.append(message.tool_call_id)
    return found


@pytest.mark.parametrize("limit", [{"page_size": 1}, {"page_size": 4}, {"page_size": 9}, {"max_tokens": 30}])
async def test_pages_of_whole_turns_join_into_the_thread_and_none_has_an_orphan(memory, limit):
    dice = random.Random(7)
    drafts = [one for n in range(25) for one in turn(n, dice.choice((0, 1, 2, 5)))]
    await memory.append("t", drafts[:60])
    await memory.append("t", drafts[60:])
    seen, token = [], ""
    while True:
        page = await memory.messages("t", page_token=token, whole_turns=True, **({"page_size": 50} | limit))
        assert [] == orphans(page.messages)
        assert page.messages
        seen = [*(message.seq for message in page.messages), *seen]
        token = page.next_page_token
        if not token:
            break
    assert list(range(1, len(drafts) + 1)) == seen


async def test_a_page_without_whole_turns_may_begin_with_a_result(memory):
    await memory.append("t", turn(0, 3))
    assert ["c0-2"] == orphans((await memory.messages("t", page_size=2)).messages)
    page = await memory.messages("t", page_size=2, whole_turns=True)
    assert ["answer 0"] == [message.content for message in page.messages]


async def test_one_message_that_is_larger_than_the_budget_is_cut_with_a_mark(memory):
    await memory.append("t", [MessageDraft(content="short"), MessageDraft(content="word " * 4_000)])
    assert () == (await memory.messages("t", max_tokens=100)).messages
    page = await memory.messages("t", max_tokens=100, whole_turns=True)
    assert (1, True, True) == (
        len(page.messages), page.messages[0].content.startswith("word word"), page.messages[0].content.endswith("…")
    )  # fmt: skip
    assert 90 <= len(page.messages[0].content.encode()) / 4 <= 100
    left = await memory.messages("t", max_tokens=100, whole_turns=True, page_token=page.next_page_token)
    assert (["short"], "") == ([message.content for message in left.messages], left.next_page_token)


async def test_a_result_that_is_larger_than_the_budget_comes_with_its_call(memory):
    await memory.append("t", turn(0, 2, size=40_000)[:-1])
    page = await memory.messages("t", max_tokens=200, whole_turns=True)
    assert ["assistant", "tool", "tool"] == [message.role.value for message in page.messages]
    assert ([], True) == (orphans(page.messages), sum(len(message.content) for message in page.messages) <= 800)


async def test_ids_of_calls_that_begin_anew_with_each_turn_lose_nothing(memory):
    same = (ToolCall("f", "", "c"),)
    drafts = [
        replace(one, tool_call_id=one.tool_call_id and "c", tool_calls=one.tool_calls and same)
        for n in range(3)
        for one in turn(n, 1)
    ]
    await memory.append("t", drafts)
    assert 12 == len((await memory.messages("t", page_size=50, whole_turns=True)).messages)


async def test_a_result_without_a_known_call_never_leads_a_page(memory):
    await memory.append("t", [MessageDraft(role="tool", content="42", tool_call_id="lost"), *turn(1, 0)])
    page = await memory.messages("t", whole_turns=True)
    assert ["question 1", "answer 1"] == [message.content for message in page.messages]
    await memory.append("alone", MessageDraft(role="tool", content="42", tool_call_id="lost"))
    assert ["42"] == [one.content for one in (await memory.messages("alone", whole_turns=True)).messages]


async def test_long_arguments_that_fit_no_budget_take_no_content_with_them(memory):
    called = MessageDraft(role="assistant", content="I look it up", tool_calls=(ToolCall("f", "x" * 4_000, "c"),))
    await memory.append("t", [called, MessageDraft(role="tool", content="the answer is 42", tool_call_id="c")])
    page = await memory.messages("t", max_tokens=100, whole_turns=True)
    assert ["I look it up", "the answer is 42"] == [message.content for message in page.messages]
