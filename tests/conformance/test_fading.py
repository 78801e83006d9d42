"""Knowledge that goes: forgetting by filter, eviction, secrets, fading."""

from __future__ import annotations

from datetime import timedelta

import pytest
from memory_client import (
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

from memoryd.domain.forgetting.decay import forget_faded
from memoryd.model.caller import Caller
from memoryd.model.trust import Trust
from tests.builders import Local, open_duckdb, ports_over, ram_store
from tests.conformance.knowledge_helpers import EXTRACTED


async def test_extraction_does_not_learn_again_what_was_deleted_until_somebody_says_it(memory):
    gone = (await memory.add("I am in love with Anna", source=EXTRACTED)).memory
    await memory.delete(gone.id)
    again = await memory.add("I am in love with Anna", source=EXTRACTED)
    assert (Outcome.REJECTED, "forgotten") == (again.outcome, again.rejection)
    other_words = await memory.add("The user loves Anna", source=EXTRACTED)
    assert "forgotten" == other_words.rejection  # learnt from the same message
    assert Outcome.INSERTED is (await memory.add("I am in love with Anna")).outcome
    assert Outcome.REINFORCED is (await memory.add("I am in love with Anna", source=EXTRACTED)).outcome


async def test_restoring_lifts_the_tombstone(memory):
    gone = (await memory.add("I collect stamps", source=EXTRACTED)).memory
    await memory.delete(gone.id)
    await memory.restore(gone.id)
    assert Outcome.REINFORCED is (await memory.add("I collect stamps", source=EXTRACTED)).outcome


async def test_a_delete_by_filter_takes_text_literally_and_shows_first_what_would_go(memory):
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
async def test_every_part_of_a_filter_narrows(memory, match):
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


async def test_an_empty_filter_and_a_short_text_are_refused(memory):
    await memory.add("something")
    for match in ({}, {"text": "so"}, {"text": "  "}, {"filter": Filter()}):
        with pytest.raises(InvalidArgument):
            await memory.delete_matching(**match)
    assert 1 == len((await memory.page()).memories)


async def test_a_purge_by_filter_is_for_good(memory):
    old = (await memory.add("My favorite color is red")).memory
    await memory.add("My favorite color is blue")
    gone = await memory.delete_matching(text="favorite color", purge=True)
    assert (2, None) == (gone.deleted_count, gone.purge_time)
    with pytest.raises(NotFound):
        await memory.restore(old.id)


@pytest.mark.memory(max_entries=3)
async def test_above_the_cap_the_least_valuable_are_evicted_and_can_be_restored(memory):
    weak = (await memory.add("weak fact alpha", confidence=0.2)).memory
    kept = [(await memory.add(f"fact number{n} of topic{n}")).memory.id for n in range(3)]
    assert {weak.id, *kept[:2]} - {m.id for m in (await memory.page()).memories} == {weak.id}
    back = await memory.restore(weak.id)
    assert "" == back.delete_reason
    with pytest.raises(NotFound):
        await memory.get("a" * 26)


@pytest.mark.memory(max_entries=2)
async def test_a_scope_of_protected_memories_takes_no_more(memory):
    for n in range(2):
        made = await memory.add(f"protected number{n} of topic{n}")
        await memory.confirm(made.memory.id)
    with pytest.raises(LimitExceeded) as refusal:
        await memory.add("one more of another sort")
    assert "max_entries" == refusal.value.limit
    corrected = await memory.correct(made.memory.id, "It is quite different")
    assert (Outcome.SUPERSEDED, True) == (corrected.outcome, corrected.memory.protected)
    assert 2 == len((await memory.page()).memories)


@pytest.mark.memory(max_entries=3)
async def test_a_batch_larger_than_the_cap_is_refused_whole(memory):
    with pytest.raises(LimitExceeded):
        await memory.add_batch([Draft(content=f"number{n} of topic{n}") for n in range(4)])
    assert () == (await memory.page()).memories


async def test_a_credential_is_refused_wherever_it_stands(memory):
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


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
async def test_what_has_faded_is_forgotten_once_and_can_be_restored(kind, folder, clock):
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
        (gone,) = [e.memory for e in await store.memories.entries(learnt.owner, [learnt.id])]
        assert ("decayed", 0.8) == (gone.delete_reason, gone.confidence)
        early = learnt.create_time + timedelta(days=1)
        assert [learnt.id] == [hit.memory.id for hit in (await alice.search("jazz", as_of=early)).hits]
        assert [] == [hit.memory.id for hit in (await alice.search("jazz")).hits]
        assert 0.8 == (await alice.restore(learnt.id)).confidence
        assert Outcome.REINFORCED is (await alice.add("I like jazz", source=EXTRACTED)).outcome


async def test_a_sandbox_s_searches_keep_nothing_alive(clock):
    async with ports_over(ram_store()) as ports:
        alice = Local(ports, clock, user_id="alice")
        learnt = (await alice.add("I like jazz", source=EXTRACTED)).memory
        clock.now += timedelta(days=290)
        for trust in (Trust.SANDBOX, Trust.HOST):
            ports.shared.recalls.note(
                [learnt], clock(), trusted=Caller(user_id="alice", trust=trust).trust is Trust.HOST
            )
            await ports.store.memories.note_recalls(ports.shared.recalls.take())
            faded = (await forget_faded(ports, now=clock() + timedelta(days=20), dry_run=True)).faded
            assert [learnt.id][: trust is Trust.SANDBOX] == [one.id for one in faded]
