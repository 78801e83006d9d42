"""What every store keeps of the promises in store/base.py."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from memoryd.errors import Contended, Unavailable
from memoryd.model.change import ChangeSet, RecordedRequest, Tombstone
from memoryd.model.entity import Entity
from memoryd.model.memory import Judgement, Kind, Source
from memoryd.model.query import Filter
from memoryd.model.receipt import AddReceipt
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.store.memories import Cursor
from tests.builders import ALICE, BOB, NOW, TEAM, HashEncoder, added, entry, memory, stored, visible_to
from tests.conformance.store_helpers import LATER, page, put

OWNER = Owner("default", ALICE)


async def test_another_scope_sees_nothing(store):
    await put(store, entry("a"))
    assert [] == await page(store, BOB)
    assert [] == await page(store, TEAM)
    other_agent = replace(visible_to(ALICE), agent_id="other")
    assert [] == await store.memories.page(other_agent, Filter(), now=LATER, limit=9)


async def test_a_user_in_a_chat_sees_both_scopes_and_no_third(store):
    mine, ours, theirs = entry("mine"), entry("ours", scope=TEAM), entry("theirs", scope=BOB)
    await put(store, mine, ours, theirs)
    assert [ours.memory, mine.memory] == await page(store, ALICE, chat_id="team")


async def test_every_field_comes_back_as_it_was_put(store):
    full = memory(
        "naïve 中文 🦆 \x01 'quoted' \"double\" \\ back",
        kind=Kind.PREFERENCE,
        subjects=("Sarah", "José"),
        tags=("a", 'b"c', "d\x1fe"),
        category="work",
        metadata={"k": "v", "κ": "ω\n"},
        key="the key",
        source=Source("Ann", "user", "t1", "s1", ("m1", "m2")),
        confidence=0.25,
        decay_rate=0.0,
        trust=Trust.SANDBOX,
        grant_id="g1",
        protected=True,
        event_time=NOW - timedelta(days=400, microseconds=7),
        reinforce_time=NOW,
        expire_time=LATER + timedelta(days=1),
        supersedes=("x", "y"),
        contested_with=("z",),
        judgement=Judgement("same_key", "because", "x"),
    )
    await put(store, entry(full))
    assert [full] == await page(store)
    assert [full] == await store.memories.find(visible_to(ALICE), full.id)
    back = await stored(store, full)
    assert (full, entry(full).terms, HashEncoder.fingerprint) == (back.memory, back.terms, back.fingerprint)
    assert np.array_equal(entry(full).vector, back.vector)


async def test_pages_run_newest_first_and_join(store):
    entries = [entry(f"m{n}", create_time=NOW + timedelta(seconds=n // 2)) for n in range(7)]  # pairs share a time
    await put(store, *entries)
    whole = sorted((e.memory for e in entries), key=lambda m: (m.create_time, m.id), reverse=True)
    joined, after = [], None
    while some := await page(store, limit=2, after=after):
        joined += some
        after = Cursor(some[-1].create_time, some[-1].id)
    assert whole == joined


async def test_a_filter_lets_through_what_its_definition_admits(store):
    memories = [
        memory("plain"),
        memory("about", subjects=("SARAH",), tags=("x", "y"), metadata={"k": "v"}, category="c"),
        memory("tagged", tags=("x",), metadata={"k": "w"}),
        memory("episode", kind=Kind.EPISODE),
        memory("expired", expire_time=NOW),
        memory("superseded", supersede_time=NOW),
        memory("deleted", delete_time=NOW),
        memory("old", event_time=NOW - timedelta(days=9)),
    ]
    await put(store, *map(entry, memories))
    for wanted in (
        Filter(),
        Filter(subjects=("sarah", "bob")),
        Filter(tags=("x",)),
        Filter(tags=("x", "y")),
        Filter(tags=("X",)),
        Filter(metadata={"k": "v"}),
        Filter(metadata={"k": "v", "l": "v"}),
        Filter(category="c"),
        Filter(kinds=frozenset({Kind.EPISODE})),
        Filter(include_expired=True),
        Filter(include_superseded=True),
        Filter(event_time_to=NOW),
        Filter(event_time_from=NOW, create_time_to=memories[3].create_time),
        Filter(create_time_from=memories[2].create_time),
        Filter(create_time_to=memories[2].create_time),
    ):
        admitted = [m for m in memories if wanted.admits(m, LATER)]
        assert admitted[::-1] == await page(store, wanted=wanted), wanted


async def test_a_prefix_finds_at_most_two_and_an_exact_id_alone(store):
    ids = ["aaaaaaaa" + "b" * 18, "aaaaaaaa" + "c" * 18, "aaaaaaaa" + "d" * 18]
    await put(store, *(entry(memory(id=i)) for i in ids))
    assert 2 == len(await store.memories.find(visible_to(ALICE), "aaaaaaaa"))
    assert [ids[1]] == [m.id for m in await store.memories.find(visible_to(ALICE), "aaaaaaaac")]
    assert [ids[2]] == [m.id for m in await store.memories.find(visible_to(ALICE), ids[2])]
    assert [] == await store.memories.find(visible_to(BOB), ids[0])
    assert [] == await store.memories.find(visible_to(ALICE), "aaaaaaa%")
    assert [] == await store.memories.find(visible_to(ALICE), "_aaaaaaa")


async def test_a_deleted_memory_is_found_only_when_asked_for(store):
    gone = memory(delete_time=NOW)
    await put(store, entry(gone))
    assert [] == await store.memories.find(visible_to(ALICE), gone.id)
    assert [gone] == await store.memories.find(visible_to(ALICE), gone.id[:9], deleted=True)


async def test_an_update_replaces_what_may_change_and_nothing_else(store):
    first = entry(tags=("a",))
    await put(store, first)
    changed = replace(first.memory, tags=("b",), confidence=0.5, supersede_time=NOW, superseded_by="x")
    await store.commits.write(ChangeSet(updates=(replace(first, memory=changed, terms="other words", vector=None),)))
    back = await stored(store, changed)
    assert (changed, "other words") == (back.memory, back.terms)
    assert np.array_equal(first.vector, back.vector)


async def test_an_update_of_what_is_not_there_changes_nothing(store):
    await store.commits.write(ChangeSet(updates=(entry(),)))
    assert [] == await page(store)


async def test_a_change_set_is_whole_or_not_at_all(store):
    known = entry("known")
    await put(store, known)
    with pytest.raises(Unavailable):
        await put(store, entry("new"), known)  # the second id is taken
    assert [known.memory] == await page(store)


async def test_one_bad_change_set_harms_no_other_of_its_transaction(store):
    known = entry("known")
    await put(store, known)
    good = [entry(f"good {n}") for n in range(5)]
    results = await asyncio.gather(
        *(put(store, e) for e in good[:3]),
        put(store, known),
        *(put(store, e) for e in good[3:]),
        return_exceptions=True,
    )
    assert [Unavailable] == [type(r) for r in results if isinstance(r, Exception)]
    assert {e.memory.id for e in [known, *good]} == {m.id for m in await page(store)}


async def test_commits_are_numbered_by_owner_and_announced_before_they_return(store):
    seen = []
    store.commits.memories.follow(seen.append)
    before = await store.commits.memories.head(OWNER)
    for n in range(3):
        made = entry(f"{n}")
        await put(store, made)
        assert (n + 1, made) == (len(seen), seen[n].change.inserts[0])
        now = await store.commits.memories.head(OWNER)
        assert (seen[n].commit_seq, made.memory.create_time) == (now.commit_seq, now.newest_create_time)
    mine = await store.commits.memories.head(OWNER)
    await put(store, entry("of bob", scope=BOB))
    await store.commits.write(ChangeSet(marks={"decay": NOW}))
    assert mine == await store.commits.memories.head(OWNER)
    await put(store, entry("4"))
    numbers = [before.commit_seq, *(applied.commit_seq for applied in seen if applied.change.owner == OWNER)]
    assert numbers == sorted(set(numbers))
    assert numbers[:-1] == [applied.after for applied in seen if applied.change.owner == OWNER]


async def test_a_head_keeps_the_newest_create_time_and_the_last_purge(store):
    kept, gone = entry("kept"), entry("gone", create_time=LATER)
    await put(store, kept, gone)
    first = await store.commits.memories.head(OWNER)
    await store.commits.write(ChangeSet(updates=(kept,)))
    second = await store.commits.memories.head(OWNER)
    assert (LATER, LATER, first.purge_seq) == (first.newest_create_time, second.newest_create_time, second.purge_seq)
    await store.commits.write(ChangeSet(purges=(gone.memory,)))
    third = await store.commits.memories.head(OWNER)
    assert (LATER, third.commit_seq) == (third.newest_create_time, third.purge_seq)
    noted = RecordedRequest(OWNER, "AddMemory", "r", "h", AddReceipt(), NOW)
    await store.commits.write(ChangeSet(request=noted))  # which changes nothing that is decided
    assert third == await store.commits.memories.head(OWNER)
    await put(store, entry("more"))
    last = await store.commits.memories.head(OWNER)
    assert (third.purge_seq, True) == (last.purge_seq, third.commit_seq < last.commit_seq)


async def test_of_commits_that_wait_together_only_those_decided_too_early_fail(store):
    seen = (await store.commits.memories.head(OWNER)).commit_seq
    changes = [ChangeSet(inserts=(entry(f"{n}", scope=replace(BOB, user_id=f"u{n}")),)) for n in range(20)]
    rivals = [ChangeSet(inserts=(entry(f"rival {n}"),), based_on=seen) for n in range(2)]
    results = await asyncio.gather(*map(store.commits.write, [*rivals, *changes]), return_exceptions=True)
    assert [Contended, None] == sorted((result and type(result) for result in results[:2]), key=bool, reverse=True)
    assert [None] * 20 == results[2:]


async def test_what_was_decided_before_the_last_commit_of_its_owner_is_refused(store):
    await put(store, entry("first"))
    seen = (await store.commits.memories.head(OWNER)).commit_seq
    await put(store, entry("of bob", scope=BOB))  # which changes nothing for alice
    await store.commits.write(ChangeSet(inserts=(entry("in time"),), based_on=seen))
    late = ChangeSet(inserts=(entry("too late"),), based_on=seen)
    with pytest.raises(Contended):
        await store.commits.write(late)
    of_bob = ChangeSet(inserts=(entry("bob too", scope=BOB),))
    with pytest.raises(Contended):
        await store.commits.write(of_bob, late)
    assert ["in time", "first"] == [m.content for m in await page(store)]
    assert ["of bob"] == [m.content for m in await page(store, BOB)]
    now = (await store.commits.memories.head(OWNER)).commit_seq
    with pytest.raises(Contended):  # the second one was not decided on the first
        await store.commits.write(*(ChangeSet(inserts=(entry(f"twin {n}"),), based_on=now) for n in range(2)))
    rivals = [ChangeSet(inserts=(entry(f"rival {n}"),), based_on=now) for n in range(8)]
    results = await asyncio.gather(*map(store.commits.write, rivals), return_exceptions=True)
    assert [Contended] * 7 == [type(result) for result in results if result is not None]
    assert 3 == len(await page(store))


async def test_a_request_id_that_is_taken_is_a_conflict(store):
    noted = RecordedRequest(OWNER, "AddMemory", "once", "hash", AddReceipt(), NOW)
    await store.commits.write(ChangeSet(inserts=(entry("one"),), request=noted))
    with pytest.raises(Contended):
        await store.commits.write(ChangeSet(inserts=(entry("two"),), request=replace(noted, payload_hash="other")))
    assert (noted, ["one"]) == (
        await store.commits.recorded(OWNER, "AddMemory", "once"), [m.content for m in await page(store)],
    )  # fmt: skip


async def test_the_changes_since_a_commit_are_those_of_the_owner_and_end_with_a_purge(store):
    start = (await store.commits.memories.head(OWNER)).commit_seq
    kept, gone = entry("kept"), entry("gone for good")
    await put(store, kept, gone)
    middle = (await store.commits.memories.head(OWNER)).commit_seq
    await put(store, entry("of bob", scope=BOB))
    stone = Tombstone(OWNER, b"x" * 32)
    named = Entity("e1", OWNER, NOW, Trust.HOST, name="Zoe")
    await store.commits.write(ChangeSet(tombstones=(stone,), entities=(named,)))
    both = await store.commits.memories.changes(OWNER, start)
    told = {one.memory.id for one in both.change.inserts}
    assert ({kept.memory.id, gone.memory.id}, (stone,), (named,)) == (
        told,
        both.change.tombstones,
        both.change.entities,
    )
    second = await store.commits.memories.changes(OWNER, middle)
    assert ((), (stone,), (named,)) == (second.change.inserts, second.change.tombstones, second.change.entities)
    assert (start, middle) == (both.after, second.after)
    assert second.commit_seq == both.commit_seq == (await store.commits.memories.head(OWNER)).commit_seq
    assert ChangeSet() == (await store.commits.memories.changes(OWNER, second.commit_seq)).change

    await store.commits.write(ChangeSet(purges=(gone.memory,), forget_entities=(named,)))
    purged = (await store.commits.memories.head(OWNER)).commit_seq
    assert (None, None) == (
        await store.commits.memories.changes(OWNER, start),
        await store.commits.memories.changes(OWNER, purged - 1),
    )
    await put(store, entry("after the purge"))
    await store.commits.write(ChangeSet(forget_entities=(named,)))
    assert await store.commits.memories.changes(OWNER, purged) is None
    purged = (await store.commits.memories.head(OWNER)).commit_seq
    await put(store, entry("after that"))
    later = await store.commits.memories.changes(OWNER, purged)
    assert ["after that"] == [made.memory.content for made in later.change.inserts]
    assert await store.commits.memories.changes(OWNER, start) is None


async def test_a_request_is_remembered_with_its_effect(store):
    made = entry()
    request = RecordedRequest(made.memory.owner, "AddMemory", "r\x1f'1", "hash", added(made.memory, "x"), NOW)
    await store.commits.write(ChangeSet(inserts=(made,), request=request))
    assert request == await store.commits.recorded(made.memory.owner, "AddMemory", "r\x1f'1")
    assert await store.commits.recorded(made.memory.owner, "DeleteMemory", "r\x1f'1") is None
    assert await store.commits.recorded(Owner("default", BOB), "AddMemory", "r\x1f'1") is None


async def test_a_change_set_is_of_one_owner_and_those_of_several_are_whole_or_nothing(store):
    seen = []
    store.commits.memories.follow(lambda applied: seen.append(applied.change.owners))
    mine, ours = entry("mine"), entry("ours", scope=TEAM)
    mixed = ChangeSet(inserts=(mine, ours), marks={"purge": NOW})
    for wrong in (mixed, replace(mixed, marks={}), ChangeSet(inserts=(mine,), marks={"purge": NOW})):
        with pytest.raises(ValueError, match="by_owner"):
            await store.commits.write(wrong)
    assert [] == seen == await page(store, ALICE, chat_id="team")

    await store.commits.write(*mixed.by_owner())
    assert [frozenset({mine.memory.owner}), frozenset({ours.memory.owner}), frozenset()] == seen
    assert "purge" in await store.work.marks()

    other = entry("other")
    with pytest.raises(Unavailable):  # ours is there already
        await store.commits.write(*ChangeSet(inserts=(other, ours)).by_owner())
    assert [ours.memory, mine.memory] == await page(store, ALICE, chat_id="team")
