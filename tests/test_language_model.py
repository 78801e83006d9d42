"""How a language model's endpoint is asked: for how long it is left alone, how often at once, and in which form."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest

from memoryd.learning.backoff import backoff_s
from memoryd.llm.endpoint import ChatEndpoint, ChatUnavailable, QuestionRefused
from tests.llm_endpoint import model_at

FORMS = 3  # in which a reply is asked for


async def test_it_is_left_alone_for_longer_and_longer_and_as_long_as_it_asks(ram_ports, clock, chat):
    model = model_at(chat, ram_ports, clock)
    chat.answer = 429
    for asked, seconds in ((1, 6.9), (1, 0.2), (2, 6.9), (2, 3.2), (3, 19)):
        with pytest.raises(ChatUnavailable):
            await model.ask("judgement.v1", "x")
        assert asked == len(chat.asked)
        clock.now += timedelta(seconds=seconds)


async def test_it_may_be_away_for_weeks(ram_ports, clock, chat):
    model = model_at(chat, ram_ports, clock)
    chat.answer = 503
    for _ in range(1030):  # two to the power of 1,024 is more than a float holds
        with pytest.raises(ChatUnavailable):
            await model.ask("judgement.v1", "x")
        clock.now += timedelta(minutes=11)
    chat.answer = "both"
    assert "both" == (await model.ask("judgement.v1", "x")).text


def test_a_pause_doubles_up_to_the_longest():
    pauses = [backoff_s(failed, first_s=5.0, longest_s=600.0) for failed in (1, 2, 3, 7, 8, 9, 1025, 10**9)]
    assert [5, 10, 20, 320, 600, 600, 600, 600] == pauses


async def test_a_clock_that_was_wrong_does_not_keep_it_from_being_asked(ram_ports, clock, chat):
    model = model_at(chat, ram_ports, clock)
    clock.now += timedelta(days=400)
    chat.answer = 503
    with pytest.raises(ChatUnavailable):
        await model.ask("judgement.v1", "x")
    clock.now -= timedelta(days=400)
    chat.answer = "both"
    assert "both" == (await model.ask("judgement.v1", "x")).text


async def test_so_many_questions_are_under_way_at_once(ram_ports, clock, chat):
    model = model_at(chat, ram_ports, clock)
    most, now = 0, 0

    def answer(_):
        nonlocal most, now
        now += 1
        most = max(most, now)
        time.sleep(0.05)
        now -= 1
        return "both"

    chat.answer = answer
    await asyncio.gather(*(model.ask("judgement.v1", "x") for _ in range(8)))
    assert 2 == most


async def test_an_endpoint_that_knows_no_schemas_is_asked_without(ram_ports, clock, chat):
    endpoint = ChatEndpoint(chat.url, "m", api_key="k")

    def answer(body):
        form = body.get("response_format", {}).get("type")
        return {"json_schema": 422, "json_object": 400}.get(form, "both")

    chat.answer = answer
    for asked in (FORMS, FORMS + 1):
        assert "both" == (await endpoint.ask("s", "q", {"type": "object"})).text
        assert asked == len(chat.asked)
    assert ["json_schema", "json_object", None, None] == [
        asked.get("response_format", {}).get("type") for asked in chat.asked
    ]
    assert {"Bearer k"} == {asked["key"] for asked in chat.asked}
    chat.answer = lambda body: 500 if "response_format" in body else "both"
    other = ChatEndpoint(chat.url, "m", api_key="k")
    for _ in range(2):  # that it fails tells nothing of the form
        await other.ask("s", "q", {"type": "object"})
    assert 2 == sum(body.get("response_format", {}).get("type") == "json_schema" for body in chat.asked[-6:])
    await other.close()
    chat.answer = 422
    with pytest.raises(QuestionRefused):
        await endpoint.ask("s", "q", {"type": "object"})
    await endpoint.close()
