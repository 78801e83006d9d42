"""A language model decides what is contested, writes digests, and is seen by the operator when it fails."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta

import pytest
from memory_client import Filter, Kind, MessageDraft, Trust

from memoryd.domain.writing.add import add
from memoryd.errors import Unavailable
from memoryd.learning.judgement import judge_contested
from memoryd.learning.reflection import reflect
from memoryd.model.caller import Caller
from memoryd.model.memory import Draft
from memoryd.model.scope import Owner
from tests.builders import ALICE, Local, located, open_duckdb, ports_over, ram_store
from tests.llm_endpoint import facts, model_at
from tests.support import running, until

OWNER = Owner("default", ALICE)


@pytest.fixture(params=["ram", "duckdb"])
async def ports(request, folder):
    store = ram_store() if request.param == "ram" else open_duckdb(folder)
    async with ports_over(store) as made:
        yield made


async def contested(memory, clock):
    """Two statements that contest each other."""
    old = (await memory.add("I am a nurse")).memory
    clock.now += timedelta(days=1)
    new = (await memory.add("I am a writer")).memory
    return old, new


@pytest.mark.parametrize("verdict", ["replaces", "both", "unsure", "nonsense"])
async def test_a_pair_is_decided_once(ports, clock, chat, verdict):
    memory = Local(ports, clock, user_id="alice")
    old, new = await contested(memory, clock)
    model = model_at(chat, ports, clock)
    chat.answer = json.dumps({"verdict": verdict})
    assert {"pairs": 1} == dict(await judge_contested(ports, model, now=clock(), dry_run=True))
    assert [] == chat.asked
    counted = {"nonsense": "unsure"}.get(verdict, verdict)
    assert {"pairs": 1, counted: 1} == dict(await judge_contested(ports, model, now=clock()))
    asked = chat.lines()[0]
    assert ("I am a nurse", "I am a writer") == (asked["older"]["text"], asked["newer"]["text"])
    held = {one.content: one for one in (await memory.page(filter=Filter(include_superseded=True))).memories}
    assert (new.id if verdict == "replaces" else "") == held["I am a nurse"].superseded_by
    assert ((new.id,) if counted == "unsure" else ()) == held["I am a nurse"].contested_with
    if verdict == "replaces":
        assert "a language model decided (m, judgement.v1)" == held["I am a nurse"].judgement.reason
        await memory.restore(old.id)
    assert 0 == (await judge_contested(ports, model, now=clock()))["pairs"]
    assert 1 == len(chat.asked)


async def test_it_ends_nothing_of_more_trust_and_nothing_that_was_confirmed(ports, clock, chat):
    memory = Local(ports, clock, user_id="alice")
    sandbox = Caller(user_id="alice", trust=Trust.SANDBOX, grant_id="g1")
    nurse = (await memory.add("I am a nurse")).memory
    clock.now += timedelta(days=1)
    await add(Draft(content="I am a writer"), sandbox, ports, now=clock())
    bob = Local(ports, clock, user_id="bob")
    mine = (await bob.add("I am a nurse")).memory
    await bob.confirm(mine.id)
    clock.now += timedelta(days=1)
    await bob.add("I am a writer")
    chat.answer = '{"verdict": "replaces"}'
    await judge_contested(ports, model_at(chat, ports, clock), now=clock())
    for one in (nurse, mine):
        assert "" == (await located(ports.store, one.id)).superseded_by


async def test_a_failure_loses_no_pair(ports, clock, chat):
    memory = Local(ports, clock, user_id="alice")
    await contested(memory, clock)
    clock.now += timedelta(days=1)
    await contested(memory.acting_for(user_id="bob"), clock)
    model = model_at(chat, ports, clock)
    answers = iter(['{"verdict": "both"}', 503])
    chat.answer = lambda _: next(answers, '{"verdict": "both"}')
    with pytest.raises(Unavailable):
        await judge_contested(ports, model, now=clock())
    clock.now += timedelta(hours=1)
    assert {"pairs": 1, "both": 1} == dict(await judge_contested(ports, model, now=clock()))
    for user in ("alice", "bob"):
        live = (await memory.acting_for(user_id=user).page()).memories
        assert [(), ()] == [one.contested_with for one in live]


@pytest.mark.parametrize(
    ("reply", "by"),
    [
        ('{"digest": "The user has moved to Lisbon and works at Acme."}', "m"),
        ('{"digest": "The user has met Zebedee."}', "rules"),
        ('{"digest": "The user has paid 300 dollars."}', "rules"),
        ("I'm sorry, I cannot.", "rules"),
        (503, "rules"),
    ],
)
async def test_it_writes_the_digest_or_the_rules_do(ports, clock, chat, reply, by):
    memory = Local(ports, clock, user_id="alice")
    for said in ("I'm vegan", "I live in Porto", "I work at Acme", "I have moved to Lisbon"):
        await memory.add(said)
    chat.answer = reply
    assert 1 == (await reflect(ports, [OWNER], now=clock(), model=model_at(chat, ports, clock)))["reflections"]
    digest = (await memory.page(filter=Filter(kinds=frozenset({Kind.REFLECTION})))).memories[0]
    assert by == digest.metadata["written_by"]
    assert ("New: " in digest.content) == (by == "rules")
    assert [{"New"}, {"Changed"}] == [{*line} for line in chat.lines()]
    await memory.delete_matching(text="vegan", purge=True)
    assert not (await memory.page(filter=Filter(kinds=frozenset({Kind.REFLECTION})))).memories


def test_a_daemon_asks_it_tells_of_its_faults_and_answers_meanwhile(folder, chat):
    config = f"""[embedding]\nprovider = "none"\n[learning]\nwait_s = 0\nextractor = "openai"\njudge = "openai"
writer = "openai"\n[readers]\nkeeping = "none"\n[llm]\nurl = "{chat.url}"\nmodel = "m"\ntimeout_s = 2\n"""
    chat.answer = facts(("My evenings belong to the violin", 1))
    with running(folder, config=config) as daemon, daemon.client() as memory:
        memory.append("t", MessageDraft(content="My evenings belong to the violin"))
        until(lambda: memory.page().memories)
        assert ["My evenings belong to the violin"] == [one.content for one in memory.page().memories]
        jobs = {job.name: job for job in memory.jobs()}
        assert {"inserted": 1, "messages": 1, "threads": 1} == dict(jobs["llm_extraction"].last_run.counts)
        assert "judgement" in jobs
        chat.answer = "hang"
        memory.append("t", MessageDraft(content="The garden belongs to my sister"))

        def warned():
            memory.search("violin")  # it is answered, however long the model hangs
            return memory.server_info().warnings

        warnings = until(warned)
        assert ["the language model is not used now: the language model gave no answer within 2 s"] == [*warnings]
        assert 1 == {job.name: job for job in memory.jobs()}["llm_extraction"].waiting_count
    assert "garden" not in daemon.log.read_text()


async def test_what_somebody_restored_is_left_to_people(ports, clock, chat):
    memory = Local(ports, clock, user_id="alice")
    red = (await memory.add("My favorite color is red")).memory
    clock.now += timedelta(seconds=1)
    await memory.add("My favorite color is blue")
    clock.now += timedelta(seconds=1)
    await memory.restore(red.id)
    chat.answer = '{"verdict": "replaces"}'
    counts = await judge_contested(ports, model_at(chat, ports, clock), now=clock.now)
    assert (Counter(), []) == (counts, chat.asked)
