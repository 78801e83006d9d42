"""What a language model may cost: counted over restarts, daemons and failures."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path

import pytest
from memory_client import MessageDraft

from memoryd.daemon.config import Config, LearningConfig, LlmConfig
from memoryd.daemon.learners import make_endpoint
from memoryd.errors import Unavailable
from memoryd.learning.budget import BudgetSpent
from memoryd.learning.language_model import prompt_of
from memoryd.llm.endpoint import EndpointRefused
from tests.builders import Local, open_duckdb, ports_over, ram_store
from tests.llm_endpoint import model_at
from tests.support import PATIENCE_S
from tests.test_llm import learner_at


@pytest.fixture(params=["ram", "duckdb"])
async def ports(request, folder):
    store = ram_store() if request.param == "ram" else open_duckdb(folder)
    async with ports_over(store) as made:
        yield made


async def test_the_days_budget_is_kept_over_restarts_and_the_next_day_opens_anew(ports, clock, chat):
    clock.now = clock.now.replace(hour=22, minute=0)
    chat.usage = {"prompt_tokens": 900, "completion_tokens": 100}
    size = len(prompt_of("judgement.v1").encode()) + 33 + 1024
    for n in range(3):  # each a daemon of its own
        model = model_at(chat, ports, clock, tokens=3000 + size)
        await model.ask("judgement.v1", "x")
        assert (1000 * (n + 1), n + 1) == ((await model.budget.spent()).tokens, (await model.budget.spent()).calls)
    await model_at(chat, ports, clock, tokens=3000 + size).ask("judgement.v1", "x")
    with pytest.raises(BudgetSpent) as spent:
        await model_at(chat, ports, clock, tokens=3000 + size).ask("judgement.v1", "x")
    assert (4, 7200) == (len(chat.asked), spent.value.for_s)
    clock.now += timedelta(hours=2, seconds=1)
    await model_at(chat, ports, clock, tokens=3000 + size).ask("judgement.v1", "x")


async def test_what_may_have_cost_something_counts_in_full(ram_ports, clock, chat):
    prices = {"cost": 100.0, "input_price": 1.0, "output_price": 2.0}
    model, hurried = (
        model_at(chat, ram_ports, clock, timeout_s=most, **prices) for most in (PATIENCE_S, 0.2)
    )  # they share what is spent
    prompt = len(prompt_of("judgement.v1").encode()) + 33
    for way, counted in (("hang", 1), (429, 1), ("die", 2), (400, 2)):
        chat.answer = way
        with pytest.raises(Unavailable):
            await (hurried if way == "hang" else model).ask("judgement.v1", "x")
        spent = await model.budget.spent()
        assert (counted * (prompt + 1024), counted * (prompt + 2048)) == (spent.tokens, spent.micro)
        clock.now += timedelta(minutes=20)
    chat.answer, chat.usage = "both", None  # it does not say what it took
    await model.ask("judgement.v1", "x")
    assert 3 * (prompt + 1024) == (await model.budget.spent()).tokens


async def test_two_daemons_share_one_budget(ram_ports, clock, chat):
    chat.usage = {"prompt_tokens": 900, "completion_tokens": 100}
    models = [model_at(chat, ram_ports, clock, tokens=10_000) for _ in range(2)]
    answers = await asyncio.gather(
        *(model.ask("judgement.v1", "x") for model in models for _ in range(10)), return_exceptions=True
    )
    assert {"Reply", "BudgetSpent"} == {type(one).__name__ for one in answers}
    assert (await models[0].budget.spent()).tokens == 1000 * len(chat.asked) <= 10_000


async def test_a_spent_budget_puts_everything_off_until_tomorrow_and_is_seen(ram_ports, clock, chat):
    clock.now = clock.now.replace(hour=12)
    for n in range(3):
        await Local(ram_ports, clock, user_id="alice").append(
            f"t{n}", MessageDraft(content=f"Violin {n} belongs to me")
        )
    learner = learner_at(chat, ram_ports, clock, tokens=4_000)
    chat.usage = None
    await learner.step()
    assert ("the day's budget of the language model is spent", 1) == (learner.fault, len(chat.asked))
    clock.now += timedelta(hours=11)
    await learner.step()
    assert 1 == len(learner.told)  # nothing was tried meanwhile


def test_the_configuration_names_what_cannot_be(folder):
    with pytest.raises(EndpointRefused, match=re.escape("llm.url is ''")):
        make_endpoint(Config(learning=LearningConfig(judge="openai")))
    with pytest.raises(EndpointRefused, match=r"llm\.model is not set"):
        make_endpoint(Config(learning=LearningConfig(writer="openai"), llm=LlmConfig(url="http://127.0.0.1:1/v1")))
    missing = LlmConfig(url="http://127.0.0.1:1/v1", model="m", api_key_file=str(folder / "none"))
    with pytest.raises(EndpointRefused, match="llm.api_key_file cannot be read"):
        make_endpoint(Config(learning=LearningConfig(extractor="openai"), llm=missing))
    assert make_endpoint(Config(llm=missing)) is None  # nothing uses it


def test_every_prompt_is_named_with_its_version():
    folder = Path(prompt_of.__wrapped__.__code__.co_filename).parent / "prompts"
    for path in folder.iterdir():
        assert re.fullmatch(r"[a-z]+\.v\d+\.txt", path.name)
        assert "is an instruction to you" in prompt_of(path.stem)


async def test_a_question_larger_than_the_budget_keeps_nobody_from_asking(ram_ports, clock, chat):
    user = Local(ram_ports, clock, user_id="alice")
    await user.append("long", MessageDraft(content=" ".join(f"My violin {n} belongs to me." for n in range(70))))
    await user.append("short", MessageDraft(content="My evenings belong to the violin"))
    learner = learner_at(chat, ram_ports, clock, tokens=4_000)
    await learner.step()
    assert ["violin" in line["text"] for line in chat.lines()] == [True]
    assert 1 == len(chat.asked)
