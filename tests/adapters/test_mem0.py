"""mem0's interface over a real daemon, held against what mem0 2.2.1 itself answers to the same program."""

from __future__ import annotations

import importlib.util
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from memory_client import AsyncMemoryClient, Filter, InvalidArgument, LimitExceeded, ScopeMismatch
from memory_client.mem0 import AsyncMemory, Memory, ValidationError

from tests.adapters.mem0_program import program, real

ANSWERS = json.loads(Path(__file__).with_name("mem0_answers.json").read_text(encoding="utf-8"))
KEY = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8" * 6


@pytest.fixture
def memory(daemon):
    with daemon.client("") as client:
        yield Memory({"vector_store": {"provider": "qdrant"}}, client=client)


def test_a_program_of_mem0_gets_the_same_answers(memory):
    answers = json.loads(json.dumps(program(memory)))
    assert {name: answer for name, answer in answers.items() if answer != ANSWERS[name]} == {}
    assert answers.keys() == ANSWERS.keys()


@pytest.mark.skipif(importlib.util.find_spec("mem0") is None, reason="needs a library of make test-adapters")
def test_the_answers_are_those_of_mem0_itself():
    assert json.loads(json.dumps(program(real()))) == ANSWERS


def test_what_differs(memory, user):
    """All that docs/mem0.md lists: memoryd knows what it is told twice, what changes, and what is a credential."""

    def add(text, **more):
        return memory.add(text, user_id=user, infer=False, **more)["results"][0]

    first = add("My favorite color is red")
    assert (add("My favorite color is red")["event"], first["event"]) == ("NONE", "ADD")
    assert add("My favorite color is blue")["event"] == "UPDATE"
    texts = [item["memory"] for item in memory.get_all(filters={"user_id": user})["results"]]
    assert texts == ["My favorite color is blue"]
    refused = add(f"my key is {KEY}")
    assert (refused["event"], refused["id"], refused["reason"]) == ("REJECTED", "", "secret")
    with pytest.raises(LimitExceeded):
        add("word " * 2000)
    with pytest.raises(InvalidArgument, match="future"):
        add("gone by then", expiration_date="2020-01-01")
    with pytest.raises(ValidationError):
        memory.add("x", infer=False)
    with pytest.raises(ValueError, match="erases one user"):
        memory.reset()
    memory.reset(user_id=user)
    assert memory.get_all(filters={"user_id": user})["results"] == []


def test_what_is_said_is_kept_and_learnt_from(memory, user):
    said = [
        {"role": "user", "content": "I'm vegetarian and I live in Leeds"},
        {"role": "assistant", "content": "Noted"},
    ]
    assert memory.add(said, user_id=user) == {"results": [], "pending": True}
    done = memory.add("My sister Ruth breeds alpacas", user_id=user, run_id="r1", wait=True)["results"]
    assert [item["memory"] for item in done] == ["My sister Ruth breeds alpacas"]
    texts = [item["memory"] for item in memory.get_all(filters={"user_id": user})["results"]]
    assert any("vegetarian" in text for text in texts)


def test_an_end_is_the_end_of_the_day(memory, user):
    day = (datetime.now(UTC) + timedelta(days=3)).date()
    made = memory.add("The fair is open", user_id=user, infer=False, expiration_date=day)["results"][0]
    assert memory.get(made["id"])["expiration_date"] == day.isoformat()


def test_a_memory_of_another_program_is_shown_too(memory, daemon, user):
    with daemon.client(user) as client:
        client.add("I keep bees", metadata={"plain": "text, no JSON"})
    item = memory.get_all(filters={"user_id": user})["results"][0]
    assert (item["memory"], item["metadata"]) == ("I keep bees", {"plain": "text, no JSON"})


def test_a_long_run_id_and_the_roles_of_models_are_taken(memory, daemon, user):
    said = [{"role": "developer", "content": "Be brief"}, {"role": "user", "content": "I keep bees"}]
    assert {"results": [], "pending": True} == memory.add(said, user_id=user, run_id="r" * 200)
    with daemon.client(user) as client:
        (thread,) = client.threads().threads
        assert ["system", "user"] == [message.role.value for message in client.messages(thread.id).messages]


def test_in_a_sandbox_the_socket_says_whose_it_is(world, user):
    with world.inside(world.sandbox(user_id=user)) as client:
        memory = Memory(client=client)
        memory.add("Ann likes jazz", agent_id="bot", infer=False)
        assert [item["memory"] for item in memory.get_all(filters={"agent_id": "bot"})["results"]] == ["Ann likes jazz"]
        with pytest.raises(ScopeMismatch):
            memory.add("x", user_id="another", infer=False)
    with world.admin(user) as host:
        assert [one.content for one in host.pages(filter=Filter(metadata={"agent_id": "bot"}))] == ["Ann likes jazz"]


async def test_the_asynchronous_one_says_the_same(daemon, user):
    async with AsyncMemoryClient(daemon.endpoint, user_id="", chat_id="", agent_id="") as client:
        memory = AsyncMemory.from_config({})
        await memory.close()
        memory = AsyncMemory(client=client)
        made = (await memory.add("I keep bees", user_id=user, infer=False, metadata={"n": 3}))["results"][0]
        assert (await memory.get(made["id"]))["metadata"] == {"n": 3}
        found = await memory.search("bees", filters={"user_id": user, "n": {"gt": 2}}, explain=True)
        assert [item["memory"] for item in found["results"]] == ["I keep bees"]
        assert found["results"][0]["score_details"]
        await memory.update(made["id"], text="I keep wasps")
        assert (await memory.get(made["id"]))["memory"] == "I keep wasps"
        await memory.delete_all(user_id=user)
        assert await memory.get(made["id"]) is None
