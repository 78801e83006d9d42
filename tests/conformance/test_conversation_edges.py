"""Conversations where it is easy to go wrong: foreign ids, budgets, sessions that overlap, credentials, erasing."""

from __future__ import annotations

import json

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
    assert ("two", "1") == (found[0].message.thread_id, found[0].message.id)
    assert {"two"} == {hit.message.thread_id for hit in found}


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
    for names in ((token, ""), ("t", token)):
        with pytest.raises(InvalidArgument, match="holds a credential"):
            await memory.start_session(*names)
    full = "my password is hunter2. " * (256 * 1024 // 24)
    assert (await memory.append("t", MessageDraft(content=full))).messages[0].masked  # what is longer then is kept


@pytest.mark.parametrize(
    "call",
    [
        {"id": "c1", "type": "function", "function": {"name": "buy", "arguments": '{"a": 1}'}},
        {"type": "tool_use", "id": "c1", "name": "buy", "input": {"a": 1}},
        {"name": "buy", "args": {"a": 1}, "id": "c1", "type": "tool_call"},
        {"type": "function_call", "call_id": "c1", "name": "buy", "arguments": '{"a": 1}'},
        {"toolUse": {"toolUseId": "c1", "name": "buy", "input": {"a": 1}}},
        {"functionCall": {"id": "c1", "name": "buy", "args": {"a": 1}}},
        ToolCall("buy", '{"a": 1}', "c1"),
    ],
)
def test_tool_calls_are_taken_in_the_shapes_of_many_apis(call):
    assert (ToolCall("buy", '{"a": 1}', "c1"),) == MessageDraft(content="x", tool_calls=[call]).tool_calls


async def test_a_call_of_the_responses_api_keeps_the_id_that_its_result_names(memory):
    call = {
        "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "buy", "arguments": "{}",
        "status": "completed", "caller": {"type": "direct"},
    }  # fmt: skip
    streamed = {"index": 0, "id": "call_2", "type": "function", "function": {"name": "buy", "arguments": "{}"}}
    plain = {"id": "call_3", "name": "buy", "input": {}}
    draft = MessageDraft(role="ai", tool_calls=[call, streamed, plain], metadata='{"n": 1.0e2}')
    await memory.append("t", [draft, MessageDraft(role="function", content="done", tool_call_id="call_1")])
    asked, done = (await memory.messages("t")).messages
    assert ["call_1", "call_2", "call_3"] == [one.id for one in asked.tool_calls]
    assert "call_1" == done.tool_call_id
    kept = [{"id": "fc_1", "status": "completed", "caller": {"type": "direct"}}, {"index": 0}, {}]
    assert f'{{"n": 1.0e2, "tool_call_fields": {json.dumps(kept)}}}' == asked.metadata
    with pytest.raises(InvalidArgument, match="tool_call_fields"):
        MessageDraft(tool_calls=[call], metadata={"tool_call_fields": 1})


def test_the_roles_of_other_apis_are_taken():
    said = {"developer": "system", "function": "tool", "human": "user", "ai": "assistant", "model": "assistant"}
    assert said == {role: MessageDraft(role=role, content="x").role.value for role in said}
    with pytest.raises(InvalidArgument, match="must be one of user, assistant"):
        MessageDraft(role="robot", content="x")


@pytest.mark.parametrize(
    "calls", [[{"name": "buy", "parameters": {}}], [{"id": "c1"}], ["buy"], "buy", {"name": "buy"}, ToolCall("buy")]
)
def test_a_tool_call_of_another_shape_is_refused_and_nothing_of_it_lost(calls):
    with pytest.raises(InvalidArgument, match="tool_calls"):
        MessageDraft(content="x", tool_calls=calls)


async def test_a_page_goes_on_before_a_message_that_fills_it(memory):
    await memory.append("t", said(*(f"short {n}" for n in range(30))))
    await memory.append("t", MessageDraft(content="x" * 200_000, metadata='{"a": "' + "y" * 1_000_000 + '"}'))
    for size in (50, 5):
        seen, token = [], ""
        for _ in range(20):
            page = await memory.messages("t", page_size=size, page_token=token)
            seen += [message.seq for message in reversed(page.messages)]
            token = page.next_page_token
            if not token:
                break
        assert list(range(31, 0, -1)) == seen


async def test_numbers_in_names_and_ids_are_no_credentials(memory):
    for number in ("whatsapp:+4915191688451", "messenger:4607598386756508", "4607598386756508"):
        draft = MessageDraft(content="hi", name=number, tool_call_id=number, input_source=number)
        done = await memory.append(number, draft, session_id=number)
        assert (False, number) == (done.messages[0].masked, done.session_id)


async def test_what_is_excluded_stands_beside_no_hit(memory):
    for session, text in (("s1", "before"), ("s2", "the figs"), ("s3", "after")):
        await memory.append("t", said(text), session_id=session)
    excluded = MessageSearch(text="figs", exclude_session_ids=("s1", "s3"))
    hit = (await memory.search_messages(excluded)).hits[0]
    assert ("the figs", (), ()) == (hit.message.content, hit.before, hit.after)


async def test_an_answer_has_room_for_so_much_and_says_what_it_left_out(memory):
    trace = '{"steps": "' + "x" * 900_000 + '"}'
    for n in range(8):
        await memory.append("t", [MessageDraft(content=f"oven {n}", metadata=trace), MessageDraft(content="ok")])
    found = await memory.search_messages(MessageSearch(text="oven", top_k=8))
    assert (4, 4) == (len(found.hits), found.omitted_count)
    assert all(hit.message.metadata == trace for hit in found.hits)
    assert sum(one.text_bytes for hit in found.hits for one in (hit.message, *hit.before, *hit.after)) <= 4 << 20
    seen, token = [], ""
    while True:
        page = await memory.messages("t", page_size=1000, page_token=token)
        assert 1 <= len(page.messages) <= 3
        seen += [message.seq for message in reversed(page.messages)]
        token = page.next_page_token
        if not token:
            break
    assert list(range(16, 0, -1)) == seen


async def test_many_threads_with_long_summaries_are_listed_in_pages_that_fit(memory):
    for n in range(70):
        await memory.append(f"t{n}", said("hello"))
        await memory.set_summary(f"t{n}", "long " * 6000)
    first = await memory.threads(page_size=1000)
    assert 1024 * 1024 // (5 * 6000 - 1) == len(first.threads)
    rest = await memory.threads(page_size=1000, page_token=first.next_page_token)
    last = await memory.threads(page_size=1000, page_token=rest.next_page_token)
    assert ("", 70) == (last.next_page_token, len({one.id for page in (first, rest, last) for one in page.threads}))


async def test_what_was_said_twice_is_one_hit_that_names_the_other_message(memory):
    await memory.append("t", [MessageDraft(content="The oven is broken", name="Ann", id=f"own-{n}") for n in range(3)])
    await memory.append("t", MessageDraft(content="I sold my old boat", name="Bob"))
    asked = MessageSearch(text="the oven is broken", before=0, after=0, top_k=1, min_score=0.0)
    (hit,) = (await memory.search_messages(asked)).hits
    assert {"own-0", "own-1", "own-2"} == {hit.message.id, *hit.same_ids}
