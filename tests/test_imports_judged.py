"""What judges imports afterwards loses nothing, ends nothing that it must not, and keeps within bounds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from memoryd.domain.forgetting.everything import forget_user
from memoryd.domain.writing.add import add
from memoryd.domain.writing.contest import with_room
from memoryd.domain.writing.settle import MOST_SUPERSEDED
from memoryd.errors import InvalidArgument
from memoryd.model.limits import MAX_CONTESTED
from memoryd.model.memory import Draft, Judgement, State
from memoryd.model.trust import Trust
from tests.brought import DAY, brought, item, judged, judging, live, outcomes, who
from tests.builders import NOW, Local, ports_over, ram_store, with_ports


@pytest.fixture
def memory(alice):
    return alice


async def test_of_two_that_say_the_same_the_later_end_and_all_labels_are_kept(memory):
    first = item("I am allergic to peanuts", "a", age=9, expire_time=NOW + DAY, tags=("health",))
    other = item("I'm allergic to peanuts", "b", age=8, tags=("food",), metadata={"n": 3})
    await brought(memory, first, other)
    await judged(memory)
    (kept,) = (await memory.page()).memories
    assert (None, {"health", "food"}, {"n": 3}) == (kept.expire_time, {*kept.tags}, dict(kept.metadata))


@pytest.mark.parametrize("text", ["I keep bees", "I do keep bees"])
async def test_an_import_outlives_what_the_host_said_for_a_time(memory, text):
    await memory.add("I keep bees", expires_days=1.0)
    await brought(memory, item(text, "a"))
    await judged(memory)
    memory.clock.now += 2 * DAY
    assert [text] == await live(memory)


async def test_what_a_sandbox_says_takes_nothing_from_an_import(memory):
    await add(Draft(content="My wife is called Sarah"), who(memory, Trust.SANDBOX), memory.ports, now=memory.clock())
    await add(Draft(content="red", key="color"), who(memory, Trust.SANDBOX), memory.ports, now=memory.clock())
    assert ["stored", "stored"] == await outcomes(
        memory, item("My wife is called Sarah", "a"), item("blue", "b", key="color")
    )
    await judged(memory)
    assert {("My wife is called Sarah", "imported"), ("blue", "imported")} == {
        (one.content, one.trust.value) for one in (await memory.page()).memories
    }


@pytest.mark.parametrize("text", ["My favorite color is red", "My favorite color is  blue!"])
async def test_what_was_confirmed_is_not_ended_by_the_job(memory, text):
    ((_, blue, _),) = await brought(memory, item("My favorite color is blue", "a", age=20))
    await brought(memory, item(text, "b", age=10))
    await memory.confirm(blue)
    await judged(memory)
    found = await memory.get(blue)
    assert (State.LIVE, True) == (found.state_at(memory.clock()), found.protected)


async def test_what_was_confirmed_is_not_taken_in_by_another_that_says_the_same(memory):
    await brought(memory, item("My favorite color is blue", "a", age=20))
    await judged(memory)
    ((_, other, _),) = await brought(memory, item("My favorite color is blue", "b", age=10, tags=("sure",)))
    await memory.confirm(other)
    await judged(memory)
    assert State.LIVE is (await memory.get(other)).state_at(memory.clock())


@pytest.mark.parametrize("ids", ["ab", "ef", "gh"])
async def test_what_has_no_time_keeps_its_order(memory, ids):
    items = [
        item(f"My favorite color is {color}", f"{ids}{n}", create_time=None) for n, color in enumerate(["red", "blue"])
    ]
    await brought(memory, *items)
    await judged(memory)
    assert ["My favorite color is blue"] == await live(memory)


@pytest.mark.parametrize("pair", [("Zurich", "Quito"), ("Hamburg", "Austin"), ("Leeds", "Nice"), ("Oslo", "York")])
async def test_two_that_wait_for_one_run_are_held_against_each_other_however_unlike(memory, pair):
    await brought(memory, *(item(f"I live in {city}", city, age=900 - n) for n, city in enumerate(pair)))
    await judged(memory)
    assert [f"I live in {pair[1]}"] == await live(memory)


async def test_what_was_so_once_and_is_so_again_holds(memory):
    colors = ("red", "blue", "red")
    items = [item(f"My favorite color is {color}", str(n), age=90 - n) for n, color in enumerate(colors)]
    await brought(memory, *items)
    await judged(memory)
    assert ["My favorite color is red"] == await live(memory)


async def test_of_two_imports_of_one_key_the_later_has_it(memory):
    items = [item("code in X", "a", age=9, key="repo"), item("code in Y", "b", age=3, key="repo")]
    assert ["stored", "stored"] == await outcomes(memory, *items)
    assert ["code in Y"] == await live(memory)
    assert ["kept"] == await outcomes(memory, item("code in Z", "c", age=30, key="repo"))


async def test_it_is_judged_by_when_it_holds_and_not_by_when_it_was_stored(memory):
    items = [
        item("My favorite color is blue", "a", age=700, event_time=NOW - 10 * DAY),
        item("My favorite color is green", "b", age=300),
    ]
    await brought(memory, *items)
    await judged(memory)
    assert ["My favorite color is blue"] == await live(memory)


async def test_a_repetition_is_known_again_also_once_the_other_one_has_changed(memory):
    known = (await memory.add("My dog is called Rex")).memory
    assert ["repeated"] == await outcomes(memory, item("My dog is called Rex", "a"))
    await memory.correct(known.id, "My dog is called Max")
    assert ["known"] == await outcomes(memory, item("My dog is called Rex", "a"))
    await judged(memory)
    assert ["My dog is called Max"] == await live(memory)


@pytest.mark.parametrize("order", [1, -1])
async def test_history_is_linked_both_ways(memory, order):
    old = item("I live in Oslo", "a", supersede_time=NOW - 2 * DAY, superseded_by="b")
    items = [old, item("I live in Rome", "b", age=2)][::order]
    ids = {one[1] for one in await brought(memory, *items)}
    await judged(memory)
    for memory_id in ids:
        assert ids == {one.id for one in (await memory.history(memory_id)).memories}
    with pytest.raises(InvalidArgument):
        item("I live in Oslo", "c", supersede_time=NOW - 20 * DAY)


async def test_no_one_waits_for_ever_behind_an_import_that_does_not_end(memory):
    judge = judging(memory)
    await brought(memory, item("My favorite color is red", "1", age=9), item("My favorite color is blue", "2", age=8))
    for n in range(40):
        memory.clock.now += timedelta(seconds=9)
        await brought(memory, item(f"I have seen number {n}", "1"), user_id="mallory", import_id=str(n))
        await judge.step()
    assert ["My favorite color is blue"] == await live(memory)


async def test_two_calls_at_once_store_an_item_once(memory):
    texts = ["I keep bees", "I keep wasps"]
    done = await asyncio.gather(*(outcomes(memory, item(text, "a")) for text in texts))
    assert [["kept"], ["stored"]] == sorted(done)
    assert 1 == len(await live(memory))


@pytest.mark.parametrize("demote", [False, True])
async def test_each_memory_names_five_rivals_at_the_most_and_says_why(folder, packaged_encoder, clock, demote):
    async with ports_over(ram_store(), encoder=packaged_encoder) as ports:
        rules = replace(ports.policy.rules, demote=demote)
        local = Local(with_ports(ports, policy=replace(ports.policy, rules=rules)), clock, user_id="alice")
        await brought(local, *(item(f"My favorite color is shade {n}", str(n), age=40 - n) for n in range(12)))
        await judged(local)
        for one in (await local.page(page_size=100)).memories:
            assert len(one.contested_with) <= MAX_CONTESTED
            assert one.judgement is not None or not one.contested_with


async def test_what_names_rivals_already_names_only_as_many_more_as_there_is_room_for(memory):
    told = [(await memory.add(f"I have seen number {n}")).memory for n in range(4)]
    by = replace(told[0], contested_with=("a", "b", "c", "d"))
    why = Judgement("test", "it may differ")
    assert 1 == len(with_room([(rival, why) for rival in told[1:]], by))
    assert [] == with_room([(rival, why) for rival in told[1:]], replace(by, contested_with=tuple("abcde")))


async def test_what_a_file_brings_does_not_swell_what_the_host_said(memory):
    host = (await memory.add("My favorite color is blue")).memory
    for n in range(3):
        await brought(
            memory, *(item(f"My favorite color is shade {k}", str(k), age=90) for k in range(n * 50, n * 50 + 50))
        )
    await judged(memory)
    assert ["My favorite color is blue"] == await live(memory)
    assert MOST_SUPERSEDED >= len((await memory.get(host.id)).supersedes)


async def test_what_a_user_had_before_all_of_it_was_erased_does_not_come_back(memory):
    await brought(memory, item("I keep bees", "1"))
    await forget_user(memory._caller, memory.ports, now=memory.clock(), dry_run=False)
    later = item("I sing", "2", create_time=memory.clock() + timedelta(hours=1))
    memory.clock.now += DAY
    has_ledger = memory.ports.store.files is not None  # a store in memory forgets that it was told to forget
    assert ["erased" if has_ledger else "stored", "stored"] == await outcomes(memory, item("I keep bees", "1"), later)


async def test_an_import_evicts_nothing(folder, packaged_encoder, clock):
    async with ports_over(ram_store(), encoder=packaged_encoder) as ports:
        policy = replace(ports.policy, max_entries=5)
        local = Local(with_ports(ports, policy=policy), clock, user_id="alice")
        await local.add("I keep bees")
        items = [item(f"I have seen number {n}", str(n)) for n in range(6)]
        assert ["stored"] * 4 + ["full"] * 2 == await outcomes(local, *items)
        assert ["known"] * 4 + ["full"] * 2 == await outcomes(local, *items)
        assert "I keep bees" in await live(local)
