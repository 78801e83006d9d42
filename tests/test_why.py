"""Where a memory comes from: `memory why`, and the messages of a memory by their ids."""

from __future__ import annotations

import json

import pytest
from memory_client import LimitExceeded, MemoryClient, MessageDraft, SaidFact

from tests.doors import socket_of


@pytest.fixture
def learnt(daemon, user):
    """A memory that was learnt from two messages of five."""
    with daemon.client(user) as host:
        texts = ("Hello", "My evenings belong\nto the violin", "Which violin?", "An old one from Cremona", "Bye")
        said = [MessageDraft(content=text, role="assistant" if n == 2 else "user") for n, text in enumerate(texts)]
        done = host.append("cli:talk", said, session_id="s")
        host.end_session("cli:talk")
        session = host.sessions(thread_id="cli:talk").sessions[0]
        named = (done.messages[1].id, done.messages[3].id)
        fact = SaidFact("I play an old violin from Cremona in the evenings", named)
        yield host, host.save_facts(session, [fact], worker="w")[0].memory


def test_the_messages_that_a_memory_came_from_are_shown(learnt, memory):
    host, made = learnt
    code, out, err = memory("why", made.id[:12])
    lines = [line.strip() for line in out.splitlines()]
    assert (0, "", 4) == (code, err, len(lines))
    assert lines[0].endswith("I play an old violin from Cremona in the evenings")
    assert "learnt from what was said in cli:talk" == lines[1]
    assert lines[2].endswith("user: My evenings belong to the violin")
    assert lines[3].endswith("user: An old one from Cremona")
    told = json.loads(memory("why", "--json", made.id)[1])
    assert [*made.source.message_ids] == [message["id"] for message in told["messages"]]
    assert made.id == told["memory"]["id"]
    host.delete_thread("cli:talk")
    code, out, err = memory("why", made.id)
    assert (0, 2) == (code, len(out.splitlines()))
    assert "its conversation is no longer stored" in err


def test_of_a_memory_that_was_added_it_says_so(memory):
    short = memory("add", "tea is fine")[1].split()[1]
    assert "added through cli" == memory("why", short)[1].splitlines()[1].strip()
    assert 3 == memory("why", "a" * 26)[0]


def test_messages_by_their_ids_are_of_one_thread_and_of_who_may_read_it(learnt, daemon, user):
    host, made = learnt
    ids = made.source.message_ids
    page = host.messages("cli:talk", message_ids=[*reversed(ids), "none"])
    assert ([*ids], "") == ([message.id for message in page.messages], page.next_page_token)
    host.append("other", MessageDraft(content="something else"))
    assert () == host.messages("other", message_ids=ids).messages
    assert 1 == len(host.messages("cli:talk", message_ids=ids, max_tokens=8).messages)
    with pytest.raises(LimitExceeded, match="message_ids has 101 entries"):
        host.messages("cli:talk", message_ids=[f"m{n}" for n in range(101)])
    with daemon.client(f"not {user}") as stranger:
        stranger.append("cli:talk", MessageDraft(content="mine"))
        assert () == stranger.messages("cli:talk", message_ids=ids).messages


def test_who_may_not_read_messages_is_told_so(learnt, daemon, user, memory):
    from memory_client import GrantSpec, Permission

    host, made = learnt
    held = host.open_sandbox(GrantSpec(user_id=user, permissions=frozenset({Permission.GET})))
    with MemoryClient(socket_of(held)) as sandbox:
        assert made.id == sandbox.get(made.id).id
    code, out, err = memory("why", made.id, MEMORY_ENDPOINT=socket_of(held))
    assert (0, 2) == (code, len(out.splitlines()))
    assert "you may not read messages here" in err
