"""What other systems have kept comes in with its ids and times, once, less trusted than the host, and judged later."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.learning import imports
from memoryd.model.imported import imported_id
from memoryd.model.memory import State
from memoryd.model.query import Filter
from memoryd.model.scope import Owner, Scope
from memoryd.model.trust import Trust
from tests.brought import DAY, brought, item, judged, judging, live, outcomes
from tests.builders import NOW

PASSWORD = "my password is hunter2-Zq81"  # noqa: S105  a made-up one


@pytest.fixture
def memory(alice):
    return alice


async def test_what_comes_keeps_its_time_and_its_id_and_is_less_trusted_than_the_host(memory):
    ((outcome, memory_id, _),) = await brought(memory, item("I keep bees", "m-1", tags=("garden",)))
    found = await memory.get(memory_id)
    assert ("stored", NOW - 10 * DAY, NOW - 10 * DAY) == (outcome, found.create_time, found.event_time)
    assert (Trust.IMPORTED, "old", "m-1", "import") == (
        found.trust, found.import_id, found.external_id, found.source.channel,
    )  # fmt: skip
    assert imported_id(Owner("default", Scope(user_id="alice")), "old", "m-1") == memory_id
    (hit,) = (await memory.search("who has bees?", min_score=0.0)).hits
    assert memory_id == hit.memory.id


async def test_what_came_before_comes_no_second_time_whatever_became_of_it(memory):
    items = [item(f"I like the colour number {n}", f"m-{n}") for n in range(5)]
    first = await brought(memory, *items)
    assert ["known"] * 5 == await outcomes(memory, *items)
    await memory.delete(first[0][1])
    await memory.delete(first[1][1], purge=True)
    corrected = await memory.correct(first[2][1], "I like the colour of rust")
    await memory.confirm(first[3][1])
    again = await outcomes(memory, *items)
    has_ledger = memory.ports.store.files is not None
    assert ["forgotten", "erased" if has_ledger else "forgotten", "known", "known", "known"] == again
    assert corrected.memory.content in await live(memory)
    assert 3 == len(await live(memory))
    assert ["forgotten"] == await outcomes(memory, items[0], import_id="another")


async def test_another_text_under_a_known_id_changes_nothing(memory):
    await brought(memory, item("I keep bees", "m-1"))
    assert ["kept"] == await outcomes(memory, item("I keep wasps", "m-1"))
    assert ["stored"] == await outcomes(memory, item("I keep wasps", "m-1"), import_id="another")
    assert ["I keep bees", "I keep wasps"] == await live(memory)


async def test_a_repetition_is_found_at_once_and_of_other_words_by_the_job(memory):
    known = (await memory.add("I am allergic to peanuts")).memory
    same, other, own = await brought(
        memory,
        item("I am allergic to peanuts", "a", tags=("health",)),
        item("I'm allergic to peanuts", "b"),
        item("I play the violin", "c"),
    )
    assert (("repeated", known.id), "stored", "stored") == (same[:2], other[0], own[0])
    await judged(memory)
    assert ["I am allergic to peanuts", "I play the violin"] == await live(memory)
    assert known.id == (await memory.get(other[1])).superseded_by


async def test_of_two_that_differ_the_later_holds_however_they_come(memory):
    colours = ("red", "blue", "green", "black")
    items = [item(f"My favorite color is {colour}", colour, age=40 - n) for n, colour in enumerate(colours)]
    await brought(memory, *reversed(items[1:]))
    await brought(memory, items[0])
    assert 4 == len(await live(memory))  # none is judged yet
    await judged(memory)
    assert ["My favorite color is black"] == await live(memory)
    found = {m.external_id: m for m in (await memory.page(filter=Filter(include_superseded=True))).memories}
    assert State.SUPERSEDED is found["red"].state_at(NOW)
    assert found["red"].judgement.reason
    assert found["blue"].id == found["red"].superseded_by  # each by the next one, not all by the last


async def test_what_the_host_has_said_is_not_ended_by_an_import_and_ends_what_is_older(memory):
    await memory.add("My favorite color is blue")
    await brought(memory, item("My favorite color is red", "1"))
    await judged(memory)
    assert ["My favorite color is blue"] == await live(memory)
    later = item("My favorite color is green", "2", create_time=NOW + timedelta(seconds=1))
    memory.clock.now += DAY
    await brought(memory, later)
    await judged(memory)
    both = (await memory.page()).memories
    assert ["My favorite color is blue", "My favorite color is green"] == sorted(one.content for one in both)
    assert all(one.contested_with for one in both)


async def test_a_host_that_speaks_before_the_job_is_not_undone_by_it(memory):
    await brought(memory, item("My favorite color is red", "1"), item("I live in Rome", "2"))
    await memory.add("My favorite color is blue")
    await judged(memory)
    assert ["I live in Rome", "My favorite color is blue"] == await live(memory)


async def test_the_job_waits_until_no_more_comes_and_ends_where_nothing_waits(memory):
    judge = judging(memory)
    await brought(memory, item("My favorite color is red", "1", age=9), item("My favorite color is blue", "2", age=8))
    await judge.step()
    assert 2 == len(await live(memory))
    memory.clock.now += imports.QUIET
    await judge.step()
    assert 1 == len(await live(memory))
    (run,) = await memory.ports.store.work.runs(limit=10)
    assert ("imports", 2, 1) == (run.job, run.done_count, run.counts["superseded"])
    await judge.step()
    assert 1 == len(await memory.ports.store.work.runs(limit=10))


async def test_history_comes_as_history(memory):
    old = item("I live in Oslo", "a", supersede_time=NOW - 2 * DAY, superseded_by="b")
    ((_, old_id, _), (_, new_id, _)) = await brought(memory, old, item("I live in Rome", "b", age=2))
    await judged(memory)
    assert ["I live in Rome"] == await live(memory)
    found = await memory.get(old_id)
    assert (NOW - 2 * DAY, new_id) == (found.supersede_time, found.superseded_by)
    before = await memory.search("where do I live?", as_of=NOW - 5 * DAY, min_score=0.0)
    assert ["I live in Oslo"] == [hit.memory.content for hit in before.hits]


async def test_what_policy_declines_is_said_and_the_rest_comes(memory):
    items = (
        item(PASSWORD, "a"),
        item("My card is valid until June", "b", expire_time=NOW - DAY),
        item("I keep bees", "c"),
    )
    assert ["secret", "expired", "stored"] == await outcomes(memory, *items, dry_run=True)
    assert [] == await live(memory)
    assert ["secret", "expired", "stored"] == await outcomes(memory, *items)


@pytest.mark.parametrize(
    ("items", "field"),
    [
        ([], "memories"),
        ([item("a b c", "x"), item("d e f", "x")], "memories[1].external_id"),
        ([item("a b c", "x", create_time=NOW + DAY)], "memories[0].create_time"),
        ([item("a b c", "x", shared=True)], "memories[0].chat_id"),
    ],
)
async def test_a_malformed_item_is_named_and_nothing_is_stored(memory, items, field):
    with pytest.raises(InvalidArgument) as refused:
        await brought(memory, *items)
    assert field == refused.value.field
    assert [] == await live(memory)


async def test_too_many_are_refused(memory):
    with pytest.raises(LimitExceeded):
        await brought(memory, *(item(f"number {n}", str(n)) for n in range(101)))


async def test_an_import_is_found_and_undone_by_its_name(memory):
    await brought(memory, *(item(f"I like tree number {n}", str(n)) for n in range(3)))
    await brought(memory, item("I keep bees", "1"), import_id="another")
    assert ["I keep bees"] == await live(memory, import_id="another")
    gone = await memory.delete_matching(filter=Filter(import_id="old"))
    assert 3 == gone.deleted_count
    assert ["I keep bees"] == await live(memory)


async def test_one_user_s_import_is_no_other_s(memory):
    await brought(memory, item("I keep bees", "1"))
    assert ["stored"] == await outcomes(memory, item("I keep bees", "1"), user_id="bob")
    assert ["stored"] == await outcomes(memory, item("I keep bees", "1"), user_id="alice", agent_id="other")
    chat = {"user_id": "alice", "chat_id": "team"}
    assert ["stored"] == await outcomes(memory, item("I keep bees", "1", shared=True), **chat)
    assert ["I keep bees"] == await live(memory)
