"""What other systems have kept comes in with its ids and times, once, less trusted than the host, and judged later."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from memoryd.domain.forgetting.everything import forget_user
from memoryd.domain.transfer.import_memories import import_memories
from memoryd.domain.writing.add import add
from memoryd.domain.writing.settle import MOST_SUPERSEDED
from memoryd.embedding.packaged import builtin_encoder
from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.learning import imports
from memoryd.learning.imports import ImportJudge
from memoryd.model.caller import Caller
from memoryd.model.imported import ImportDraft, imported_id
from memoryd.model.limits import MAX_CONTESTED
from memoryd.model.memory import Draft, State
from memoryd.model.query import Filter
from memoryd.model.scope import Owner, Scope
from memoryd.model.trust import Trust
from tests.builders import NOW, Local, open_duckdb, ports_over, ram_store, with_ports

DAY = timedelta(days=1)
PASSWORD = "my password is hunter2-Zq81"  # noqa: S105  a made-up one


@pytest.fixture(scope="module")
def encoder():
    return builtin_encoder()


@pytest.fixture(params=["ram", "duckdb"])
async def memory(request, folder, encoder, clock):
    store = ram_store() if request.param == "ram" else open_duckdb(folder, ledger=folder / "ledger")
    async with ports_over(store, encoder=encoder) as ports:
        yield Local(ports, clock, user_id="alice")


def item(content: str, external_id: str, *, age: float = 10.0, **more) -> ImportDraft:
    names = ("create_time", "supersede_time", "superseded_by")
    own = {name: more.pop(name) for name in names if name in more}
    own.setdefault("create_time", NOW - age * DAY)
    return ImportDraft(draft=Draft(content=content, **more), external_id=external_id, **own)


async def brought(memory: Local, *items: ImportDraft, import_id: str = "old", dry_run: bool = False, **who):
    local = Local(memory.ports, memory.clock, **(who or {"user_id": "alice"}))
    done = await import_memories(items, import_id, local._caller, memory.ports, now=memory.clock(), dry_run=dry_run)
    return [(result.outcome.value, result.id, result.rejection) for result in done.results]


async def outcomes(memory: Local, *items: ImportDraft, **more) -> list[str]:
    return [rejection or outcome for outcome, _, rejection in await brought(memory, *items, **more)]


def judging(memory: Local) -> ImportJudge:
    return ImportJudge(memory.ports, memory.clock, pytest.fail)


async def judged(memory: Local) -> None:
    memory.clock.now += imports.QUIET
    await judging(memory).step()


async def live(memory: Local, **more) -> list[str]:
    return sorted(one.content for one in (await memory.page(page_size=1000, filter=Filter(**more))).memories)


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


# --- what is judged afterwards loses nothing, and ends nothing that it must not ---


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


def who(memory: Local, trust: Trust) -> Caller:
    return replace(memory._caller, trust=trust, grant_id="g" if trust.is_sandbox else "")


@pytest.mark.parametrize("text", ["My favorite color is red", "My favorite color is  blue!"])
async def test_what_was_confirmed_is_not_ended_by_the_job(memory, text):
    ((_, blue, _),) = await brought(memory, item("My favorite color is blue", "a", age=20))
    await brought(memory, item(text, "b", age=10))
    await memory.confirm(blue)
    await judged(memory)
    found = await memory.get(blue)
    assert (State.LIVE, True) == (found.state_at(memory.clock()), found.protected)


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
async def test_each_memory_names_five_rivals_at_the_most_and_says_why(folder, encoder, clock, demote):
    async with ports_over(ram_store(), encoder=encoder) as ports:
        rules = replace(ports.policy.rules, demote=demote)
        local = Local(with_ports(ports, policy=replace(ports.policy, rules=rules)), clock, user_id="alice")
        await brought(local, *(item(f"My favorite color is shade {n}", str(n), age=40 - n) for n in range(12)))
        await judged(local)
        for one in (await local.page(page_size=100)).memories:
            assert len(one.contested_with) <= MAX_CONTESTED
            assert one.judgement is not None or not one.contested_with


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
    if memory.ports.store.files is None:
        pytest.skip("a store in memory has no ledger")
    await brought(memory, item("I keep bees", "1"))
    await forget_user(memory._caller, memory.ports, now=memory.clock(), dry_run=False)
    later = item("I sing", "2", create_time=memory.clock() + timedelta(hours=1))
    memory.clock.now += DAY
    assert ["erased", "stored"] == await outcomes(memory, item("I keep bees", "1"), later)


async def test_an_import_evicts_nothing(folder, encoder, clock):
    async with ports_over(ram_store(), encoder=encoder) as ports:
        policy = replace(ports.policy, max_entries=5)
        local = Local(with_ports(ports, policy=policy), clock, user_id="alice")
        await local.add("I keep bees")
        items = [item(f"I have seen number {n}", str(n)) for n in range(6)]
        assert ["stored"] * 4 + ["full"] * 2 == await outcomes(local, *items)
        assert ["known"] * 4 + ["full"] * 2 == await outcomes(local, *items)
        assert "I keep bees" in await live(local)
