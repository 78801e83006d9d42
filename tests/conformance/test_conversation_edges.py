"""Conversations where it is easy to go wrong: foreign ids, budgets, sessions that overlap, credentials, erasing."""

from __future__ import annotations

import pytest
from memory_client import Conflict, InvalidArgument, MessageDraft, MessageSearch, ToolCall

from tests.conformance.test_conversations import said


async def test_ids_that_came_with_messages_are_unique_within_a_thread_alone(memory):
    for thread in ("one", "two"):
        await memory.append(thread, [MessageDraft(content=f"{thread} green tea", id="1"),
                                     MessageDraft(content=f"{thread} black coffee", id="2")])  # fmt: skip
    with pytest.raises(Conflict, match="'1' already"):
        await memory.append("one", MessageDraft(content="again", id="1"))
    found = (await memory.search_messages(MessageSearch(text="green tea", before=0, after=0))).hits
    assert [("one", "1"), ("two", "1")] == sorted((hit.message.thread_id, hit.message.id) for hit in found[:2])
    await memory.delete_thread("one")
    found = (await memory.search_messages(MessageSearch(text="green tea", before=0, after=0))).hits
    assert [("two", "1")] == [(hit.message.thread_id, hit.message.id) for hit in found]


async def test_pages_within_a_budget_go_on_past_what_is_longer_than_the_budget(memory):
    await memory.append("t", said("one", "two", "big " * 100, "four"))
    pages, token = [], ""
    for _ in range(9):
        page = await memory.messages("t", page_size=10, max_tokens=50, page_token=token)
        pages.append([message.content for message in page.messages])
        token = page.next_page_token
        if not token:
            break
    assert [["four"], [], ["one", "two"]] == pages


async def test_a_session_that_was_begun_and_left_counts_what_is_its_own(memory):
    await memory.start_session("t", "first")
    await memory.append("t", said("a", "b"), session_id="second")
    again = (await memory.start_session("t", "first")).session
    assert (0, 3, 2) == (again.message_count, again.first_seq, again.last_seq)
    await memory.append("t", said("c"))
    found = {session.id: session for session in (await memory.sessions("t")).sessions}
    assert (1, 3, 3) == (found["first"].message_count, found["first"].first_seq, found["first"].last_seq)
    assert (2, 1, 2) == (found["second"].message_count, found["second"].first_seq, found["second"].last_seq)


async def test_a_credential_is_masked_wherever_a_message_holds_text_and_names_nothing(memory):
    token = "ghp_" + "a1B2" * 9
    calls = (ToolCall(token, f'{{"a":"{token}","a":1e999}}', token),)
    draft = MessageDraft(content="x", name=token, input_source=token, tool_calls=calls, tool_call_id=token)
    done = await memory.append("t", draft)
    kept = (await memory.messages("t")).messages[0]
    assert done.messages[0].masked
    assert kept.masked
    assert ToolCall("[masked]", '{"a":"[masked]","a":1e999}', "[masked]") == kept.tool_calls[0]
    assert ["[masked]"] * 3 == [kept.name, kept.input_source, kept.tool_call_id]
    for more in ({"session_id": token}, {"messages": MessageDraft(content="x", id=token)}):
        with pytest.raises(InvalidArgument, match="holds a credential"):
            await memory.append("t", **({"messages": draft} | more))
    with pytest.raises(InvalidArgument, match="thread_id holds a credential"):
        await memory.append(token, draft)
    full = "my password is hunter2. " * (256 * 1024 // 24)
    assert (await memory.append("t", MessageDraft(content=full))).messages[0].masked  # what is longer then is kept
