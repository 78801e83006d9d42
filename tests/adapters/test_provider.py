"""Memory for any loop, as a loop uses it, against a real daemon."""

from __future__ import annotations

import logging

import pytest
from memory_client import AsyncMemoryClient, LimitExceeded, MessageDraft, SessionState, TimedOut, Unavailable
from memory_client.adapters.provider import Provider

from tests.support import running, short_folder


async def test_a_loop_remembers_from_one_wake_to_the_next(daemon, user):
    async with AsyncMemoryClient(daemon.endpoint, user_id=user, chat_id="", agent_id="") as client:
        memory = Provider(client, "chat")
        assert "oven" not in await memory.on_wake("hello")
        assert await memory.recent_turns() == []
        tool = MessageDraft(role="tool", name="shop", content="no oven in stock")
        assert await memory.save_turn("The oven is broken", "Noted: stove only.", tool)
        assert [message.content for message in await memory.recent_turns()] == [
            "The oven is broken", "no oven in stock", "Noted: stove only.",
        ]  # fmt: skip
        assert await memory.working_memory("dinner at eight") == "dinner at eight"
        first = memory.session_id
        await memory.on_sleep()
        await memory.on_sleep()
        assert [session.state for session in (await client.sessions("chat")).sessions] != [SessionState.OPEN]
        async with Provider(client, "chat") as again:
            assert again.session_id not in {"", first}
            assert "The oven is broken" in await again.recall("What shall I cook?")
            assert await again.working_memory() == "dinner at eight"
        assert again.session_id == ""
        with pytest.raises(LimitExceeded):
            await memory.save_turn("x" * 300_000)


async def test_while_the_daemon_is_away_it_knows_nothing_and_says_so_once_a_minute(user, caplog, monkeypatch):
    with short_folder() as place, running(place, config='[embedding]\nprovider = "none"\n') as daemon:
        client = AsyncMemoryClient(daemon.endpoint, user_id=user, chat_id="", agent_id="", timeout_s=0.3)
        memory = Provider(client, "chat")
        await memory.on_wake()
        daemon.kill()
        with caplog.at_level(logging.WARNING, "memory_client"):
            assert await memory.recall("hello") == ""
            assert await memory.save_turn("hello", "hi") is False
            assert await memory.recent_turns() == []
            assert await memory.working_memory("x") == ""
            await memory.on_sleep()
            assert len(caplog.records) == 1
            monkeypatch.setattr("memory_client.adapters.away.AGAIN_S", 0.0)
            await memory.on_wake()
            assert len(caplog.records) > 1
        assert "hello" not in caplog.text
        with pytest.raises((Unavailable, TimedOut)):
            await Provider(client, "chat", strict=True).recall("hello")
        daemon.start()
        tries = [await memory.save_turn("hello", "hi") for _ in range(20)]
        assert tries[-1]
        await memory.close()
