"""What callers may rely on: the same rules over the reference store, over DuckDB, and through the real client."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta

import pytest
from memory_client import (
    Draft,
    Filter,
    IdentityMissing,
    InvalidArgument,
    Kind,
    NotFound,
    Outcome,
    Scope,
    Source,
    State,
    Trust,
)

from memoryd.daemon.config import Config
from tests.builders import backend
from tests.conformance.behaviour_helpers import listed, texts


async def test_an_added_memory_is_found_by_the_next_search(memory):
    for n in range(5):
        result = await memory.add(f"fact number{n} about topic{n}")
        assert Outcome.INSERTED is result.outcome
        assert result.memory.id == (await memory.search(f"topic{n}")).hits[0].memory.id


async def test_an_added_memory_has_what_was_said_and_what_follows_from_it(memory, clock):
    said = await memory.add(
        "e\u0301tude",  # NFD
        kind=Kind.EVENT,
        subjects=["Sarah", " Sarah "],
        tags=["a", "b", "a"],
        metadata={"k": "v"},
        category="work",
        source=Source(speaker="Ann", channel="user", message_ids=("m1",)),
        confidence=0.5,
        decay_rate=0.0,
        expires_days=1.5,
    )
    kept = await memory.get(said.memory.id)
    assert said.memory == kept
    assert ("étude", Kind.EVENT, ("Sarah",), ("a", "b"), {"k": "v"}, "work", 0.5, 0.0) == (
        kept.content, kept.kind, kept.subjects, kept.tags, dict(kept.metadata), kept.category, kept.confidence,
        kept.decay_rate,
    )  # fmt: skip
    assert (Scope(user_id="alice"), "default", Trust.HOST, "", State.LIVE) == (
        kept.scope, kept.agent_id, kept.trust, kept.grant_id, kept.state
    )  # fmt: skip
    assert Source(speaker="Ann", channel="user", message_ids=("m1",)) == kept.source
    assert (clock.now, clock.now, clock.now + timedelta(days=1.5)) == (
        kept.create_time, kept.event_time, kept.expire_time
    )  # fmt: skip
    assert 26 == len(kept.id)


async def test_create_times_rise_strictly_also_when_the_clock_steps_back(memory, clock):
    for n in range(6):
        if n == 3:
            clock.pass_days(-5)
        await memory.add(f"statement {n}")
    found = (await memory.page()).memories
    assert [f"statement {n}" for n in reversed(range(6))] == [m.content for m in found]
    times = [m.create_time for m in found]
    assert sorted(set(times), reverse=True) == times


async def test_personal_memories_are_for_their_user_and_group_memories_for_the_chat(memory, clock):
    alice = memory.acting_for(user_id="alice", chat_id="team")
    bob = memory.acting_for(user_id="bob", chat_id="team")
    eve = memory.acting_for(user_id="eve", chat_id="elsewhere")
    mine = (await alice.add("apple of alice")).memory
    clock.now += timedelta(seconds=1)
    ours = (await alice.add("apple of team", shared=True)).memory
    assert (Scope(user_id="alice"), Scope(chat_id="team")) == (mine.scope, ours.scope)
    assert ["apple of team", "apple of alice"] == await listed(alice)
    assert ["apple of team"] == await listed(bob) == texts(await bob.search("apple"))
    assert [] == await listed(eve) == texts(await eve.search("apple"))
    assert ["apple of team"] == await listed(memory.acting_for(chat_id="team"))
    assert ["apple of alice"] == await listed(memory.acting_for(user_id="alice"))
    other_agent = memory.acting_for(user_id="alice", chat_id="team", agent_id="other")
    assert [] == await listed(other_agent) == texts(await other_agent.search("apple"))


async def test_somebody_elses_id_does_not_exist(memory):
    made = (await memory.add("secret of alice")).memory
    bob = memory.acting_for(user_id="bob")
    messages = set()
    for memory_id in (made.id, "a" * 26):
        for call in (bob.get, bob.delete, bob.restore):
            with pytest.raises(NotFound) as caught:
                await call(memory_id)
            messages.add(str(caught.value).replace(memory_id, "ID"))
    assert 1 == len(messages)
    assert () == (await bob.delete(made.id, allow_missing=True)).deleted_ids
    assert made == await memory.get(made.id)


async def test_nobody_is_refused_everywhere(memory):
    nobody = memory.acting_for()
    for call in (
        nobody.add("x"), nobody.search("x"), nobody.page(), nobody.get("a" * 20), nobody.delete("a" * 20),
        nobody.restore("a" * 20), nobody.stats(), nobody.context("x"), nobody.add_batch([Draft(content="x")]),
    ):  # fmt: skip
        with pytest.raises(IdentityMissing):
            await call


async def test_a_shared_memory_needs_a_chat_and_a_personal_one_a_user(memory):
    with pytest.raises(InvalidArgument) as caught:
        await memory.add("x", shared=True)
    assert "chat_id" == caught.value.field
    with pytest.raises(IdentityMissing):
        await memory.acting_for(chat_id="team").add("x")
    assert "x" == (await memory.acting_for(chat_id="team").add("x", shared=True)).memory.content


async def test_a_repeated_statement_reinforces_the_one_that_is_known(memory, clock):
    first = await memory.add(
        "I like tea.", confidence=0.5, tags=["a"], subjects=["Me"], metadata={"k": "1"}, expires_days=3
    )
    clock.pass_days(1)
    second = await memory.add(
        "  i LIKE  tea", tags=["b"], subjects=["me", "You"], metadata={"k": "2", "l": "3"}, kind=Kind.PREFERENCE,
        expires_days=3,
    )  # fmt: skip
    assert (Outcome.REINFORCED, first.memory.id) == (second.outcome, second.memory.id)
    kept = await memory.get(first.memory.id)
    assert (0.6, ("a", "b"), ("Me", "You"), {"k": "2", "l": "3"}, Kind.PREFERENCE, "I like tea.") == (
        kept.confidence, kept.tags, kept.subjects, dict(kept.metadata), kept.kind, kept.content,
    )  # fmt: skip
    assert (clock.now, clock.now + timedelta(days=3)) == (kept.reinforce_time, kept.expire_time)
    assert 1 == len(await listed(memory))
    assert (await memory.add("I like tea")).memory.expire_time is None
    assert texts(await memory.search("tea", filter=Filter(tags=("a", "b"), subjects=("YOU",)))) == ["I like tea."]


async def test_confidence_does_not_rise_above_one(memory):
    await memory.add("sure", confidence=0.95)
    assert 1.0 == (await memory.add("sure")).memory.confidence


async def test_the_same_key_with_other_content_supersedes(memory):
    red = await memory.add("my favorite color is red", key="color")
    blue = await memory.add("my favorite color is blue", key="color")
    assert (Outcome.SUPERSEDED, (red.memory.id,)) == (blue.outcome, blue.superseded_ids)
    assert ["my favorite color is blue"] == texts(await memory.search("favorite color")) == await listed(memory)
    with_old = Filter(include_superseded=True)
    assert 2 == len((await memory.search("favorite color", filter=with_old)).hits)
    old = await memory.get(red.memory.id)
    assert (State.SUPERSEDED, blue.memory.id, "same_key") == (old.state, old.superseded_by, old.judgement.rule)
    assert (red.memory.id,) == (await memory.get(blue.memory.id)).supersedes
    again = await memory.add("my favorite color is blue", key="color")
    assert (Outcome.REINFORCED, blue.memory.id) == (again.outcome, again.memory.id)


async def test_a_text_under_a_key_is_no_repetition_of_one_without(memory):
    known = await memory.add("A thing")
    other = await memory.add("B thing", key="k")
    taken = await memory.add("a thing.", key="k")
    assert (Outcome.SUPERSEDED, (other.memory.id,), "k") == (taken.outcome, taken.superseded_ids, taken.memory.key)
    again = await memory.add("A thing")
    assert (Outcome.REINFORCED, known.memory.id) == (again.outcome, again.memory.id)
    assert ["a thing.", "A thing"] == await listed(memory)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ("My favorite color is red", "My favorite color is blue"),
        ("I live in Oslo", "I live in Porto"),
        ("I like tea", "I no longer like tea"),
        ("My car is a Volvo", "My car is a Kia"),
    ],
)
async def test_a_memory_with_a_key_is_ended_by_its_key_a_correction_or_a_delete_alone(memory, kept, said):
    held = (await memory.add(kept, key="prefs/one")).memory
    other = await memory.add(said)
    assert (Outcome.INSERTED, (held.id,)) == (other.outcome, other.contested_ids)
    assert State.LIVE is (await memory.get(held.id)).state
    await memory.confirm(other.memory.id)
    assert State.LIVE is (await memory.get(held.id)).state
    assert (held.id,) == (await memory.correct(held.id, said)).superseded_ids
    assert "prefs/one" == (await memory.page()).memories[0].key


async def test_a_key_belongs_to_its_scope_and_agent(memory):
    alice = memory.acting_for(user_id="alice", chat_id="team")
    outcomes = [
        await alice.add("red", key="color"),
        await alice.add("blue", key="color", shared=True),
        await memory.acting_for(user_id="bob").add("green", key="color"),
        await memory.acting_for(user_id="alice", agent_id="other").add("black", key="color"),
    ]
    assert [Outcome.INSERTED] * 4 == [result.outcome for result in outcomes]


async def test_two_keys_and_none_are_three_memories_whatever_they_say(memory):
    for key in ("a", "b", ""):
        assert Outcome.INSERTED is (await memory.add("yes", key=key)).outcome
    for key in ("a", "b", ""):
        assert Outcome.REINFORCED is (await memory.add("yes", key=key)).outcome
    assert Outcome.INSERTED is (await memory.add("no")).outcome
    assert Outcome.INSERTED is (await memory.add("no", key="c")).outcome


async def test_what_comes_with_a_repetition_is_taken(memory, clock):
    known = (await memory.add("the pool is closed", metadata={"by": "Ann", "at": "gate"}, category="work")).memory
    clock.pass_days(1)
    end, when = clock.now + timedelta(days=14), clock.now - timedelta(days=3)
    again = await memory.add(
        "The pool is closed.", expire_time=end, kind=Kind.EVENT, event_time=when, category="other", decay_rate=0.5,
        metadata={"by": "Bob"},
    )  # fmt: skip
    assert (Outcome.REINFORCED, known.id, ()) == (again.outcome, again.memory.id, again.untaken_fields)
    held = await memory.get(known.id)
    assert (end, Kind.EVENT, when, "other", 0.5, {"by": "Bob", "at": "gate"}) == (
        held.expire_time, held.kind, held.event_time, held.category, held.decay_rate, dict(held.metadata)
    )  # fmt: skip
    sooner = await memory.add("the pool is closed", expires_days=1)
    assert clock.now + timedelta(days=1) == sooner.memory.expire_time
    assert None is (await memory.add("the pool is closed")).memory.expire_time  # said without an end


async def test_what_is_hidden_is_no_duplicate_of_anything(memory, clock):
    await memory.add("for a while", expires_days=1)
    clock.pass_days(1)
    assert Outcome.INSERTED is (await memory.add("for a while")).outcome
    deleted = await memory.add("deleted")
    await memory.delete(deleted.memory.id)
    assert Outcome.INSERTED is (await memory.add("deleted")).outcome


async def test_callers_who_say_the_same_at_once_store_it_once(memory):
    results = await asyncio.gather(*(memory.add("said at once") for _ in range(12)))
    assert 1 == len({result.memory.id for result in results}) == len(await listed(memory))
    assert 1 == sum(result.outcome is Outcome.INSERTED for result in results)


@pytest.mark.parametrize("kind", ["ram", "duckdb", "wire"])
async def test_the_statements_of_a_disabled_agent_are_declined_and_nothing_else_is(kind, folder, clock):
    async with backend(kind, folder, clock, Config(agents={"off": {("memory", "enabled"): False}})) as memory:
        await memory.add("kept")
        off, once = memory.acting_for(user_id="alice", agent_id="off"), str(uuid.uuid4())
        declined = await off.add("x", request_id=once)
        assert (Outcome.REJECTED, None, "disabled") == (declined.outcome, declined.memory, declined.rejection)
        assert declined == await off.add("x", request_id=once)
        assert [declined] * 2 == await off.add_batch([Draft(content="y"), Draft(content="z")])
        with pytest.raises(InvalidArgument):
            await off.add("late", expire_time=clock.now)
        assert [] == await listed(off) == texts(await off.search("x"))
        assert ["kept"] == await listed(memory)


async def test_a_batch_keeps_order_and_compares_its_items(memory):
    drafts = [
        Draft(content="one"), Draft(content="red", key="c"), Draft(content="ONE."), Draft(content="blue", key="c"),
    ]  # fmt: skip
    results = await memory.add_batch(drafts)
    assert [Outcome.INSERTED, Outcome.INSERTED, Outcome.REINFORCED, Outcome.SUPERSEDED] == [
        result.outcome for result in results
    ]
    assert results[0].memory.id == results[2].memory.id
    assert (results[1].memory.id,) == results[3].superseded_ids
    assert State.SUPERSEDED is results[1].memory.state
    assert ["blue", "one"] == await listed(memory)
    assert "blue" == texts(await memory.search("blue"))[0]


async def test_one_malformed_item_fails_the_batch_and_is_named(memory, clock):
    good = Draft(content="good")
    late = Draft(content="late", expire_time=clock.now - timedelta(days=1))
    with pytest.raises(InvalidArgument) as caught:
        await memory.add_batch([good, good, good, late])
    assert "requests[3].expire_time" == caught.value.field
    assert [] == await listed(memory)
