"""Knowledge that evolves: what callers may rely on, over every store and through the real client."""

from __future__ import annotations

from datetime import timedelta

import pytest
from memory_client import (
    Conflict,
    Draft,
    Filter,
    InvalidArgument,
    Kind,
    LimitExceeded,
    NotFound,
    Outcome,
    Source,
    State,
)

from memoryd.daemon.config import Config, MemoryConfig
from memoryd.domain.forgetting.decay import forget_faded
from memoryd.model.caller import Caller
from memoryd.model.trust import Trust
from tests.builders import Local, backend, open_duckdb, ports_over, ram_store, run

EXTRACTED = Source(channel="extraction", message_ids=("m1",))
BACKENDS = ["ram", "duckdb", "wire"]


@pytest.fixture(params=BACKENDS)
def with_memory(request, folder, clock):
    def runner(test, **memory):
        config = Config(memory=MemoryConfig(**memory))

        async def work():
            async with backend(request.param, folder, clock, config) as client:
                await test(client)

        run(work())

    return runner


async def found(memory, query, **more):
    return [hit.memory.content for hit in (await memory.search(query, **more)).hits]


# --- the order of judgement ---


def test_of_a_favorite_only_the_newer_is_found_and_the_older_is_kept_for_audit(with_memory):
    async def rule(memory):
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

    with_memory(rule)


def test_items_of_a_batch_are_compared_with_each_other(with_memory):
    async def rule(memory):
        results = await memory.add_batch(
            [Draft(content=f"My favorite color is {color}") for color in ("red", "green", "blue")]
        )
        assert [Outcome.INSERTED, Outcome.SUPERSEDED, Outcome.SUPERSEDED] == [r.outcome for r in results]
        assert ["My favorite color is blue"] == await found(memory, "favorite color")
        said = await memory.add_batch([Draft(content="My wife is Ann"), Draft(content="Ann likes tulips and roses")])
        assert ("Ann",) == said[1].memory.subjects
        assert said[0].memory.entities[0].id == said[1].memory.entities[0].id

    with_memory(rule)


def test_a_repetition_in_other_words_strengthens(with_memory):
    async def rule(memory):
        first = await memory.add("I really love long walks by the sea", confidence=0.5)
        again = await memory.add("I love long walks by the sea", tags=["outdoors"])
        assert Outcome.REINFORCED is again.outcome
        assert (first.memory.id, 0.6, ("outdoors",)) == (again.memory.id, again.memory.confidence, again.memory.tags)

    with_memory(rule)


def test_similar_statements_that_are_both_true_stay_two(with_memory):
    async def rule(memory):
        for text in ("I like tea", "I like green tea", "My daughter Anna is 5", "My daughter Mia is 7"):
            assert Outcome.INSERTED is (await memory.add(text)).outcome
        assert 4 == len((await memory.page()).memories)

    with_memory(rule)


def test_what_cannot_be_decided_is_contested_both_ways_and_of_close_scores_the_newer_stands_first(with_memory):
    async def rule(memory):
        old = (await memory.add("I work as a teacher")).memory
        new = await memory.add("I work as a translator")
        assert (Outcome.INSERTED, (old.id,)) == (new.outcome, new.contested_ids)
        assert ((old.id,), (new.memory.id,)) == (
            (await memory.get(new.memory.id)).contested_with,
            (await memory.get(old.id)).contested_with,
        )
        assert ["I work as a translator", "I work as a teacher"] == await found(memory, "work")
        await memory.delete(new.memory.id)
        assert () == (await memory.get(old.id)).contested_with

    with_memory(rule)


def test_less_confidence_does_not_retire_but_contest(with_memory):
    async def rule(memory):
        sure = (await memory.add("I live in Berlin")).memory
        guess = await memory.add("I live in Paris", confidence=0.7, source=Source(channel="extraction"))
        assert (Outcome.INSERTED, (sure.id,)) == (guess.outcome, guess.contested_ids)
        assert State.LIVE is (await memory.get(sure.id)).state

    with_memory(rule)


def test_the_subject_rule_keeps_people_apart(with_memory):
    async def rule(memory):
        await memory.add("The favorite color is red", subjects=["Sarah"])
        assert Outcome.INSERTED is (await memory.add("The favorite color is blue")).outcome
        assert Outcome.INSERTED is (await memory.add("The favorite color is green", subjects=["Tom"])).outcome
        changed = await memory.add("Sarah's favorite color is pink")
        assert Outcome.INSERTED is changed.outcome or ("Sarah",) == changed.memory.subjects
        again = await memory.add("The favorite color is white", subjects=["Sarah", "Tom"])
        assert Outcome.SUPERSEDED is again.outcome

    with_memory(rule)


def test_demote_keeps_the_older_with_little_confidence(with_memory):
    async def rule(memory):
        old = (await memory.add("I live in Berlin")).memory
        new = await memory.add("I live in Paris")
        held = await memory.get(old.id)
        assert (Outcome.INSERTED, State.LIVE, 0.3) == (new.outcome, held.state, held.confidence)
        assert ((), (old.id,)) == (new.superseded_ids, new.contested_ids)
        assert (new.memory.id,) == held.contested_with
        assert "I live in Paris" == (await found(memory, "live"))[0]

    with_memory(rule, supersede_policy="demote")


def test_two_keys_of_the_caller_s_are_two_memories_whatever_they_say(with_memory):
    async def rule(memory):
        await memory.add("My favorite color is red", key="a")
        assert Outcome.INSERTED is (await memory.add("My favorite color is blue", key="b")).outcome

    with_memory(rule)


def test_messages_are_not_judged(with_memory):
    async def rule(memory):
        await memory.add("My favorite color is red", kind=Kind.EPISODE)
        assert Outcome.INSERTED is (await memory.add("My favorite color is blue", kind=Kind.EPISODE)).outcome
        assert Outcome.INSERTED is (await memory.add("My favorite color is green")).outcome

    with_memory(rule)


def test_a_second_call_with_the_same_request_id_tells_the_same(with_memory):
    async def rule(memory):
        await memory.add("I work as a teacher")
        first = await memory.add("I work as a translator", request_id="once")
        again = await memory.add("I work as a translator", request_id="once")
        assert (first.memory.id, first.contested_ids) == (again.memory.id, again.contested_ids)

    with_memory(rule)


# --- deciding by hand ---


def test_a_history_tells_the_chain_and_nothing_of_what_was_purged(with_memory):
    async def rule(memory):
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

    with_memory(rule)


def test_a_correction_replaces_whatever_it_says_and_keeps_the_rest(with_memory):
    async def rule(memory):
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

    with_memory(rule)


def test_a_contest_hides_no_answer(with_memory):
    async def rule(memory):
        old = (await memory.add("I work as a teacher")).memory
        new = (await memory.add("I work as a plumber")).memory
        assert (old.id,) == new.contested_with
        hits = (await memory.search("teacher")).hits  # one of the two is asked for by name
        assert ["I work as a teacher", "I work as a plumber"] == [hit.memory.content for hit in hits]
        assert hits[0].score > hits[1].score
        assert ["I work as a teacher"] == await found(memory, "teacher", limit=1)
        assert ["I work as a teacher"] == await found(memory, "teacher", min_score=hits[0].score - 1e-4)
        assert ["I work as a plumber"] == await found(memory, "I work as a plumber", limit=1)
        assert "- I work as a teacher [contested]\n- I work" in (await memory.context("teacher")).text

    with_memory(rule)


def test_a_filter_lets_no_partner_of_a_contest_through(with_memory):
    async def rule(memory):
        await memory.add("I work as a teacher", tags=["job"])
        await memory.add("I work as a plumber")
        assert ["I work as a teacher"] == await found(memory, "work", filter=Filter(tags=("job",)))

    with_memory(rule)


def test_one_memory_contests_at_most_five_others(with_memory):
    async def rule(memory):
        trades = ("teacher", "plumber", "nurse", "pilot", "baker", "lawyer", "painter", "farmer")
        for trade in trades:
            result = await memory.add(f"I work as a {trade}")
            assert Outcome.INSERTED is result.outcome
            assert len(result.contested_ids) <= 5
        partners = [memory.contested_with for memory in (await memory.page()).memories]
        assert 5 == max(map(len, partners))

    with_memory(rule)


def test_a_batch_reports_a_contest_on_the_later_item(with_memory):
    async def rule(memory):
        drafts = [Draft(content=f"I work as a {trade}") for trade in ("teacher", "plumber")]
        for _ in range(2):  # and says the same when it is asked again
            first, second = await memory.add_batch(drafts, request_id="r")
            assert ((), (first.memory.id,)) == (first.contested_ids, second.contested_ids)
        assert (second.memory.id,) == (await memory.get(first.memory.id)).contested_with

    with_memory(rule)


def test_confirming_one_of_a_contested_pair_replaces_the_other_and_protects_it(with_memory):
    async def rule(memory):
        old = (await memory.add("I work as a teacher")).memory
        new = (await memory.add("I work as a translator")).memory
        done = await memory.confirm(old.id)
        assert ((new.id,), True, 1.0, ()) == (
            done.superseded_ids, done.memory.protected, done.memory.confidence, done.memory.contested_with,
        )  # fmt: skip
        assert ["I work as a teacher"] == await found(memory, "work")
        assert "confirmed" == (await memory.get(new.id)).judgement.rule

    with_memory(rule)


def test_extraction_does_not_end_what_was_confirmed_and_a_person_does(with_memory):
    async def rule(memory):
        held = (await memory.add("I live in Berlin")).memory
        await memory.confirm(held.id)
        learnt = await memory.add("I live in Paris", source=EXTRACTED)
        assert (held.id,) == learnt.contested_ids
        said = await memory.add("I live in Rome")
        assert {held.id, learnt.memory.id} == set(said.superseded_ids)

    with_memory(rule)


def test_restoring_what_was_superseded_makes_a_contested_pair(with_memory):
    async def rule(memory):
        red = (await memory.add("My favorite color is red")).memory
        blue = (await memory.add("My favorite color is blue")).memory
        back = await memory.restore(red.id)
        assert (State.LIVE, (blue.id,)) == (back.state, back.contested_with)
        assert (red.id,) == (await memory.get(blue.id)).contested_with
        assert "My favorite color is blue" == (await found(memory, "favorite color"))[0]
        await memory.confirm(red.id)
        assert ["My favorite color is red"] == await found(memory, "favorite color")

    with_memory(rule)


def test_in_a_chat_each_says_i_of_themselves(with_memory):
    async def rule(memory):
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

    with_memory(rule)


def test_a_speaker_says_i_of_themselves(with_memory):
    async def rule(memory):
        await memory.add("I live in Hull")
        carol = await memory.add("I live in Madrid", source=Source(speaker="Carol"))
        assert (Outcome.INSERTED, ()) == (carol.outcome, carol.contested_ids)
        assert Outcome.INSERTED is (await memory.add("I live in Lisbon", source=Source(speaker="Dave"))).outcome
        assert Outcome.SUPERSEDED is (await memory.add("I live in York", source=Source(speaker="user"))).outcome
        assert 3 == len((await memory.page()).memories)

    with_memory(rule)


def test_one_text_of_two_people_is_two_memories(with_memory):
    async def rule(memory):
        tom = await memory.add("likes tea", subjects=["Tom"])
        bob = await memory.add("likes tea", subjects=["Bob"])
        again = await memory.add("likes tea", subjects=["Tom"])
        assert (Outcome.INSERTED, Outcome.REINFORCED) == (bob.outcome, again.outcome)
        assert tom.memory.id == again.memory.id
        await memory.forget_person("Bob")
        assert [tom.memory.id] == [m.id for m in (await memory.page()).memories]

    with_memory(rule)


def test_what_says_more_is_no_repetition(with_memory):
    async def rule(memory):
        await memory.add("I am allergic to peanuts")
        assert Outcome.INSERTED is (await memory.add("I am severely allergic to peanuts")).outcome
        assert 2 == len((await memory.page()).memories)

    with_memory(rule)


def test_the_user_has_one_boss(with_memory):
    async def rule(memory):
        anna = (await memory.add("My boss is Anna")).memory
        assert (anna.id,) == (await memory.add("My boss is Tom")).superseded_ids

    with_memory(rule)


def test_what_comes_back_contests_what_holds_now_wherever_it_stood_in_the_chain(with_memory):
    async def rule(memory):
        berlin, _, rome = [(await memory.add(f"I live in {town}")).memory for town in ("Berlin", "Munich", "Rome")]
        back = await memory.restore(berlin.id)
        assert (rome.id,) == back.contested_with
        assert (berlin.id,) == (await memory.get(rome.id)).contested_with
        assert ["I live in Rome", "I live in Berlin"] == await found(memory, "where do I live")

    with_memory(rule)


def test_a_restore_undoes_the_delete_first_and_the_replacement_when_asked_again(with_memory):
    async def rule(memory):
        rome, oslo = [(await memory.add(f"I live in {town}")).memory for town in ("Rome", "Oslo")]
        await memory.delete(rome.id)
        back = await memory.restore(rome.id)
        assert (State.SUPERSEDED, oslo.id, ()) == (back.state, back.superseded_by, back.contested_with)
        assert ["I live in Oslo"] == await found(memory, "live")
        back = await memory.restore(rome.id)
        assert (State.LIVE, "", (oslo.id,)) == (back.state, back.superseded_by, back.contested_with)

    with_memory(rule)


def test_what_was_said_again_meanwhile_is_not_restored_beside_it(with_memory):
    async def rule(memory):
        first = (await memory.add("I live in Rome")).memory
        await memory.delete(first.id)
        second = (await memory.add("I live in Rome")).memory
        with pytest.raises(Conflict, match=second.id):
            await memory.restore(first.id)

    with_memory(rule)


def test_a_delete_that_is_undone_leaves_the_pair_contested_as_it_was(with_memory):
    async def rule(memory):
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

    with_memory(rule)


# --- forgetting ---


def test_extraction_does_not_learn_again_what_was_deleted_until_somebody_says_it(with_memory):
    async def rule(memory):
        gone = (await memory.add("I am in love with Anna", source=EXTRACTED)).memory
        await memory.delete(gone.id)
        again = await memory.add("I am in love with Anna", source=EXTRACTED)
        assert (Outcome.REJECTED, "forgotten") == (again.outcome, again.rejection)
        other_words = await memory.add("The user loves Anna", source=EXTRACTED)
        assert "forgotten" == other_words.rejection  # learnt from the same message
        assert Outcome.INSERTED is (await memory.add("I am in love with Anna")).outcome
        assert Outcome.REINFORCED is (await memory.add("I am in love with Anna", source=EXTRACTED)).outcome

    with_memory(rule)


def test_restoring_lifts_the_tombstone(with_memory):
    async def rule(memory):
        gone = (await memory.add("I collect stamps", source=EXTRACTED)).memory
        await memory.delete(gone.id)
        await memory.restore(gone.id)
        assert Outcome.REINFORCED is (await memory.add("I collect stamps", source=EXTRACTED)).outcome

    with_memory(rule)


def test_a_delete_by_filter_takes_text_literally_and_shows_first_what_would_go(with_memory):
    async def rule(memory):
        await memory.add_batch([Draft(content=text) for text in ("100% wool", "100 percent", "The 100%_x", "other")])
        preview = await memory.delete_matching(text="100%", dry_run=True)
        assert {"100% wool", "The 100%_x"} == {memory.content for memory in preview.memories}
        assert (2, None) == (preview.deleted_count, preview.purge_time)
        assert 4 == len((await memory.page()).memories)
        gone = await memory.delete_matching(text="100%_X", request_id="r")
        assert 1 == gone.deleted_count
        assert gone.deleted_ids == (await memory.delete_matching(text="100%_X", request_id="r")).deleted_ids
        assert ["100% wool", "100 percent", "other"] == [m.content for m in (await memory.page()).memories][::-1]
        await memory.restore(gone.deleted_ids[0])

    with_memory(rule)


@pytest.mark.parametrize(
    "match",
    [
        {"source": Source(speaker="bob")},
        {"source": Source(message_ids=("m7", "m8"))},
        {"filter": Filter(subjects=("Bob",))},
        {"filter": Filter(tags=("t",))},
        {"filter": Filter(kinds=frozenset({Kind.EVENT}))},
    ],
)
def test_every_part_of_a_filter_narrows(with_memory, match):
    async def rule(memory):
        await memory.add(
            "this one goes",
            subjects=["Bob"],
            tags=["t"],
            kind=Kind.EVENT,
            source=Source(speaker="bob", message_ids=("m7",)),
        )
        await memory.add("this one stays", source=Source(speaker="ann", message_ids=("m1",)))
        assert 1 == (await memory.delete_matching(**match)).deleted_count
        assert ["this one stays"] == [m.content for m in (await memory.page()).memories]

    with_memory(rule)


def test_an_empty_filter_and_a_short_text_are_refused(with_memory):
    async def rule(memory):
        await memory.add("something")
        for match in ({}, {"text": "so"}, {"text": "  "}, {"filter": Filter()}):
            with pytest.raises(InvalidArgument):
                await memory.delete_matching(**match)
        assert 1 == len((await memory.page()).memories)

    with_memory(rule)


def test_a_purge_by_filter_is_for_good(with_memory):
    async def rule(memory):
        old = (await memory.add("My favorite color is red")).memory
        await memory.add("My favorite color is blue")
        gone = await memory.delete_matching(text="favorite color", purge=True)
        assert (2, None) == (gone.deleted_count, gone.purge_time)
        with pytest.raises(NotFound):
            await memory.restore(old.id)

    with_memory(rule)


# --- room ---


def test_above_the_cap_the_least_valuable_are_evicted_and_can_be_restored(with_memory):
    async def rule(memory):
        weak = (await memory.add("weak fact alpha", confidence=0.2)).memory
        kept = [(await memory.add(f"fact number{n} of topic{n}")).memory.id for n in range(3)]
        assert {weak.id, *kept[:2]} - {m.id for m in (await memory.page()).memories} == {weak.id}
        back = await memory.restore(weak.id)
        assert "" == back.delete_reason
        with pytest.raises(NotFound):
            await memory.get("a" * 26)

    with_memory(rule, max_entries=3)


def test_a_scope_of_protected_memories_takes_no_more(with_memory):
    async def rule(memory):
        for n in range(2):
            made = await memory.add(f"protected number{n} of topic{n}")
            await memory.confirm(made.memory.id)
        with pytest.raises(LimitExceeded) as refusal:
            await memory.add("one more of another sort")
        assert "max_entries" == refusal.value.limit
        corrected = await memory.correct(made.memory.id, "It is quite different")
        assert (Outcome.SUPERSEDED, True) == (corrected.outcome, corrected.memory.protected)
        assert 2 == len((await memory.page()).memories)

    with_memory(rule, max_entries=2)


def test_a_batch_larger_than_the_cap_is_refused_whole(with_memory):
    async def rule(memory):
        with pytest.raises(LimitExceeded):
            await memory.add_batch([Draft(content=f"number{n} of topic{n}") for n in range(4)])
        assert () == (await memory.page()).memories

    with_memory(rule, max_entries=3)


# --- secrets ---


def test_a_credential_is_refused_wherever_it_stands(with_memory):
    async def rule(memory):
        token = "ghp_" + "a1B2" * 9
        for more in (
            {"content": f"use {token}"},
            {"tags": [token]},
            {"metadata": {"token": token}},
            {"subjects": [token]},
        ):
            done = await memory.add(more.pop("content", "a harmless statement"), **more)
            assert (Outcome.REJECTED, "secret", None) == (done.outcome, done.rejection, done.memory)
        results = await memory.add_batch([Draft(content="my PIN is 4821"), Draft(content="a fact")])
        assert [Outcome.REJECTED, Outcome.INSERTED] == [result.outcome for result in results]
        made = (await memory.add("another fact entirely")).memory
        assert "secret" == (await memory.correct(made.id, f"it is {token}")).rejection
        assert 2 == len((await memory.page()).memories)

    with_memory(rule)


# --- fading ---


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
def test_what_has_faded_is_forgotten_once_and_can_be_restored(kind, folder, clock):
    async def rule():
        store = ram_store() if kind == "ram" else open_duckdb(folder)
        async with ports_over(store) as ports:
            alice = Local(ports, clock, user_id="alice")
            learnt = (await alice.add("I like jazz", source=EXTRACTED, confidence=0.8)).memory
            stated = (await alice.add("I like opera")).memory
            clock.now += timedelta(days=400)
            preview = await forget_faded(ports, now=clock(), dry_run=True)
            assert (2, [learnt.id]) == (preview.examined_count, [faded.id for faded in preview.faded])
            assert State.LIVE is (await alice.get(learnt.id)).state
            for _ in range(3):
                await forget_faded(ports, now=clock())
            assert [stated.id] == [m.id for m in (await alice.page()).memories]
            (gone,) = [e.memory for e in await store.entries(learnt.owner, [learnt.id])]
            assert ("decayed", 0.8) == (gone.delete_reason, gone.confidence)
            assert 0.8 == (await alice.restore(learnt.id)).confidence
            assert Outcome.REINFORCED is (await alice.add("I like jazz", source=EXTRACTED)).outcome

    run(rule())


def test_a_sandbox_s_searches_keep_nothing_alive(clock):
    async def rule():
        async with ports_over(ram_store()) as ports:
            alice = Local(ports, clock, user_id="alice")
            learnt = (await alice.add("I like jazz", source=EXTRACTED)).memory
            clock.now += timedelta(days=290)
            for trust in (Trust.SANDBOX, Trust.HOST):
                ports.recalls.note([learnt], clock(), trusted=Caller(user_id="alice", trust=trust).trust is Trust.HOST)
                await ports.store.note_recalls(ports.recalls.take())
                faded = (await forget_faded(ports, now=clock() + timedelta(days=20), dry_run=True)).faded
                assert [learnt.id][: trust is Trust.SANDBOX] == [one.id for one in faded]

    run(rule())
