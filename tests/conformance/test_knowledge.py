"""Knowledge that evolves: what callers may rely on, over every store and through the real client."""

from __future__ import annotations

import pytest
from memory_client import (
    Conflict,
    Draft,
    Filter,
    InvalidArgument,
    Kind,
    NotFound,
    Outcome,
    Source,
    State,
)

from tests.conformance.knowledge_helpers import EXTRACTED


async def found(memory, query, **more):
    return [hit.memory.content for hit in (await memory.search(query, **more)).hits]


async def test_of_a_favorite_only_the_newer_is_found_and_the_older_is_kept_for_audit(memory):
    red = await memory.add("My favorite color is red")
    blue = await memory.add("My favorite color is blue")
    assert Outcome.SUPERSEDED is blue.outcome
    assert (red.memory.id,) == blue.superseded_ids == blue.memory.supersedes
    assert ["My favorite color is blue"] == await found(memory, "favorite color")
    old = await memory.get(red.memory.id)
    assert State.SUPERSEDED is old.state
    assert (blue.memory.id, "one_value", blue.memory.id) == (
        old.superseded_by, old.judgement.rule, old.judgement.evidence,
    )  # fmt: skip
    assert "red" not in old.judgement.reason


async def test_items_of_a_batch_are_compared_with_each_other(memory):
    results = await memory.add_batch(
        [Draft(content=f"My favorite color is {color}") for color in ("red", "green", "blue")]
    )
    assert [Outcome.INSERTED, Outcome.SUPERSEDED, Outcome.SUPERSEDED] == [r.outcome for r in results]
    assert ["My favorite color is blue"] == await found(memory, "favorite color")
    said = await memory.add_batch([Draft(content="My wife is Ann"), Draft(content="Ann likes tulips and roses")])
    assert ("Ann",) == said[1].memory.subjects
    assert said[0].memory.entities[0].id == said[1].memory.entities[0].id


async def test_a_repetition_in_other_words_strengthens(memory):
    first = await memory.add("I really love long walks by the sea", confidence=0.5)
    again = await memory.add("I love long walks by the sea", tags=["outdoors"])
    assert Outcome.REINFORCED is again.outcome
    assert (first.memory.id, 0.6, ("outdoors",)) == (again.memory.id, again.memory.confidence, again.memory.tags)


async def test_similar_statements_that_are_both_true_stay_two(memory):
    for text in ("I like tea", "I like green tea", "My daughter Anna is 5", "My daughter Mia is 7"):
        assert Outcome.INSERTED is (await memory.add(text)).outcome
    assert 4 == len((await memory.page()).memories)


async def test_what_cannot_be_decided_is_contested_both_ways_and_of_close_scores_the_newer_stands_first(memory):
    old = (await memory.add("I work as a teacher")).memory
    new = await memory.add("I work as a translator")
    assert (Outcome.INSERTED, (old.id,)) == (new.outcome, new.contested_ids)
    assert ((old.id,), (new.memory.id,)) == (
        (await memory.get(new.memory.id)).contested_with,
        (await memory.get(old.id)).contested_with,
    )
    assert ["I work as a translator", "I work as a teacher"] == await found(memory, "work")
    await memory.add("I live in Porto")
    contested = Filter(contested=True)
    assert [new.memory.id, old.id] == [one.id for one in (await memory.page(filter=contested)).memories]
    assert ["I work as a translator", "I work as a teacher"] == await found(memory, "work", filter=contested)
    await memory.delete(new.memory.id)
    assert () == (await memory.get(old.id)).contested_with
    assert () == (await memory.page(filter=contested)).memories


async def test_a_filter_names_the_conversation_that_a_memory_was_learnt_from(memory):
    learnt = (await memory.add("I keep bees", source=Source(thread_id="cli:alice", message_ids=("m1",)))).memory
    await memory.add("I keep wasps", source=Source(thread_id="cli:other"))
    await memory.add("I keep ants")
    wanted = Filter(source_thread_id="cli:alice")
    assert [learnt.id] == [one.id for one in (await memory.page(filter=wanted)).memories]
    assert ["I keep bees"] == await found(memory, "I keep", filter=wanted)
    assert ["I keep bees"] == [
        one.content for one in (await memory.delete_matching(filter=wanted, dry_run=True)).memories
    ]


async def test_less_confidence_does_not_retire_but_contest(memory):
    sure = (await memory.add("I live in Berlin")).memory
    guess = await memory.add("I live in Paris", confidence=0.7, source=Source(channel="extraction"))
    assert (Outcome.INSERTED, (sure.id,)) == (guess.outcome, guess.contested_ids)
    assert State.LIVE is (await memory.get(sure.id)).state


async def test_the_subject_rule_keeps_people_apart(memory):
    await memory.add("The favorite color is red", subjects=["Sarah"])
    assert Outcome.INSERTED is (await memory.add("The favorite color is blue")).outcome
    assert Outcome.INSERTED is (await memory.add("The favorite color is green", subjects=["Tom"])).outcome
    changed = await memory.add("Sarah's favorite color is pink")
    assert (Outcome.INSERTED, ("Sarah",)) == (changed.outcome, changed.memory.subjects)
    again = await memory.add("The favorite color is white", subjects=["Sarah", "Tom"])
    assert Outcome.SUPERSEDED is again.outcome


@pytest.mark.memory(supersede_policy="demote")
async def test_demote_keeps_the_older_with_little_confidence(memory):
    old = (await memory.add("I live in Berlin")).memory
    new = await memory.add("I live in Paris")
    held = await memory.get(old.id)
    assert (Outcome.INSERTED, State.LIVE, 0.3) == (new.outcome, held.state, held.confidence)
    assert ((), (old.id,)) == (new.superseded_ids, new.contested_ids)
    assert (new.memory.id,) == held.contested_with
    assert "I live in Paris" == (await found(memory, "live"))[0]


async def test_two_keys_of_the_caller_s_are_two_memories_whatever_they_say(memory):
    await memory.add("My favorite color is red", key="a")
    assert Outcome.INSERTED is (await memory.add("My favorite color is blue", key="b")).outcome


async def test_messages_are_not_judged(memory):
    await memory.add("My favorite color is red", kind=Kind.EPISODE)
    assert Outcome.INSERTED is (await memory.add("My favorite color is blue", kind=Kind.EPISODE)).outcome
    assert Outcome.INSERTED is (await memory.add("My favorite color is green")).outcome


async def test_a_second_call_with_the_same_request_id_tells_the_same(memory):
    await memory.add("I work as a teacher")
    first = await memory.add("I work as a translator", request_id="once")
    again = await memory.add("I work as a translator", request_id="once")
    assert (first.memory.id, first.contested_ids) == (again.memory.id, again.contested_ids)


async def test_a_history_tells_the_chain_and_nothing_of_what_was_purged(memory):
    ids = [(await memory.add(f"My favorite color is {color}")).memory.id for color in ("red", "green", "blue")]
    for one in ids:
        assert ids == [m.id for m in (await memory.history(one)).memories]
    await memory.delete(ids[1])
    history = await memory.history(ids[2])
    assert ([ids[2]], (ids[1],)) == ([m.id for m in history.memories], history.missing_ids)
    await memory.delete(ids[1], purge=True)
    history = await memory.history(ids[2])
    assert ([ids[2]], ()) == ([m.id for m in history.memories], history.missing_ids)
    first = await memory.get(ids[0])
    assert ("", True) == (first.superseded_by, first.supersede_time is not None)


async def test_a_correction_replaces_whatever_it_says_and_keeps_the_rest(memory):
    old = (await memory.add("my wife's name is Sara", tags=["family"], category="relationship")).memory
    done = await memory.correct(old.id, "my wife's name is Zoe", request_id="r")
    assert (Outcome.SUPERSEDED, (old.id,)) == (done.outcome, done.superseded_ids)
    assert (("family",), "relationship", ("Zoe",)) == (done.memory.tags, done.memory.category, done.memory.subjects)
    assert "corrected" == (await memory.get(old.id)).judgement.rule
    assert done.memory.id == (await memory.correct(old.id, "my wife's name is Zoe", request_id="r")).memory.id
    with pytest.raises(Conflict):
        await memory.correct(old.id, "again")
    with pytest.raises(InvalidArgument, match="says already"):
        await memory.correct(done.memory.id, "my wife's name is Zoe")
    with pytest.raises(NotFound):
        await memory.correct("a" * 26, "text")


async def test_a_contest_hides_no_answer(memory):
    old = (await memory.add("I work as a teacher")).memory
    new = (await memory.add("I work as a plumber")).memory
    assert (old.id,) == new.contested_with
    hits = (await memory.search("teacher")).hits  # one of the two is asked for by name
    assert ["I work as a teacher", "I work as a plumber"] == [hit.memory.content for hit in hits]
    assert hits[0].score > hits[1].score
    assert ["I work as a teacher"] == await found(memory, "teacher", limit=1)
    assert ["I work as a teacher"] == await found(memory, "teacher", min_score=hits[0].score - 1e-4)
    assert ["I work as a plumber"] == await found(memory, "I work as a plumber", limit=1)
    told = "- I work as a teacher [contested by the newer: I work as a plumber, 2026-11-01]\n- I work"
    assert told in (await memory.context("teacher")).text


async def test_a_filter_lets_no_partner_of_a_contest_through(memory):
    await memory.add("I work as a teacher", tags=["job"])
    await memory.add("I work as a plumber")
    assert ["I work as a teacher"] == await found(memory, "work", filter=Filter(tags=("job",)))


async def test_one_memory_contests_at_most_five_others(memory):
    trades = ("teacher", "plumber", "nurse", "pilot", "baker", "lawyer", "painter", "farmer")
    for trade in trades:
        result = await memory.add(f"I work as a {trade}")
        assert Outcome.INSERTED is result.outcome
        assert len(result.contested_ids) <= 5
    partners = [memory.contested_with for memory in (await memory.page()).memories]
    assert 5 == max(map(len, partners))


async def test_a_batch_reports_a_contest_on_the_later_item(memory):
    drafts = [Draft(content=f"I work as a {trade}") for trade in ("teacher", "plumber")]
    for _ in range(2):  # and says the same when it is asked again
        first, second = await memory.add_batch(drafts, request_id="r")
        assert ((), (first.memory.id,)) == (first.contested_ids, second.contested_ids)
    assert (second.memory.id,) == (await memory.get(first.memory.id)).contested_with


async def test_confirming_one_of_a_contested_pair_replaces_the_other_and_protects_it(memory):
    old = (await memory.add("I work as a teacher")).memory
    new = (await memory.add("I work as a translator")).memory
    done = await memory.confirm(old.id)
    assert ((new.id,), True, 1.0, ()) == (
        done.superseded_ids, done.memory.protected, done.memory.confidence, done.memory.contested_with,
    )  # fmt: skip
    assert ["I work as a teacher"] == await found(memory, "work")
    assert "confirmed" == (await memory.get(new.id)).judgement.rule


async def test_extraction_does_not_end_what_was_confirmed_and_a_person_does(memory):
    held = (await memory.add("I live in Berlin")).memory
    await memory.confirm(held.id)
    learnt = await memory.add("I live in Paris", source=EXTRACTED)
    assert (held.id,) == learnt.contested_ids
    said = await memory.add("I live in Rome")
    assert {held.id, learnt.memory.id} == set(said.superseded_ids)


async def test_restoring_what_was_superseded_makes_a_contested_pair(memory):
    red = (await memory.add("My favorite color is red")).memory
    blue = (await memory.add("My favorite color is blue")).memory
    back = await memory.restore(red.id)
    assert (State.LIVE, (blue.id,)) == (back.state, back.contested_with)
    assert (red.id,) == (await memory.get(blue.id)).contested_with
    assert "My favorite color is blue" == (await found(memory, "favorite color"))[0]
    await memory.confirm(red.id)
    assert ["My favorite color is red"] == await found(memory, "favorite color")


async def test_in_a_chat_each_says_i_of_themselves(memory):
    anna = memory.acting_for(user_id="anna", chat_id="room")
    bob = memory.acting_for(user_id="bob", chat_id="room")
    for one, text in ((anna, "I'm allergic to nuts"), (anna, "I like tea"), (anna, "I live in Rome")):
        await one.add(text, shared=True)
    await anna.add("The deadline is Friday", shared=True)
    for text in ("I'm not allergic to nuts", "I live in Oslo", "I like tea"):
        assert Outcome.INSERTED is (await bob.add(text, shared=True)).outcome
    assert Outcome.REINFORCED is (await anna.add("I live in Rome", shared=True)).outcome
    assert Outcome.SUPERSEDED is (await anna.add("I live in Paris", shared=True)).outcome
    assert Outcome.SUPERSEDED is (await bob.add("The deadline is Monday", shared=True)).outcome
    said = {m.content for m in (await anna.page()).memories}
    assert {"I'm allergic to nuts", "I'm not allergic to nuts", "I live in Paris", "I live in Oslo"} < said


async def test_a_speaker_says_i_of_themselves(memory):
    await memory.add("I live in Hull")
    carol = await memory.add("I live in Madrid", source=Source(speaker="Carol"))
    assert (Outcome.INSERTED, ()) == (carol.outcome, carol.contested_ids)
    assert Outcome.INSERTED is (await memory.add("I live in Lisbon", source=Source(speaker="Dave"))).outcome
    assert Outcome.SUPERSEDED is (await memory.add("I live in York", source=Source(speaker="user"))).outcome
    assert 3 == len((await memory.page()).memories)


async def test_one_text_of_two_people_is_two_memories(memory):
    tom = await memory.add("likes tea", subjects=["Tom"])
    bob = await memory.add("likes tea", subjects=["Bob"])
    again = await memory.add("likes tea", subjects=["Tom"])
    assert (Outcome.INSERTED, Outcome.REINFORCED) == (bob.outcome, again.outcome)
    assert tom.memory.id == again.memory.id
    await memory.forget_person("Bob")
    assert [tom.memory.id] == [m.id for m in (await memory.page()).memories]


async def test_what_says_more_is_no_repetition(memory):
    await memory.add("I am allergic to peanuts")
    assert Outcome.INSERTED is (await memory.add("I am severely allergic to peanuts")).outcome
    assert 2 == len((await memory.page()).memories)


async def test_the_user_has_one_boss(memory):
    anna = (await memory.add("My boss is Anna")).memory
    assert (anna.id,) == (await memory.add("My boss is Tom")).superseded_ids


async def test_what_comes_back_contests_what_holds_now_wherever_it_stood_in_the_chain(memory):
    berlin, _, rome = [(await memory.add(f"I live in {town}")).memory for town in ("Berlin", "Munich", "Rome")]
    back = await memory.restore(berlin.id)
    assert (rome.id,) == back.contested_with
    assert (berlin.id,) == (await memory.get(rome.id)).contested_with
    assert ["I live in Rome", "I live in Berlin"] == await found(memory, "where do I live")


async def test_a_restore_undoes_the_delete_first_and_the_replacement_when_asked_again(memory):
    rome, oslo = [(await memory.add(f"I live in {town}")).memory for town in ("Rome", "Oslo")]
    await memory.delete(rome.id)
    back = await memory.restore(rome.id)
    assert (State.SUPERSEDED, oslo.id, ()) == (back.state, back.superseded_by, back.contested_with)
    assert ["I live in Oslo"] == await found(memory, "live")
    back = await memory.restore(rome.id)
    assert (State.LIVE, "", (oslo.id,)) == (back.state, back.superseded_by, back.contested_with)


async def test_what_was_said_again_meanwhile_is_not_restored_beside_it(memory):
    first = (await memory.add("I live in Rome")).memory
    await memory.delete(first.id)
    second = (await memory.add("I live in Rome")).memory
    with pytest.raises(Conflict, match=second.id):
        await memory.restore(first.id)


async def test_a_delete_that_is_undone_leaves_the_pair_contested_as_it_was(memory):
    nurse = (await memory.add("I work as a nurse")).memory
    cook = (await memory.add("I work as a cook")).memory
    assert (nurse.id,) == cook.contested_with
    await memory.delete(nurse.id)
    assert ((), None) == ((await memory.get(cook.id)).contested_with, (await memory.get(cook.id)).judgement)
    back = await memory.restore(nurse.id)
    assert ((cook.id,), "maybe_one") == (back.contested_with, back.judgement.rule)
    assert ((nurse.id,), nurse.id) == (
        (await memory.get(cook.id)).contested_with,
        (await memory.get(cook.id)).judgement.evidence,
    )
