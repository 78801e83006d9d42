"""No fault in reading or judging a statement makes an add, a batch or a restore fail; it is counted and told."""

from __future__ import annotations

import pytest
from memory_client import Draft, Outcome, State, TrustTooLow

from memoryd.domain.faults import Faults
from memoryd.domain.policy import Policy
from memoryd.domain.rules import Rules
from memoryd.domain.writing import add
from memoryd.model.caller import Caller
from memoryd.model.trust import Trust
from tests.builders import NOW, Local, ports_over, ram_store, with_ports


class Broken:
    """A finder that fails on every text."""

    name = "broken"
    accurate = True

    def find(self, text):
        raise ValueError(text)


def broken_secrets(texts):
    raise IndexError(list(texts))


async def test_whatever_fails_a_statement_is_stored_and_the_fault_is_told_without_a_word_of_it(clock):
    told = []
    async with ports_over(ram_store()) as ports:
        ports = with_ports(ports, faults=Faults(lambda *what: told.append(what)))
        alice = Local(ports, clock, user_id="alice")
        before = await alice.add("My wife Sarah likes secret tulips")
        broken = Policy(rules=Rules(dedup_cosine=None))  # judging compares a number with it
        alice.ports = with_ports(ports, finders=(Broken(),), secrets=broken_secrets, policy=broken)
        made = await alice.add("My wife Sarah likes secret tulips a lot", tags=["a"])
        assert (Outcome.INSERTED, ("a",)) == (made.outcome, made.memory.tags)
        batch = await alice.add_batch([Draft(content="I like secret tea"), Draft(content="I like secret tea, too")])
        assert [Outcome.INSERTED] * 2 == [one.outcome for one in batch]
        await alice.delete(before.memory.id)
        assert State.LIVE is (await alice.restore(before.memory.id)).state
        assert "secret tulips" in (await alice.context("What does Sarah like?")).text
        assert 4 == len((await alice.page()).memories)
        assert len(told) == ports.shared.faults.count > 0
    assert {"looking for credentials", "reading names", "judging"} == {step for step, _, _ in told}
    assert "secret" not in str(told)
    assert all(place.partition(":")[0].endswith(".py") for _, _, place in told)


async def test_the_key_decides_also_where_nothing_can_be_read(clock):
    async with ports_over(ram_store()) as ports:
        ports = with_ports(ports, policy=Policy(rules=Rules(dedup_cosine=None)))
        alice = Local(ports, clock, user_id="alice")
        await alice.add("the door code of the blue house is long", key="k")
        second = await alice.add("the door code of the blue house is short", key="k")
        assert Outcome.SUPERSEDED is second.outcome
        sandbox = Caller(user_id="alice", trust=Trust.SANDBOX, grant_id="g" * 26)
        with pytest.raises(TrustTooLow):
            await add.add(Draft(content="the door code is mine", key="k"), sandbox, ports, now=NOW)
        corrected = await alice.correct(second.memory.id, "the door code of the blue house is secret")
        assert (second.memory.id,) == corrected.superseded_ids


POISON = ["my age is ²⁵", "I am ²⁵ years old", "my age is ⑤", "my age is ௧௨", "I have ½ cats"]


@pytest.mark.parametrize("poison", POISON)
async def test_no_text_of_a_sandbox_makes_the_host_s_adds_fail(clock, poison):
    async with ports_over(ram_store()) as ports:
        sandbox = Caller(user_id="alice", trust=Trust.SANDBOX, grant_id="g" * 26)
        await add.add(Draft(content=poison), sandbox, ports, now=NOW)
        host = Local(ports, clock, user_id="alice")
        assert Outcome.REJECTED is not (await host.add("my age is 30")).outcome
        assert 2 == len(await host.add_batch([Draft(content="my age is 31"), Draft(content="I am 32 years old")]))
        assert 0 == ports.shared.faults.count
