"""Messages that are taken back, and those that are appended again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from memory_client import (
    Conflict,
    InvalidArgument,
    MessageDraft,
    MessageSearch,
    Source,
    ThreadNotFound,
    ToolCall,
)

WORDS = ("harbour", "violin", "saffron", "glacier", "walnut")


def said(*texts: str, prefix: str = "m") -> list[MessageDraft]:
    return [
        MessageDraft(content=text, role=("user", "assistant")[n % 2], id=f"{prefix}{n}") for n, text in enumerate(texts)
    ]


async def contents(memory, thread: str = "t") -> list[str]:
    return [message.content for message in (await memory.messages(thread, page_size=1000)).messages]


async def test_the_last_message_is_taken_back_and_its_place_is_not_given_again(memory):
    await memory.append("t", said(*WORDS))
    gone = await memory.delete_messages("t", ["m4"])
    assert (("m4",), 1, (), False) == (gone.message_ids, gone.deleted_count, gone.memory_ids, gone.dry_run)
    assert (4, 2, 5) == (gone.thread.message_count, gone.thread.turn_count, gone.thread.last_seq)
    assert list(WORDS[:4]) == await contents(memory)
    again = await memory.append("t", MessageDraft(content="another one", id="m4"))
    assert ([6], 5, 3) == ([message.seq for message in again.messages], again.message_count, again.turn_count)
    assert [*WORDS[:4], "another one"] == await contents(memory)
    (session,) = (await memory.sessions("t")).sessions
    assert (5, 3, 6) == (session.message_count, session.turn_count, session.last_seq)


async def test_what_was_taken_back_is_found_no_more_and_passed_over_when_it_is_taken_back_again(memory):
    await memory.append("t", said(*(f"the {word} is far away" for word in WORDS)))
    await memory.append("u", said("the violin is mine"))
    assert 1 == (await memory.delete_messages("t", ["m1", "none"])).deleted_count
    found = await memory.search_messages(MessageSearch(text="violin"))
    assert ["u"] == [hit.message.thread_id for hit in found.hits]
    again = await memory.delete_messages("t", ["m1"])
    assert (0, (), 4) == (again.deleted_count, again.message_ids, again.thread.message_count)
    with pytest.raises(ThreadNotFound):
        await memory.delete_messages("v", ["m1"])


@pytest.mark.parametrize("after", [0, 3, 299, 300, 301])
async def test_all_after_a_place_go_however_many(memory, after):
    for n in range(3):
        await memory.append("t", said(*(f"message {100 * n + place}" for place in range(100)), prefix=f"m{n}-"))
    seen = await memory.delete_messages("t", after_seq=after, dry_run=True)
    assert (300, True) == (seen.thread.message_count, seen.dry_run)
    gone = await memory.delete_messages("t", after_seq=after)
    assert (seen.message_ids, seen.deleted_count) == (gone.message_ids, gone.deleted_count)
    assert (max(0, 300 - after), min(after, 300), 300) == (
        gone.deleted_count, gone.thread.message_count, gone.thread.last_seq,
    )  # fmt: skip
    assert [f"message {n}" for n in range(min(after, 300))] == await contents(memory)


async def test_what_was_learnt_from_them_is_named_and_goes_where_that_is_asked_for(memory):
    await memory.append("t", said(*WORDS))

    async def learnt(text: str, *ids: str):
        added = await memory.add(text, source=Source(thread_id="t", message_ids=ids))
        return added.memory.id

    first = await learnt("alice plays the violin", "m1")
    both = await learnt("alice cooks with saffron", "m2", "m3")
    kept = await learnt("alice lives at the harbour", "m0")
    other = (await memory.add("alice likes glaciers", source=Source(thread_id="u", message_ids=("m3",)))).memory.id
    seen = await memory.delete_messages("t", ["m1", "m3"], with_memories=True, dry_run=True)
    assert {first, both} == set(seen.memory_ids)
    assert {first, both} == set((await memory.delete_messages("t", ["m1"])).memory_ids) | {both}
    assert {first, both, kept, other} == {one.id for one in (await memory.page()).memories}
    gone = await memory.delete_messages("t", after_seq=2, with_memories=True)
    assert (3, (both,)) == (gone.deleted_count, gone.memory_ids)
    assert {first, kept, other} == {one.id for one in (await memory.page()).memories}


async def test_what_was_replaced_goes_too_and_does_not_come_back(memory):
    await memory.append("t", said("I live in York", "I live in Leeds"))
    source = [Source(thread_id="t", message_ids=(f"m{n}",)) for n in range(2)]
    old = (await memory.add("I live in York", source=source[0])).memory
    new = (await memory.add("I live in Leeds", source=source[1])).memory
    assert (old.id,) == new.supersedes
    gone = await memory.delete_messages("t", after_seq=0, with_memories=True)
    assert {old.id, new.id} == set(gone.memory_ids)
    assert () == (await memory.page()).memories
    old = (await memory.add("I work in York", source=source[0])).memory
    new = (await memory.add("I work in Leeds", source=source[1])).memory
    assert {old.id, new.id} == set((await memory.delete_thread("t", with_memories=True)).memory_ids)


async def test_a_summary_that_covers_one_of_them_goes_too(memory):
    await memory.append("t", said(*WORDS))
    await memory.set_summary("t", "harbour and violin", up_to_seq=2)
    await memory.set_working_memory("step 2", thread_id="t")
    assert "harbour and violin" == (await memory.delete_messages("t", ["m2"])).thread.summary
    gone = (await memory.delete_messages("t", ["m1"])).thread
    assert ("", "step 2") == (gone.summary, gone.working_memory)
    assert "" == (await memory.summary("t")).summary


async def test_what_is_to_go_is_said_in_one_way(memory):
    await memory.append("t", said(*WORDS))
    for asked in ({}, {"message_ids": ["m1"], "after_seq": 0}, {"after_seq": -1}):
        with pytest.raises(InvalidArgument):
            await memory.delete_messages("t", **asked)
    assert list(WORDS) == await contents(memory)


async def test_what_the_thread_has_is_passed_over_and_new_ones_are_appended(memory):
    first = await memory.append("t", said(*WORDS[:3]))
    grown = await memory.append("t", said(*WORDS), skip_existing=True)
    assert [(1, True), (2, True), (3, True), (4, False), (5, False)] == [
        (message.seq, message.existed) for message in grown.messages
    ]
    assert [f"m{n}" for n in range(5)] == [message.id for message in grown.messages]
    assert (5, 3, first.session_id) == (grown.message_count, grown.turn_count, grown.session_id)
    same = await memory.append("t", said(*WORDS), skip_existing=True, request_id="r")
    assert (5, 3, True) == (same.message_count, same.turn_count, all(message.existed for message in same.messages))
    mixed = [MessageDraft(content="no id"), *said(*WORDS[:1]), MessageDraft(content="none here")]
    assert [6, 1, 7] == [message.seq for message in (await memory.append("t", mixed, skip_existing=True)).messages]
    assert [*WORDS, "no id", "none here"] == await contents(memory)


async def test_another_message_of_a_known_id_is_a_conflict_and_nothing_is_stored(memory):
    full = MessageDraft(
        content="look it up", role="assistant", name="Ann", tool_calls=(ToolCall("find", "{}", "c1"),),
        input_source="voice", metadata='{"a": 1}', id="m0", create_time=datetime(2024, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    await memory.append("t", full)
    later = {"create_time": datetime(2025, 1, 1, tzinfo=UTC)}
    fields = {
        "content": "other", "role": "user", "name": "Bob", "tool_calls": (ToolCall("find", '{"b": 2}', "c1"),),
        "input_source": "typed", "metadata": "", "tool_call_id": "c9",
    }  # fmt: skip

    def changed(**more):
        names = ("content", "role", "name", "tool_calls", "tool_call_id", "input_source", "metadata", "create_time")
        return MessageDraft(id="m0", **{name: more.get(name, getattr(full, name)) for name in names})

    assert (await memory.append("t", changed(**later), skip_existing=True)).messages[0].existed
    for name, value in fields.items():
        with pytest.raises(Conflict, match="says something else") as refused:
            await memory.append("t", [MessageDraft(content="new"), changed(**{name: value})], skip_existing=True)
        assert "messages[1].id" == refused.value.field
    with pytest.raises(Conflict, match="already"):
        await memory.append("t", full)
    assert ["look it up"] == await contents(memory)


async def test_a_message_with_a_credential_is_the_same_once_it_is_masked(memory):
    drafts = said("my password is hunter2-Falcon", "ok")
    assert (await memory.append("t", drafts)).messages[0].masked
    again = await memory.append("t", drafts, skip_existing=True)
    assert [(True, True), (False, True)] == [(message.masked, message.existed) for message in again.messages]
