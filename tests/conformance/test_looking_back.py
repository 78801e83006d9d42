"""Searching as of a time, asking why something is not found, and saying the same once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from memory_client import Draft, Filter, InvalidArgument, Kind, NotFound, Source

from tests.conformance.behaviour_helpers import texts as found


async def test_as_of_a_time_what_was_replaced_later_is_what_was_known(memory, clock):
    old = (await memory.add("my favorite color is red", key="color")).memory
    clock.pass_days(1)
    then = clock()
    clock.pass_days(1)
    new = (await memory.add("my favorite color is blue", key="color")).memory
    assert (new.supersedes, ["my favorite color is blue"]) == ((old.id,), found(await memory.search("favorite color")))
    before = await memory.search("favorite color", as_of=then)
    assert ["my favorite color is red"] == found(before)
    assert (None, "", "live") == (
        before.hits[0].memory.supersede_time, before.hits[0].memory.superseded_by, before.hits[0].memory.state.value
    )  # fmt: skip
    assert [] == found(await memory.search("favorite color", as_of=then - timedelta(days=9)))


async def test_as_of_a_time_before_a_correction_the_old_words_hold(memory, clock):
    made = (await memory.add("the meeting is in room four")).memory
    clock.pass_days(1)
    then = clock()
    clock.pass_days(1)
    await memory.correct(made.id, "the meeting is in room nine")
    assert ["the meeting is in room four"] == found(await memory.search("meeting room", as_of=then))


async def test_as_of_a_time_before_it_expired_it_is_there(memory, clock):
    await memory.add("the visitor code is on the door", expires_days=2)
    clock.pass_days(1)
    then = clock()
    clock.pass_days(5)
    assert [] == found(await memory.search("visitor code"))
    assert ["the visitor code is on the door"] == found(await memory.search("visitor code", as_of=then))


async def test_what_was_deleted_stays_away_as_of_any_time(memory, clock):
    made = (await memory.add("the heron nests at the lighthouse")).memory
    clock.pass_days(1)
    then = clock()
    clock.pass_days(1)
    await memory.delete(made.id)
    assert [] == found(await memory.search("heron", as_of=then))
    gone = await memory.search("heron", why_not=made.id)
    assert (("deleted",), 0) == (gone.miss.reasons, gone.miss.place)


async def test_nothing_is_known_of_the_future(memory, clock):
    with pytest.raises(InvalidArgument, match="as_of"):
        await memory.search("x", as_of=clock() + timedelta(days=1))


async def test_another_scope_sees_nothing_of_the_past_either(memory, clock):
    await memory.add("the safe is behind the picture")
    clock.pass_days(1)
    other = memory.acting_for(user_id="bob")
    assert [] == found(await other.search("safe", as_of=clock(), min_score=0.0))


async def test_why_not_tells_the_place_of_a_hit_and_what_keeps_others_out(memory, clock):
    made = [one.memory for one in await memory.add_batch([
        Draft(content="the boiler was serviced in spring", tags=("house",)),
        Draft(content="the boiler makes a noise"),
        Draft(content="zebras sleep standing"),
    ])]  # fmt: skip
    first = await memory.search("boiler noise", why_not=made[1].id[:12])
    assert (made[1].id, 1, ()) == (first.miss.id, first.miss.place, first.miss.reasons)
    assert {"vector", "keyword"} <= {leg.leg.value for leg in first.miss.explanation}
    assert first.hits[0].score == pytest.approx(first.miss.score)

    second = await memory.search("boiler noise", limit=1, why_not=made[0].id)
    assert (2, ("limit",)) == (second.miss.place, second.miss.reasons)

    by_tag = await memory.search("boiler noise", filter=Filter(tags=("house",)), why_not=made[1].id)
    assert ("tag",) == by_tag.miss.reasons
    assert 1 == by_tag.miss.place  # that it would have

    stranger = await memory.search("boiler noise", min_score=0.9, why_not=made[2].id)
    assert ("min_score",) == stranger.miss.reasons


async def test_why_not_names_every_filter(memory, clock):
    made = (await memory.add("a fact about tea", kind=Kind.FACT, expires_days=1)).memory
    clock.pass_days(3)
    wanted = Filter(
        kinds=frozenset({Kind.EVENT}), category="x", metadata={"k": "v"}, event_time_from=clock(), subjects=("Sarah",)
    )
    miss = (await memory.search("tea", filter=wanted, why_not=made.id)).miss
    assert {"expired", "kind", "category", "metadata", "event_time", "subject"} == {*miss.reasons}


async def test_of_somebody_else_s_memory_nobody_learns_why(memory):
    theirs = (await memory.acting_for(user_id="bob").add("the key is under the mat")).memory
    with pytest.raises(NotFound):
        await memory.search("key", why_not=theirs.id)


async def test_what_says_the_same_is_one_hit_with_the_ids_of_the_others(memory):
    made = [(await memory.add("The parcel came.", key=f"k{n}")).memory for n in range(3)]
    await memory.add("The parcel came", key="other", source=Source(speaker="Bob"))
    hits = (await memory.search("parcel")).hits
    assert [2, 0] == sorted((len(hit.same_ids) for hit in hits), reverse=True)
    of_mine = next(hit for hit in hits if hit.same_ids)
    assert {one.id for one in made} == {of_mine.memory.id, *of_mine.same_ids}
    again = await memory.search("parcel", why_not=of_mine.same_ids[0])
    assert "same" in again.miss.reasons


async def test_a_negation_or_another_number_is_not_the_same(memory):
    await memory.add_batch([
        Draft(content="the pool is open on Sunday", key="a"), Draft(content="the pool is not open on Sunday", key="b"),
        Draft(content="the pool has 3 lanes", key="c"), Draft(content="the pool has 4 lanes", key="d"),
    ])  # fmt: skip
    hits = (await memory.search("pool", min_score=0.0)).hits
    assert (4, [0, 0, 0, 0]) == (len(hits), [len(hit.same_ids) for hit in hits])


async def test_a_search_finds_no_answer_where_nothing_is_like_the_question(memory):
    await memory.add_batch([Draft(content="I'm allergic to peanuts"), Draft(content="My wife's name is Sarah")])
    nothing = await memory.search("zzzqqq")
    assert ((), None) == (nothing.hits, nothing.miss)
