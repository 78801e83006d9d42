"""Conversations: what is appended stays in order, in its scope, and is found again."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from memory_client import (
    Conflict,
    IdentityMissing,
    InvalidArgument,
    LimitExceeded,
    MessageDraft,
    MessageSearch,
    PageTokenInvalid,
    RequestIdReused,
    Role,
    SessionState,
    Source,
    ThreadNotFound,
    ToolCall,
)

PEANUTS = MessageDraft(content="I am allergic to peanuts")


def said(*texts: str) -> list[MessageDraft]:
    return [MessageDraft(content=text, role=("user", "assistant")[n % 2]) for n, text in enumerate(texts)]


async def test_messages_stand_in_the_order_in_which_they_came(memory):
    one = await memory.append("t", said("hello", "hi", "how are you"))
    two = await memory.append("t", said("fine"))
    assert [1, 2, 3] == [message.seq for message in one.messages]
    assert (True, [4], 4, 3) == (
        two.stored,
        [message.seq for message in two.messages],
        two.message_count,
        two.turn_count,
    )
    page = await memory.messages("t")
    assert ["hello", "hi", "how are you", "fine"] == [message.content for message in page.messages]
    assert [Role.USER, Role.ASSISTANT, Role.USER, Role.USER] == [message.role for message in page.messages]
    thread = await memory.thread("t")
    assert (4, 3, 4, one.session_id) == (thread.message_count, thread.turn_count, thread.last_seq, thread.session_id)


async def test_pages_join_into_the_whole_thread(memory):
    await memory.append("t", said(*(f"message {n}" for n in range(57))))
    seen: list[int] = []
    token = ""
    while True:
        page = await memory.messages("t", page_size=10, page_token=token)
        seen = [message.seq for message in page.messages] + seen
        token = page.next_page_token
        if not token:
            break
    assert list(range(1, 58)) == seen
    page = await memory.messages("t", page_size=10)
    with pytest.raises(PageTokenInvalid):
        await memory.messages("t", page_token=page.next_page_token, in_view=True)


async def test_of_two_limits_the_first_to_trigger_wins_and_the_oldest_go(memory):
    await memory.append("t", said(*("x" * 400 for _ in range(8))))  # 100 tokens each
    assert 3 == len((await memory.messages("t", page_size=8, max_tokens=399)).messages)
    assert [7, 8] == [message.seq for message in (await memory.messages("t", page_size=2, max_tokens=399)).messages]
    rest = await memory.messages("t", page_size=8, max_tokens=300)
    before = await memory.messages("t", page_size=8, max_tokens=300, page_token=rest.next_page_token)
    assert ([6, 7, 8], [3, 4, 5]) == tuple([m.seq for m in page.messages] for page in (rest, before))
    assert () == (await memory.messages("t", max_tokens=99)).messages


async def test_all_parts_of_a_message_come_back_as_they_were(memory):
    metadata = '{"steps": [{"n": 12345678901234567890, "x": 1.10, "é": null}], "b":1}'
    draft = MessageDraft(
        content="línea uno\n\nlínea dos 你好", role=Role.ASSISTANT, name="Ash", metadata=metadata, input_source="voice",
        tool_calls=(ToolCall("search", '{"q": "tea"}', "c1"), ToolCall("now")),
    )  # fmt: skip
    answer = MessageDraft(content="42", role=Role.TOOL, name="search", tool_call_id="c1")
    own = MessageDraft(content="old", id="my-id-7", create_time=datetime(2020, 5, 1, tzinfo=UTC))
    await memory.append("t", [draft, answer, own])
    first, second, third = (await memory.messages("t")).messages
    fields = ("content", "role", "name", "metadata", "input_source", "tool_calls")
    assert [getattr(draft, name) for name in fields] == [getattr(first, name) for name in fields]
    assert ("c1", Role.TOOL, "[tool:search] 42") == (second.tool_call_id, second.role, second.shown)
    assert ("my-id-7", own.create_time) == (third.id, third.create_time)
    assert first.shown == '[voice] línea uno\n\nlínea dos 你好\n[tool:search] {"q": "tea"}\n[tool:now]'
    with pytest.raises(Conflict, match=r"my-id-7"):
        await memory.append("t", [PEANUTS, own])
    assert 3 == (await memory.thread("t")).message_count


async def test_a_repeated_request_is_carried_out_once(memory):
    one = await memory.append("t", said("a", "b"), request_id="r1")
    assert one == await memory.append("t", said("a", "b"), request_id="r1")
    with pytest.raises(RequestIdReused):
        await memory.append("t", said("a", "c"), request_id="r1")
    both = await asyncio.gather(*(memory.append("t", said("d"), request_id="r2") for _ in range(4)))
    assert all(answer == both[0] for answer in both)
    assert ["a", "b", "d"] == [message.content for message in (await memory.messages("t")).messages]


async def test_many_writers_leave_no_gap_and_no_double(memory):
    await asyncio.gather(*(memory.append(f"t{n % 3}", said(f"{n} one", f"{n} two")) for n in range(24)))
    for thread_id in ("t0", "t1", "t2"):
        messages = (await memory.messages(thread_id, page_size=50)).messages
        assert list(range(1, 17)) == [message.seq for message in messages]
        texts = [message.content for message in messages]
        assert all(texts[n].split()[0] == texts[n + 1].split()[0] for n in range(0, 16, 2))


async def test_what_is_malformed_is_named_and_nothing_is_stored(memory):
    for drafts, error, name in (
        ([], InvalidArgument, "messages"),
        ([MessageDraft(content="x")] * 101, LimitExceeded, "messages"),
        ([MessageDraft(content="x", id="a"), MessageDraft(content="y", id="a")], InvalidArgument, r"messages\[1\]: id"),
    ):
        with pytest.raises(error, match=name):
            await memory.append("t", drafts)
    for wrong, name in (
        ({"content": " "}, "content"), ({"content": "x", "role": "boss"}, "role"),
        ({"content": "x", "metadata": "[1]"}, "metadata"), ({"content": "x", "metadata": '{"a": NaN}'}, "metadata"),
        ({"content": "x", "metadata": "{"}, "metadata"),
        ({"content": "x", "tool_calls": (ToolCall(""),)}, "tool_calls"),
    ):  # fmt: skip
        with pytest.raises(InvalidArgument, match=name):
            MessageDraft(**wrong)
    with pytest.raises(LimitExceeded, match="content"):
        MessageDraft(content="x" * (256 * 1024 + 1))
    with pytest.raises(ThreadNotFound):
        await memory.messages("t")
    with pytest.raises(InvalidArgument, match="thread_id"):
        await memory.append("", PEANUTS)


async def test_a_thread_is_of_one_scope_and_nobody_else_sees_it(memory):
    alice = memory.acting_for(user_id="alice", chat_id="room")
    bob = memory.acting_for(user_id="bob", chat_id="room")
    other = memory.acting_for(user_id="alice", chat_id="room", agent_id="other")
    await alice.append("t", said("alice's own"))
    await alice.append("t", said("the room's"), shared=True)
    assert ["alice's own"] == [message.content for message in (await alice.messages("t")).messages]
    assert ["the room's"] == [message.content for message in (await bob.messages("t", shared=True)).messages]
    assert 2 == len((await alice.threads()).threads)
    assert ["the room's"] == [
        h.message.content for h in (await bob.search_messages(MessageSearch(text="own room"))).hits
    ]
    for stranger, shared in ((bob, False), (other, False), (other, True), (memory.acting_for(user_id="carol"), False)):
        with pytest.raises(ThreadNotFound):
            await stranger.messages("t", shared=shared)
        assert () == (await stranger.search_messages(MessageSearch(text="own"))).hits
    with pytest.raises(IdentityMissing):
        await memory.acting_for(chat_id="room").append("t", PEANUTS)
    with pytest.raises(InvalidArgument):
        await memory.append("t", PEANUTS, shared=True)


async def test_messages_are_found_with_what_was_said_around_them(memory):
    talk = ("good morning", "hello", "I am allergic to peanuts", "noted", "thanks", "you are welcome", "bye")
    await memory.append("one", said(*talk))
    await memory.append("two", said("peanuts are on sale", "really"))
    hits = (await memory.search_messages(MessageSearch(text="peanuts allergic", thread_id="one", top_k=1))).hits
    assert "I am allergic to peanuts" == hits[0].message.content
    assert (["good morning", "hello"], ["noted"]) == tuple(
        [message.content for message in side] for side in (hits[0].before, hits[0].after)
    )
    both = (await memory.search_messages(MessageSearch(text="peanuts", before=0, after=0))).hits
    assert {"one", "two"} == {hit.message.thread_id for hit in both if "peanuts" in hit.message.content}
    left = (await memory.search_messages(MessageSearch(text="peanuts", exclude_thread_ids=("one",)))).hits
    assert {"two"} == {hit.message.thread_id for hit in left}
    assert () == (await memory.search_messages(MessageSearch(text="peanuts", min_score=0.99))).hits
    shown = [m.id for hit in hits for m in (*hit.before, hit.message, *hit.after)]
    assert len(shown) == len(set(shown))
    assert () == (await memory.search("peanuts")).hits  # a message is no memory


async def test_credentials_are_masked_before_anything_is_stored(memory):
    steps = {"steps": [{"tool": "login", "args": json.dumps({"password": "hunter2-Falcon"})}], "n": 3}
    await memory.append(
        "t",
        [
            MessageDraft(content="my password is hunter2-Falcon for the wifi", metadata=steps),
            MessageDraft(role="assistant", tool_calls=(ToolCall("login", '{"password": "hunter2-Falcon"}'),)),
            MessageDraft(content="nothing to hide", metadata='{"a":  1}'),
        ],
    )
    one, two, three = (await memory.messages("t")).messages
    assert "hunter2" not in repr((one, two))
    assert one.content.endswith("for the wifi")
    assert [True, True, False] == [message.masked for message in (one, two, three)]
    assert 3 == json.loads(one.metadata)["n"]
    assert '{"a":  1}' == three.metadata
    assert () == (await memory.search_messages(MessageSearch(text="hunter2", thread_id="t", min_score=0.3))).hits


async def test_a_session_ends_by_the_next_by_call_and_by_silence(memory, clock):
    one = await memory.append("t", said("a"), session_id="s1")
    assert ("s1", "") == (one.session_id, one.ended_session_id)
    two = await memory.append("t", said("b", "c"), session_id="s2")
    assert ("s2", "s1") == (two.session_id, two.ended_session_id)
    assert "s2" == (await memory.append("t", said("d"))).session_id
    ended = await memory.end_session("t")
    assert ("s2", SessionState.PENDING, "ended", 3, 2) == (
        ended.id, ended.state, ended.end_reason, ended.message_count, ended.turn_count,
    )  # fmt: skip
    third = (await memory.append("t", said("e"))).session_id
    assert third not in {"", "s1", "s2"}
    clock.now += timedelta(minutes=30)
    assert third != (await memory.append("t", said("f"))).session_id  # at that very minute
    found = {session.id: session for session in (await memory.sessions("t")).sessions}
    assert ("idle", 1) == (found[third].end_reason, found[third].message_count)
    assert {"s1", "s2", third} == {s.id for s in (await memory.sessions(states=[SessionState.PENDING])).sessions}
    again = await memory.start_session("t", "s1")
    assert ("s1", SessionState.OPEN, 1) == (again.session.id, again.session.state, again.session.message_count)
    await memory.append("t", said("g"))
    assert 2 == next(s for s in (await memory.sessions("t")).sessions if s.id == "s1").message_count
    assert ["a", "g"] == [m.content for m in (await memory.messages("t", session_id="s1")).messages]
    with pytest.raises(ThreadNotFound):
        await memory.end_session("t", "s9")


async def test_a_compaction_leaves_the_prompts_shorter_and_deletes_nothing(memory):
    await memory.append("t", said(*(f"m{n}" for n in range(1, 31))))
    done = await memory.compact_thread("t")
    assert (10, 10) == (done.compacted_count, done.thread.view_seq)
    assert 20 == len((await memory.messages("t", page_size=50, in_view=True)).messages)
    assert 30 == len((await memory.messages("t", page_size=50)).messages)
    assert 16 == (await memory.compact_thread("t", emergency=True)).compacted_count
    assert 26 == (await memory.set_summary("t", "m1 to m26 were said")).summary_seq
    assert "m1 to m26 were said" == (await memory.summary("t")).summary
    assert "" == (await memory.summary("nowhere")).summary
    for n in range(2):
        await memory.append("t", said(*(f"more {n} {k}" for k in range(60))))
    assert 130 == (await memory.thread("t")).view_seq  # past max_history the last 20 stay


async def test_a_working_memory_is_of_the_user_and_of_the_thread(memory):
    assert "" == (await memory.working_memory()).text
    await memory.set_working_memory("goal: feed Tom")
    await memory.append("t", said("a"))
    await memory.set_working_memory("step 2 of 3", thread_id="t")
    assert ("goal: feed Tom", "step 2 of 3") == (
        (await memory.working_memory()).text,
        (await memory.working_memory(thread_id="t")).text,
    )
    assert "" == (await memory.acting_for(user_id="bob").working_memory()).text
    await memory.set_working_memory("")
    assert "" == (await memory.working_memory()).text
    for setting in (memory.set_working_memory, lambda text: memory.set_summary("t", text)):
        with pytest.raises(InvalidArgument, match="credential"):
            await setting("my password is hunter2-Falcon")


async def test_an_erased_thread_is_gone_at_once_with_all_that_was_said(memory):
    await memory.append("t", said("I am allergic to peanuts", "noted"), request_id="r")
    await memory.append("u", said("peanuts are cheap"))
    await memory.set_working_memory("step 2", thread_id="t")
    learnt = (await memory.add("alice is allergic to peanuts", source=Source(thread_id="t"))).memory
    other = (await memory.add("alice buys peanuts")).memory
    seen = await memory.delete_thread("t", with_memories=True, dry_run=True)
    assert (2, (learnt.id,), True) == (len(seen.message_ids), seen.memory_ids, seen.dry_run)
    assert 2 == (await memory.thread("t")).message_count
    gone = await memory.delete_thread("t", with_memories=True)
    assert (seen.message_ids, (learnt.id,)) == (gone.message_ids, gone.memory_ids)
    with pytest.raises(ThreadNotFound):
        await memory.messages("t")
    assert ["u"] == [
        hit.message.thread_id for hit in (await memory.search_messages(MessageSearch(text="peanuts"))).hits
    ]
    assert [other.id] == [hit.memory.id for hit in (await memory.search("peanuts")).hits]
    assert () == (await memory.sessions("t")).sessions
    again = await memory.append("t", said("a new one"), request_id="r")
    assert [1] == [message.seq for message in again.messages]


async def test_threads_are_listed_latest_first_in_pages(memory, clock):
    for n in range(7):
        await memory.append(f"cli:{n}", said("x"))
        clock.now += timedelta(seconds=1)
    await memory.append("web:1", said("x"))
    clock.now += timedelta(seconds=1)
    await memory.append("cli:2", said("y"))
    first = await memory.threads(page_size=3)
    rest = await memory.threads(page_size=10, page_token=first.next_page_token)
    assert ["cli:2", "web:1", "cli:6"] == [thread.id for thread in first.threads]
    assert 8 == len({thread.id for thread in (*first.threads, *rest.threads)})
    assert 7 == len((await memory.threads(prefix="cli:")).threads)
