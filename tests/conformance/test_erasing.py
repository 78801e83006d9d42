"""Erasing what was said of a person, and all that a user has."""

from __future__ import annotations

import json

import pytest
from memory_client import (
    EntityNotFound,
    Filter,
    IdentityMissing,
    Kind,
    MessageDraft,
    MessageSearch,
    NotFound,
    ThreadNotFound,
    ToolCall,
)

ALL = Filter(kinds=frozenset(Kind), include_expired=True, include_superseded=True)


def said(*texts: str) -> list[MessageDraft]:
    return [MessageDraft(content=text, role=("user", "assistant")[n % 2]) for n, text in enumerate(texts)]


async def talked(memory):
    """Messages with and without a name, in its forms, and in what is not content."""
    await memory.add("Bob Miller likes tea")
    made = await memory.append("t", said("I met Bob Miller", "how nice", "the bobbin broke", "BOB MILLER again"))
    more = [
        MessageDraft(content="done", role="tool", name="mail", metadata={"steps": [{"to": "Bob Miller"}]}),
        MessageDraft(content="nothing of the kind"),
    ]
    other = await memory.append("o", more)
    ids = [message.id for message in (*made.messages, *other.messages)]
    return [ids[0], ids[3], ids[4]], ids


async def test_messages_that_name_a_person_are_listed_and_stay(memory):
    named, ids = await talked(memory)
    await memory.set_summary("o", "They spoke of Bob Miller.")
    await memory.set_working_memory("call Bob Miller")
    for dry_run in (True, False):
        receipt = await memory.forget_person("Bob Miller", dry_run=dry_run)
        assert (3, {*named}) == (receipt.message_count, {*receipt.message_ids})
        assert (("o",), True, False) == (receipt.thread_ids, receipt.in_working_memory, receipt.with_messages)
    assert ids[:4] == [message.id for message in (await memory.messages("t")).messages]
    assert "They spoke of Bob Miller." == (await memory.summary("o")).summary


async def test_with_messages_what_was_said_of_a_person_is_erased_and_the_rest_stays(memory):
    named, ids = await talked(memory)
    await memory.set_summary("o", "They spoke of Bob Miller.")
    await memory.set_summary("t", "They spoke of bobbins.")
    await memory.set_working_memory("call Bob Miller")
    await memory.set_working_memory("ask Bob Miller", thread_id="t")
    preview = await memory.forget_person("Bob Miller", with_messages=True, dry_run=True)
    assert 4 == (await memory.thread("t")).message_count
    receipt = await memory.forget_person("Bob Miller", with_messages=True)
    assert (preview.message_ids, {"o", "t"}) == (receipt.message_ids, {*receipt.thread_ids})
    left = [m.id for key in ("t", "o") for m in (await memory.messages(key)).messages]
    assert [one for one in ids if one not in named] == left
    thread = await memory.thread("t")
    assert (2, 1, "", "They spoke of bobbins.") == (
        thread.message_count, thread.turn_count, thread.working_memory, thread.summary,
    )  # fmt: skip
    assert ("", "") == ((await memory.summary("o")).summary, (await memory.working_memory()).text)
    found = await memory.search_messages(MessageSearch(text="Bob Miller", top_k=50))
    assert not {hit.message.id for hit in found.hits} & {*named}
    assert not (await memory.page(filter=ALL)).memories
    after = await memory.append("t", said("go on"))
    assert 5 == after.messages[0].seq


async def test_all_that_a_user_has_is_erased_at_once_and_nothing_of_others(memory):
    await talked(memory)
    gone = (await memory.add("a secret")).memory
    await memory.delete(gone.id)
    await memory.add("Alice was busy", kind=Kind.REFLECTION)
    await memory.set_working_memory("plan")
    others = (
        memory.acting_for(user_id="bob"),
        memory.acting_for(user_id="alice", agent_id="second"),
        memory.acting_for(user_id="bob", chat_id="team"),
    )
    for other in others:
        shared = other is others[2]
        await other.add("Bob Miller likes coffee", shared=shared)
        await other.append("t", said("keep this"), shared=shared)
    seen = await memory.forget_user(dry_run=True)
    assert (3, 6, 2, True, None) == (
        seen.memory_count, seen.message_count, seen.thread_count, seen.dry_run, seen.purge_time,
    )  # fmt: skip
    assert 2 == len((await memory.threads()).threads)
    erased = await memory.forget_user()
    assert (seen.memory_ids, seen.message_ids) == (erased.memory_ids, erased.message_ids)
    assert gone.id in erased.memory_ids
    assert erased.purge_time is not None
    assert not (await memory.page(filter=ALL)).memories
    assert not (await memory.threads()).threads
    assert not (await memory.sessions()).sessions
    assert "" == (await memory.working_memory()).text
    assert "" == (await memory.context("Bob Miller", min_score=0.0)).text
    assert not (await memory.search_messages(MessageSearch(text="Bob Miller"))).hits
    with pytest.raises(ThreadNotFound):
        await memory.thread("t")
    again = await memory.forget_user()
    assert (0, 0, 0) == (again.memory_count, again.message_count, again.thread_count)
    for other in others:
        shared = other is others[2]
        assert ["keep this"] == [m.content for m in (await other.messages("t", shared=shared)).messages]
        assert "coffee" in (await other.search("coffee")).hits[0].memory.content
    began = await memory.append("t", said("a new beginning"))
    assert (1, 1) == (began.messages[0].seq, began.message_count)
    assert "INSERTED" == (await memory.add("Bob Miller likes tea")).outcome.name


async def test_a_request_that_was_erased_with_its_user_is_forgotten_too(memory):
    await memory.append("t", said("hello"), request_id="r1")
    await memory.add("a fact", request_id="r2")
    await memory.forget_user()
    assert 1 == (await memory.append("t", said("hello"), request_id="r1")).message_count
    assert 1 == len((await memory.messages("t")).messages)
    assert (await memory.add("a fact", request_id="r2")).memory is not None
    assert 1 == len((await memory.page()).memories)


async def test_without_a_user_nothing_is_erased(memory):
    with pytest.raises(IdentityMissing):
        await memory.acting_for(chat_id="team").forget_user()


async def test_somebody_who_was_only_talked_about_is_forgotten_by_name(memory):
    await memory.append("t", said("Gerald stole my bike", "Math.max(a, b) and Geraldine", "GERALD again"))
    with pytest.raises(EntityNotFound, match="2 messages name it: with_messages erases them"):
        await memory.forget_person("Gerald")
    seen = await memory.forget_person("Gerald", dry_run=True)
    assert ("", "Gerald", 2, 0) == (seen.entity.id, seen.entity.name, seen.message_count, seen.purged_count)
    assert ["Gerald stole my bike", "GERALD again"] == [message.content for message in seen.messages]
    receipt = await memory.forget_person("Gerald", with_messages=True)
    assert seen.message_ids == receipt.message_ids
    assert ["Math.max(a, b) and Geraldine"] == [m.content for m in (await memory.messages("t")).messages]
    for name in ("Gerald", "Max", "the", "a"):
        with pytest.raises(EntityNotFound, match="no one and nothing is known"):
            await memory.forget_person(name, with_messages=True)


@pytest.mark.parametrize(
    ("name", "texts", "others"),
    [
        ("José", ["ask Jose\u0301", "JOSÉ!"], ["San Jos", "josephine"]),
        ("Anna Lee", ["Anna\nLee", "anna   lee", "\uff21nna Lee"], ["Anna-Lee", "Anna", "Joanna Lee"]),
        ("O'Brien", ["O\u2019Brien shouts", "o'brien"], ["Brien", "O'Brien-Smith"]),
        ("Li", ["Li called"], ["Li-ion battery", "Lithium"]),
        ("Müller", ["met Dr.Müller today", "ok.Müller said so", "müller"], ["müller-lüdenscheidt", "Müllerei"]),
    ],
)
async def test_a_name_is_found_in_every_spelling_and_in_no_other_name(memory, name, texts, others):
    await memory.append("t", said(*texts, *others))
    escaped = json.dumps({"steps": [f"ask {name}"]})
    more = [MessageDraft(content="x", metadata=escaped), MessageDraft(content="x", input_source=name)]
    calls = (ToolCall("mail", escaped),)
    await memory.append("m", [*more, MessageDraft(content="x", tool_calls=calls), MessageDraft(content="kept")])
    receipt = await memory.forget_person(name, with_messages=True)
    assert len(texts) + 3 == receipt.message_count
    assert others == [m.content for m in (await memory.messages("t")).messages]
    assert ["kept"] == [m.content for m in (await memory.messages("m")).messages]


async def test_sessions_count_what_is_left_of_them(memory):
    await memory.append("t", said(*["Gerald sat"] * 5, "hello"), session_id="a")
    await memory.append("t", said("Gerald stood", "fine"), session_id="b")
    await memory.forget_person("Gerald", with_messages=True)
    found = {one.id: (one.message_count, one.turn_count) for one in (await memory.sessions("t")).sessions}
    assert {"a": (1, 0), "b": (1, 0)} == found
    await memory.append("t", said("more"))
    await memory.end_session("t")
    assert {(2, 1), (1, 0)} == {(one.message_count, one.turn_count) for one in (await memory.sessions("t")).sessions}


async def test_a_person_that_deleted_memories_alone_name_is_erased_with_them(memory):
    held = (await memory.add("Tove plays chess", subjects=["Tove"])).memory
    await memory.delete(held.id)
    seen = await memory.forget_person("Tove", dry_run=True)
    assert (held.id,) == seen.purged_ids
    assert (held.id,) == (await memory.forget_person("Tove")).purged_ids
    with pytest.raises(NotFound):
        await memory.restore(held.id)
    with pytest.raises(EntityNotFound):
        await memory.forget_person("Tove")
