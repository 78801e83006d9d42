"""The small adapters, each with the real library where that is installed, against a real daemon."""

from __future__ import annotations

import pytest
from memory_client import AsyncMemoryClient, TimedOut, Unavailable

from tests.support import running, short_folder

KEY = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8" * 6
ABSENT = "needs a library of make test-adapters"


def needs(name: str):
    return pytest.importorskip(name, reason=ABSENT)


@pytest.fixture
async def client(daemon, user):
    async with AsyncMemoryClient(daemon.endpoint, user_id=user, chat_id="", agent_id="") as made:
        yield made


async def away(make, *calls):
    """Each call of an adapter goes on while the daemon is away, says so once for all, and raises where it is strict."""
    with short_folder() as place, running(place, config='[embedding]\nprovider = "none"\n') as daemon:
        async with AsyncMemoryClient(daemon.endpoint, user_id="alice", chat_id="", agent_id="", timeout_s=0.3) as made:
            await made.whoami()
            adapter = make(made)
            daemon.kill()
            answers = [await call(adapter) for call in calls]
            for call in calls:
                with pytest.raises((Unavailable, TimedOut)):
                    await call(make(made, strict=True))
    return answers


async def test_langchain_history(daemon, user):
    needs("langchain_core")
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
    from memory_client.adapters.langchain import MemorydHistory

    said = [
        SystemMessage("Be brief."), HumanMessage("My sister Ruth breeds alpacas \u202e e\u0301", name="ann"),
        AIMessage("", tool_calls=[{"name": "f", "args": {"a": [1]}, "id": "c1", "type": "tool_call"}], id="x"),
        ToolMessage("sunny", tool_call_id="c1"), AIMessage([{"type": "text", "text": "Noted"}]),
        HumanMessage([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "u"}}]),
    ]  # fmt: skip
    with daemon.client(user) as plain:
        history = MemorydHistory("chat " + "x" * 300, plain)
        assert history.messages == []
        history.clear()
        history.add_messages(said)
        assert history.messages == said
        history.add_user_message("more")
        assert history.messages[-1] == HumanMessage("more")
        plain.conversation("other").assistant("said elsewhere")
        assert MemorydHistory("other", plain).messages == [AIMessage("said elsewhere")]
        history.add_user_message(f"my key is {KEY}")
        assert KEY not in str(history.messages)
        async with AsyncMemoryClient(daemon.endpoint, user_id=user, chat_id="", agent_id="") as client:
            twin = MemorydHistory("chat " + "x" * 300, async_client=client)
            assert (await twin.aget_messages())[: len(said)] == said
            await twin.aadd_messages([AIMessage("last")])
            assert (await twin.aget_messages())[-1] == AIMessage("last")
            await twin.aclear()
        assert history.messages == []


async def test_google_adk(client, user):
    needs("google.adk")
    from google.adk.events.event import Event
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session
    from google.genai import types
    from memory_client.adapters.google_adk import MemorydMemoryService

    def event(author, text, *parts):
        said = [types.Part(text=text)] if text else []
        return Event(author=author, content=types.Content(role="user", parts=[*said, *parts]))

    memory = MemorydMemoryService(client)
    who = {"app_name": "shop", "user_id": user}
    call = types.Part(function_call=types.FunctionCall(name="f", args={}))
    session = Session(id="s1", events=[event("user", "My sister Ruth breeds alpacas"), event("bot", "", call)], **who)
    await memory.add_session_to_memory(session)
    session.events.append(event("bot", "Alpacas are fine animals"))
    await memory.add_session_to_memory(session)  # again, as it has grown
    own = client.acting_for(user_id=user, agent_id="shop")
    page = await own.messages("adk:s1")
    assert [(message.role.value, message.name, message.content) for message in page.messages] == [
        ("user", "", "My sister Ruth breeds alpacas"), ("assistant", "bot", "Alpacas are fine animals"),
    ]  # fmt: skip
    assert [message.id for message in page.messages] == [session.events[0].id, session.events[2].id]
    found = await memory.search_memory(query="Who breeds alpacas?", **who)
    assert "My sister Ruth breeds alpacas" in [entry.content.parts[0].text for entry in found.memories]
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="I keep bees")]))
    await memory.add_memory(memories=[entry], **who)
    assert [one.content for one in (await own.page()).memories if "bees" in one.content] == ["I keep bees"]
    secret = MemoryEntry(content=types.Content(parts=[types.Part(text=f"my key is {KEY}")]))
    with pytest.raises(ValueError, match="rejected: secret"):
        await memory.add_memory(memories=[secret], **who)
    assert (await memory.search_memory(query="alpacas", app_name="other", user_id=user)).memories == []
    answers = await away(
        MemorydMemoryService,
        lambda service: service.search_memory(query="x", **who),
        lambda service: service.add_session_to_memory(session),
    )
    assert answers[0].memories == []


async def test_strands(client, user):
    needs("strands")
    from memory_client.adapters.strands import MemorydStore
    from strands.memory import MemoryManager

    store = MemorydStore(client, "chat-1")
    manager = MemoryManager(stores=[store])
    await store.add("I keep bees on the roof", {"source": "letter"})
    entries = await manager.search("Where are the bees?")
    assert [(entry.content, entry.store_name) for entry in entries] == [("I keep bees on the roof", "memory")]
    assert entries[0].metadata["score"] > 0
    with pytest.raises(ValueError, match="rejected: secret"):
        await store.add(f"my key is {KEY}")
    call = {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}
    await store.add_messages([
        {"role": "user", "content": [{"text": "My sister Ruth breeds alpacas"}]},
        {"role": "assistant", "content": [call]}, {"role": "assistant", "content": [{"text": "Noted"}]},
    ])  # fmt: skip
    page = await client.messages("chat-1")
    assert [message.content for message in page.messages] == ["My sister Ruth breeds alpacas", "Noted"]
    answers = await away(MemorydStore, lambda one: one.search("x"), lambda one: one.add("x"))
    assert answers == [[], None]


async def test_agent_framework(client, user):
    needs("agent_framework")
    from agent_framework import Agent, BaseChatClient, ChatResponse, Message
    from memory_client.adapters.agent_framework import MemorydContext, MemorydHistory

    class Scripted(BaseChatClient):
        seen: list = []  # noqa: RUF012  of this test

        async def _inner_get_response(self, *, messages, options, **more):
            self.seen.append((options.get("instructions") or "", [message.text for message in messages]))
            return ChatResponse(messages=[Message("assistant", [f"I saw {len(messages)}"])])

    await client.add("I'm allergic to peanuts")
    model = Scripted()
    agent = Agent(model, "Be brief.", context_providers=[MemorydHistory(client), MemorydContext(client)])
    session = agent.create_session(session_id="af-1")
    await agent.run("What should I avoid eating?", session=session)
    await agent.run("And what else?", session=session)
    assert any("allergic to peanuts" in f"{told} {texts}" for told, texts in model.seen[:1])
    assert "What should I avoid eating?" in model.seen[1][1]
    history = await MemorydHistory(client).get_messages("af-1")
    assert [message.text for message in history][:2] == ["What should I avoid eating?", history[1].text]
    assert len(history) == 4
    assert [message.to_dict() for message in history] == [
        message.to_dict() for message in await MemorydHistory(client).get_messages("af-1")
    ]
    answers = await away(
        MemorydHistory,
        lambda one: one.get_messages("x"),
        lambda one: one.save_messages("x", [Message("user", ["hello"])]),
    )
    assert answers == [[], None]


async def test_llama_index(client, user):
    needs("llama_index.core")
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import Memory
    from memory_client.adapters.llama_index import MemorydBlock

    await client.add("I'm allergic to peanuts")
    block = MemorydBlock(client=client, thread_id="li-1")
    memory = Memory.from_defaults(session_id="s", token_limit=60, token_flush_size=20, chat_history_token_ratio=0.5,
                                  memory_blocks=[block])  # fmt: skip
    for n in range(12):
        await memory.aput(ChatMessage(role="user", content=f"The fact number {n} is that the boat is moored in Hull"))
    await memory.sql_store._async_engine.dispose()  # which it leaves open
    kept = [message.content for message in (await client.messages("li-1")).messages]
    assert kept[0].startswith("The fact number 0")
    text = await block.aget([ChatMessage(role="user", content="What should I avoid eating?")])
    assert "allergic to peanuts" in text
    cut = await block.atruncate(text, 10)
    assert cut is None or (len(cut) < len(text) and text.startswith(cut))
    assert await block.atruncate(text, 10_000) is None
    assert await block.aget(None) is not None
    answers = await away(
        lambda made, **more: MemorydBlock(client=made, **more),
        lambda one: one.aget([ChatMessage(role="user", content="x")]),
        lambda one: one.aput([ChatMessage(role="user", content="x")]),
    )
    assert answers == ["", None]


async def test_pydantic_ai(client, user):
    needs("pydantic_ai")
    from memory_client.adapters.pydantic_ai import memory_toolset
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    asked = iter([
        ToolCallPart("remember", {"statement": "I keep bees on the roof"}),
        ToolCallPart("search_memory", {"query": "bees"}),
        ToolCallPart("forget", {"memory_id": "a" * 26}),
        TextPart("done"),
    ])  # fmt: skip
    told = []

    def answer(messages, info):
        told.append(str(messages[-1].parts[-1].content))
        assert {tool.name for tool in info.function_tools} == {"search_memory", "remember", "forget"}
        return ModelResponse(parts=[next(asked)])

    result = await Agent(FunctionModel(answer), toolsets=[memory_toolset(client)]).run("go")
    assert result.output == "done"
    assert told[1] == "inserted"
    assert "I keep bees on the roof" in told[2]
    assert "MEMORY_NOT_FOUND" in told[3]
    assert list(memory_toolset(client, read_only=True).tools) == ["search_memory"]
