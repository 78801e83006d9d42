"""Erasing a person or a user through the commands, and proving it; sessions as the operator sees them."""

from __future__ import annotations

import json

import pytest
from memory_client import ConnectionLost, InvalidArgument, MemoryClient, MessageDraft

from tests.forking import run_command
from tests.support import running, short_folder

SAID = [MessageDraft(content="Bob Miller was here"), MessageDraft(content="so I heard", role="assistant")]


def test_a_person_is_forgotten_with_what_was_said_of_them(memory, daemon, user):
    with daemon.client(user) as client:
        client.add("Bob Miller likes tea")
        client.append("cli", SAID)
    code, out, _ = memory("forget", "Bob Miller", "--dry-run")
    assert (0, True) == (code, "left, with that name: 1 message (--with-messages erases them)" in out)
    code, out, _ = memory("forget", "Bob Miller", "--with-messages", "--dry-run")
    assert (0, True) == (code, "would erase with that name: 1 message" in out)
    code, out, _ = memory("forget", "Bob Miller", "--with-messages", "--yes")
    assert (0, True) == (code, "erased with that name: 1 message" in out)
    assert "so I heard" in memory("log", "cli")[1]
    assert "Bob" not in memory("log", "cli")[1]


def test_all_that_a_user_has_is_erased_by_the_command(memory, daemon, user):
    with daemon.client(user) as client:
        client.add("I like figs")
        client.append("cli", SAID)
    assert "would erase 1 memory, 2 messages, 1 thread\n" == memory("forget", "--everything", "--dry-run")[1]
    assert 2 == memory("forget", "--everything")[0]  # nobody can be asked
    assert 2 == memory("forget", "--everything", "Bob", "--yes")[0]
    assert 2 == memory("forget")[0]
    code, out, _ = memory("forget", "--everything", "--yes", "--json")
    assert (0, 1, 2, False) == (code, *(json.loads(out)[key] for key in ("memory_count", "message_count", "dry_run")))
    assert "erased 0 memories, 0 messages, 0 threads\n" == memory("forget", "--everything", "--yes")[1]


@pytest.fixture(scope="module")
def own():
    """A daemon whose memories nobody else has."""
    with short_folder() as place, running(place) as started:
        yield started


def host(daemon, *words: str) -> tuple[int, str, str]:
    done = run_command(daemon.command(*words), capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_operator_erases_a_user_of_every_agent(own):
    for agent in ("", "second"):
        with MemoryClient(own.endpoint, user_id="alice", agent_id=agent, chat_id="") as client:
            client.add("I like figs")
            client.append("cli", SAID)
    with own.client("bob") as client:
        client.add("I like tea")
    code, out, _ = host(own, "user", "erase", "alice", "--dry-run")
    assert (0, 2) == (code, out.count("would erase 1 memory, 2 messages, 1 thread of alice"))
    assert 2 == host(own, "user", "erase", "alice")[0]
    code, out, _ = host(own, "user", "erase", "alice", "--agent", "second", "--yes")
    assert (0, "agent second: erased 1 memory, 2 messages, 1 thread of alice\n") == (code, out)
    code, out, _ = host(own, "user", "erase", "alice", "--yes", "--json")
    assert (0, ["default"]) == (code, [one["agent_id"] for one in json.loads(out)["erased"]])
    assert "nothing is stored of alice" in host(own, "user", "erase", "alice", "--yes")[2]
    with own.client("bob") as client:
        assert 1 == len(client.page().memories)
        with pytest.raises(InvalidArgument, match="user_id is empty"):
            client.erase_user("")


def test_a_message_that_was_erased_is_proven_gone_after_a_compaction(own):
    with own.client("carol") as client:
        ids = [message.id for message in client.append("cli", SAID).messages]
        held = client.verify_forgotten(ids[0])
        assert ["messages.id"] == [trace.place for trace in held.traces if trace.place.startswith("messages")]
        assert "thread 'cli' of user carol" in held.traces[0].detail
        client.search("Bob Miller")
        client.context("Bob Miller", thread_id="cli")
        client.delete_thread("cli")
        places = {trace.place for trace in client.verify_forgotten(ids[0], text="Bob Miller was here").traces}
        assert places <= {"database", "memory.duckdb", "memory.duckdb.wal"}
        client.compact_store()
        assert () == client.verify_forgotten(ids[0], text="Bob Miller was here").traces


def test_the_operator_sees_sessions(own):
    with own.client("dora", "team") as client:
        client.append("cli", SAID, session_id="monday")
        client.end_session("cli", "monday")
        client.append("cli", SAID, session_id="tuesday")
        client.append("room", SAID, session_id="standup", shared=True)
    code, out, _ = host(own, "sessions", "--user", "dora")
    assert (0, ["tuesday", "monday"]) == (code, [line.split()[-1] for line in out.splitlines()])
    code, out, _ = host(own, "sessions", "--user", "dora", "--state", "pending", "--json")
    assert ["monday"] == [one["id"] for one in json.loads(out)["sessions"]]
    code, out, _ = host(own, "sessions", "--chat", "team", "--thread", "room")
    assert ["standup"] == [line.split()[-1] for line in out.splitlines()]
    assert 2 == host(own, "sessions")[0]
    assert "no sessions" in host(own, "sessions", "--user", "nobody")[2]


def test_what_is_said_again_after_a_failure_counts_once(own, monkeypatch):
    with own.client("eve") as client:
        talk = client.conversation("cli")
        send, lost = client.append, [True]

        def answer_lost(*words, **more):
            done = send(*words, **more)
            if lost.pop() if lost else False:
                raise ConnectionLost("the connection broke in mid-call")
            return done

        monkeypatch.setattr(client, "append", answer_lost)
        with pytest.raises(ConnectionLost):
            talk.user("hello")
        assert 1 == talk.user("hello").message_count
        assert 2 == talk.user("hello").message_count  # that was stored, so this is said anew
