"""Whose words an answer states: a question counts from the host, or from the same user."""

from __future__ import annotations

import pytest
from memory_client import MessageDraft, Trust

from memoryd.domain.conversation.append import append
from memoryd.domain.conversation.threads import ThreadKey
from memoryd.learning.follow import Learner
from memoryd.learning.rules import RulesExtractor
from memoryd.model.caller import Caller
from tests.builders import Local, ports_over, ram_store


@pytest.fixture
async def ports():
    async with ports_over(ram_store()) as made:
        yield made


def learner(ports, clock) -> Learner:
    return Learner(ports, RulesExtractor(), clock, pytest.fail, wait_s=0)


async def test_an_answer_to_a_question_of_lower_trust_is_no_statement(ports, clock):
    host = Caller(user_id="alice")
    sandbox = Caller(user_id="alice", trust=Trust.SANDBOX, grant_id="g" * 26)
    key = ThreadKey("t")
    await append(key, [MessageDraft(content="Shall we begin?", role="assistant")], host, ports, now=clock.now)
    await append(key, [MessageDraft(content="Do you smoke?", role="assistant")], sandbox, ports, now=clock.now)
    await append(key, [MessageDraft(content="Yes")], host, ports, now=clock.now)
    await learner(ports, clock).step()
    assert () == (await Local(ports, clock, user_id="alice").page()).memories


@pytest.mark.parametrize(
    ("asks", "learnt"),
    [
        (Caller(user_id="mallory", chat_id="c", trust=Trust.SANDBOX, grant_id="m" * 26), False),
        (Caller(user_id="alice", chat_id="c", trust=Trust.SANDBOX, grant_id="b" * 26), True),  # another grant of hers
        (Caller(user_id="mallory", chat_id="c"), True),  # the host says so
    ],
)
@pytest.mark.parametrize("role", ["assistant", "user"])
async def test_in_a_chat_only_the_host_and_the_same_user_ask_what_an_answer_states(ports, clock, asks, learnt, role):
    alice = Caller(user_id="alice", chat_id="c", trust=Trust.SANDBOX, grant_id="a" * 26)
    key = ThreadKey("t", shared=True)
    asked = MessageDraft(content="Do you smoke?", role=role, name="helper")
    await append(key, [asked], asks, ports, now=clock.now)
    await append(key, [MessageDraft(content="Yes")], alice, ports, now=clock.now)
    await learner(ports, clock).step()
    found = (await Local(ports, clock, user_id="alice", chat_id="c").page()).memories
    assert learnt == bool(found)
