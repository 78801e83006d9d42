"""What is learnt waits until it is approved, where the operator wants it so."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from memory_client import InvalidArgument, MessageDraft, Outcome, ProposalNotFound, Trust

from memoryd.daemon.config import Config, MemoryConfig
from memoryd.domain.conversation.append import append
from memoryd.domain.conversation.threads import ThreadKey
from memoryd.learning.follow import Learner
from memoryd.learning.review import approve, list_proposals, reject
from memoryd.learning.rules import RulesExtractor
from memoryd.model.caller import Caller
from memoryd.model.limits import MAX_PROPOSALS
from tests.builders import Local, open_duckdb, ports_over, ram_store, traces_in
from tests.forking import run_command
from tests.support import BIN, running

REVIEW = Config(memory=MemoryConfig(extraction_review=True))


@pytest.fixture(params=["ram", "duckdb"])
async def ports(request, folder):
    store = ram_store() if request.param == "ram" else open_duckdb(folder)
    async with ports_over(store, REVIEW) as made:
        yield made


async def say(ports, clock, *texts: str, thread: str = "t", user_id: str = "alice"):
    done = await Local(ports, clock, user_id=user_id).append(thread, [MessageDraft(content=text) for text in texts])
    await Learner(ports, RulesExtractor(), clock, print, wait_s=0).step()
    clock.now += timedelta(minutes=1)
    return done


async def waiting(ports, **more) -> list[str]:
    return [one.content for one in (await list_proposals(ports.store, limit=1000, **more))[0]]


async def held(ports, clock, user_id="alice") -> list[str]:
    return sorted(one.content for one in (await Local(ports, clock, user_id=user_id).page()).memories)


async def test_what_is_learnt_waits_and_is_found_by_nobody(ports, clock):
    await say(ports, clock, "I'm vegan", "I live in Porto")
    await say(ports, clock, "I have two brothers", user_id="bob")
    assert ["I'm vegan", "I live in Porto", "I have two brothers"] == await waiting(ports)
    assert ["I have two brothers"] == await waiting(ports, user_id="bob")
    memory = Local(ports, clock, user_id="alice")
    assert [] == await held(ports, clock)
    assert () == tuple((await memory.search("vegan")).hits)
    await say(ports, clock, "I'm vegan!", "I live in Porto")
    assert 3 == len(await waiting(ports))


async def test_what_is_approved_is_a_memory_with_its_source_and_trust(ports, clock):
    sandbox = Caller(user_id="alice", trust=Trust.SANDBOX, grant_id="g1")
    said = [MessageDraft(content="I live in Porto"), MessageDraft(content="I'm vegan")]
    done = await append(ThreadKey("t", shared=False), said, sandbox, ports, now=clock(), session_id="s")
    await Learner(ports, RulesExtractor(), clock, print, wait_s=0).step()
    one, other = (await list_proposals(ports.store))[0]
    assert (Trust.SANDBOX, (done.messages[0].id,), "personal") == (one.trust, one.message_ids, one.category)
    result = await approve(one.id[:8], "", ports, now=clock())
    assert (Outcome.INSERTED, "I live in Porto") == (result.outcome, result.memory.content)
    memory = result.memory
    assert (Trust.SANDBOX, "g1", "extraction", "s") == (
        memory.trust, memory.grant_id, memory.source.channel, memory.source.session_id
    )  # fmt: skip
    result = await approve(other.id, "I eat no animals", ports, now=clock())
    assert ((done.messages[1].id,), "I eat no animals") == (result.memory.source.message_ids, result.memory.content)
    assert [] == await waiting(ports)
    with pytest.raises(ProposalNotFound):
        await approve(one.id, "", ports, now=clock())
    with pytest.raises(InvalidArgument, match="at least 8"):
        await approve("abc", "", ports, now=clock())


async def test_what_is_approved_supersedes_and_repeats_as_ever(ports, clock):
    await say(ports, clock, "My favorite color is red")
    await approve((await list_proposals(ports.store))[0][0].id, "", ports, now=clock())
    await say(ports, clock, "My favorite color is blue")
    result = await approve((await list_proposals(ports.store))[0][0].id, "", ports, now=clock())
    assert Outcome.SUPERSEDED is result.outcome
    assert ["My favorite color is blue"] == await held(ports, clock)
    await say(ports, clock, "My favorite color is blue")
    assert [] == await waiting(ports)  # it is known


async def test_what_is_rejected_is_not_proposed_again(ports, clock):
    await say(ports, clock, "I'm vegan")
    rejected = await reject((await list_proposals(ports.store))[0][0].id, ports, now=clock())
    assert "I'm vegan" == rejected.content
    await say(ports, clock, "I'm vegan", thread="u")
    await say(ports, clock, "Remember that I'm vegan", thread="u")
    assert [] == await waiting(ports)
    assert [] == await held(ports, clock)
    await Local(ports, clock, user_id="alice").add("I'm vegan")  # whoever states it by call does so
    assert ["I'm vegan"] == await held(ports, clock)


async def test_what_waits_goes_with_its_messages(ports, clock):
    memory = Local(ports, clock, user_id="alice")
    await say(ports, clock, "I'm vegan", "My sister Zoe is a nurse")
    await say(ports, clock, "I live in Porto", thread="u")
    await say(ports, clock, "I have two brothers", user_id="bob")
    await memory.forget_person("Zoe", with_messages=True)
    assert ["I'm vegan", "I live in Porto", "I have two brothers"] == await waiting(ports)
    await memory.delete_thread("t")
    assert ["I live in Porto", "I have two brothers"] == await waiting(ports)
    await memory.forget_user()
    assert ["I have two brothers"] == await waiting(ports)
    assert not await traces_in(ports.store, "Porto")


async def test_of_one_user_so_many_wait(ports, clock):
    for n in range(0, MAX_PROPOSALS + 40, 20):
        await say(ports, clock, *(f"I have {n + i + 2} parrots" for i in range(20)), thread=f"t{n}")
    assert MAX_PROPOSALS == len(await waiting(ports))


async def test_no_sandbox_fills_the_queue_alone(ports, clock):
    sandbox = Caller(user_id="alice", trust=Trust.SANDBOX, grant_id="g" * 26)
    for n in range(0, 300, 20):
        drafts = [MessageDraft(content=f"I have {n + i + 2} parrots") for i in range(20)]
        await append(ThreadKey(f"s{n}"), drafts, sandbox, ports, now=clock.now)
    await Learner(ports, RulesExtractor(), clock, print, wait_s=0).step()
    assert 250 == len(await waiting(ports))
    await say(ports, clock, "I'm allergic to peanuts")
    assert "I'm allergic to peanuts" in await waiting(ports)


@pytest.mark.parametrize("doors", [("g", "g"), ("g", "h")])
async def test_names_that_are_only_claimed_fill_no_more_of_the_queue(ports, clock, doors):
    """Neither by many names through one grant, nor through several grants of one user."""
    for n in range(0, 300, 20):
        sandbox = Caller(user_id="mallory", chat_id="team", trust=Trust.SANDBOX, grant_id=doors[n // 20 % 2] * 26)
        drafts = [MessageDraft(content=f"I have {n + i + 2} parrots", name=f"Nobody {n + i}") for i in range(20)]
        await append(ThreadKey(f"s{n}", shared=True), drafts, sandbox, ports, now=clock.now)
    await Learner(ports, RulesExtractor(), clock, print, wait_s=0).step()
    assert 250 == len(await waiting(ports))
    host = Caller(user_id="bob", chat_id="team")
    await append(ThreadKey("b", shared=True), [MessageDraft(content="I'm vegan")], host, ports, now=clock.now)
    await Learner(ports, RulesExtractor(), clock, print, wait_s=0).step()
    assert "I'm vegan" in await waiting(ports)


async def test_forgetting_somebody_drops_what_waits_of_them(ports, clock):
    memory = Local(ports, clock, user_id="alice")
    await memory.add("My wife Sarah lives in Oslo")
    await say(ports, clock, "My wife Sarah is allergic to peanuts", "I live in Porto")
    await memory.forget_person("Sarah")
    assert ["I live in Porto"] == await waiting(ports)


def test_the_operator_decides_by_command(folder):
    config = '[embedding]\nprovider = "none"\n[memory]\nextraction_review = true\n'
    with running(folder, config=config) as daemon, daemon.client() as memory:

        def run(*words: str):
            command = [BIN / "memoryd", *words, "--socket", daemon.endpoint.removeprefix("unix:")]
            done = run_command(command, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, done.stderr

        assert (0, "", "nothing waits\n") == run("review", "list")
        memory.append("t", [MessageDraft(content="I'm vegan"), MessageDraft(content="I live in Porto\x1b[2J")])
        assert "proposed 2" in run("jobs", "run", "extraction")[1]
        assert "2 learnt facts wait for approval" in "".join(run("status")[1:])
        code, out, _ = run("review", "list", "--user", "alice")
        assert (0, 2) == (code, len(out.splitlines()))
        assert "\x1b" not in out
        ids = [one["id"] for one in json.loads(run("review", "list", "--json")[1])["proposals"]]
        code, out, _ = run("review", "approve", ids[1][:8], "--as", "I live in Porto now")
        assert (0, "inserted") == (code, out.split()[0])
        code, out, err = run("review", "reject", ids[0], "z" * 26)
        assert (1, f"rejected {ids[0][:8]}\n") == (code, out)
        assert "waits to be approved" in err
        assert "wait for approval" not in "".join(run("status")[1:])
        assert ["I live in Porto now"] == [one.content for one in memory.page().memories]
        assert 2 == run("review", "approve", *ids, "--as", "x")[0]
