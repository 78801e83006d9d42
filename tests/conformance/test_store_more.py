"""What every store promises of change sets that purge, of counts, grants and snapshots."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from memoryd.errors import Contended, Unavailable
from memoryd.model.change import ChangeSet, ConversationChange, RecordedRequest
from memoryd.model.conversation import Thread
from memoryd.model.grant import GrantUsage, Permission, Quota, TokenKey
from memoryd.model.memory import Kind
from memoryd.model.query import Filter
from memoryd.model.receipt import AddReceipt
from memoryd.model.reports import GcReport
from memoryd.model.scope import Owner, Scope
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest
from memoryd.store.memories import Graces, MemorySelector, Order, place_in_time
from tests.builders import ALICE, BOB, NOW, TEAM, HashEncoder, added, entry, memory, visible_to
from tests.conformance.store_helpers import LATER, grant, page, put
from tests.index_helpers import read_whole


async def test_a_purge_removes_the_memory_and_the_requests_that_name_it(store):
    gone, kept = entry("gone"), entry("kept")
    for e, name in ((gone, "r1"), (kept, "r2")):
        request = RecordedRequest(e.memory.owner, "A", name, "h", added(e.memory), NOW)
        await store.commits.write(ChangeSet(inserts=(e,), request=request))
    await store.commits.write(ChangeSet(purges=(gone.memory,)))
    assert [kept.memory] == await page(store)
    assert [] == await store.memories.find(visible_to(ALICE), gone.memory.id, deleted=True)
    assert await store.commits.recorded(gone.memory.owner, "A", "r1") is None
    assert await store.commits.recorded(gone.memory.owner, "A", "r2") is not None


async def test_stats_count_by_kind_state_and_scope(store):
    await put(
        store,
        entry("ä"),
        entry("bb", expire_time=NOW),
        entry("c", supersede_time=NOW),
        entry("d", delete_time=NOW),
        entry("e", kind=Kind.EVENT, scope=TEAM),
        entry("f", scope=BOB),
    )
    stats = await store.memories.stats(visible_to(ALICE, chat_id="team"), LATER)
    assert [
        ("event", "live", True, 1),
        ("fact", "deleted", False, 1),
        ("fact", "expired", False, 1),
        ("fact", "live", False, 1),
        ("fact", "superseded", False, 1),
    ] == [(c.kind.value, c.state.value, c.shared, c.count) for c in stats.counts]
    assert 2 + 2 + 1 + 1 + 1 == stats.content_bytes


async def test_duplicates_and_keys_are_looked_up_among_the_live(store):
    live = memory("My Colour is  blue.", key="color")
    await put(
        store,
        *map(
            entry,
            (live, memory("my colour is blue", delete_time=NOW), memory("x", key="color", supersede_time=NOW)),
        ),
    )
    owner = live.owner
    assert [live] == await store.memories.alike(owner, LATER, digest=text_digest("my colour is blue"))
    assert [live] == await store.memories.alike(owner, LATER, key="color")
    assert [] == await store.memories.alike(Owner("default", BOB), LATER, digest=text_digest("my colour is blue"))


async def test_the_nearest_are_those_of_the_scope_and_the_filter(store):
    encoder = HashEncoder()
    texts = ["red apple", "green apple pie", "blue car", "apple"]
    entries = [entry(text, tags=("t",) if "car" not in text else ()) for text in texts]
    await put(store, *entries, entry("apple", scope=BOB))
    query = encoder.encode(["apple"], query=True)[0]
    found = await store.memories.nearest(
        visible_to(ALICE),
        query,
        encoder.fingerprint,
        Filter(tags=("t",)),
        now=LATER,
        limit=2,
    )
    assert ["apple", "red apple"] == [m.content for m, _ in found]
    assert np.allclose([1.0, float(entries[0].vector @ query)], [score for _, score in found], atol=1e-6)
    assert [] == await store.memories.nearest(visible_to(ALICE), query, "another", Filter(), now=LATER, limit=2)


async def test_a_snapshot_holds_all_but_the_deleted_oldest_first(store):
    entries = [entry(f"m{n}") for n in range(5)]
    await put(store, *entries, entry(delete_time=NOW), entry(scope=BOB))
    await put(store, entry("last"))
    seq = (await store.commits.memories.head(Owner("default", ALICE))).commit_seq

    def build(snapshot):
        return snapshot.commit_seq, snapshot.count, read_whole(snapshot)

    at, count, found = await asyncio.to_thread(store.commits.memories.snapshot, Owner("default", ALICE), build)
    assert (seq, 6, ["m0", "m1", "m2", "m3", "m4", "last"]) == (at, count, [memory.content for memory, _ in found])
    assert np.array_equal(entries[0].vector, found[0][1])


async def test_collectable_is_what_is_past_its_grace(store):
    due = [
        memory("deleted", delete_time=NOW, purge_time=NOW),
        memory("superseded", supersede_time=NOW - timedelta(days=9)),
        memory("expired", expire_time=NOW - timedelta(days=9)),
    ]
    kept = [
        memory("live"),
        memory("deleted", delete_time=NOW, purge_time=LATER),
        memory("superseded", supersede_time=NOW),
        memory("expired", expire_time=NOW),
    ]
    request = RecordedRequest(Owner("default", ALICE), "A", "r", "h", AddReceipt(), NOW - timedelta(days=9))
    await store.commits.write(ChangeSet(inserts=tuple(map(entry, due + kept)), request=request))
    week = NOW - timedelta(days=7)
    report, found = await store.memories.collectable(Graces(week, week, NOW, week), limit=9)
    assert (GcReport(1, 1, 1, 1), {m.id for m in due}) == (report, {m.id for m in found})
    for_ever, _ = await store.memories.collectable(Graces(week, None, NOW, week), limit=9)
    assert 0 == for_ever.superseded_count
    assert 2 == len((await store.memories.collectable(Graces(week, week, NOW, week), limit=2))[1])
    await store.commits.write(ChangeSet(forget_requests_before=week))
    assert await store.commits.recorded(Owner("default", ALICE), "A", "r") is None


async def test_recalls_are_counted_and_survive_an_update(store):
    made = entry()
    await put(store, made)
    await store.memories.note_recalls({made.memory.owner: {made.memory.id: (NOW, 2, None)}})
    await store.memories.note_recalls({made.memory.owner: {made.memory.id: (LATER, 1, LATER)}})
    await store.commits.write(ChangeSet(updates=(replace(made, memory=replace(made.memory, tags=("t",))),)))
    found = (await page(store))[0]
    assert (("t",), 3, LATER) == (found.tags, found.recall_count, found.recall_time)


async def test_grants_and_keys_come_back_as_they_were_put(store):
    first = grant(
        chat_ids=("c1", "c,2 ü"),
        permissions=frozenset({Permission.ADD, Permission.GET}),
        quota=Quota(calls_per_second=2.5, writes_per_day=7, stored_memories=8, stored_bytes=9, connections=3),
        label="for tests",
        expire_time=LATER,
    )
    second = grant("g2", user_id="", chat_ids=("c1",), create_time=LATER)
    keys = tuple(TokenKey(f"k{n}", bytes([n]) * 32, NOW + timedelta(seconds=n)) for n in range(3))
    await store.commits.write(ChangeSet(grants=(second, first), token_keys=keys[:2]))
    assert [first, second] == await store.grants.all()
    assert list(keys[:2]) == await store.grants.token_keys()
    await store.commits.write(
        ChangeSet(grants=(replace(first, revoke_time=LATER),), token_keys=keys[2:], drop_keys=("k0",))
    )
    assert [replace(first, revoke_time=LATER), second] == await store.grants.all()
    assert list(keys[1:]) == await store.grants.token_keys()
    await put(store, entry("a"))
    assert list(keys[1:]) == await store.grants.token_keys()


async def test_what_came_through_a_grant_is_counted_and_found_together(store):
    made = [
        entry(memory(f"statement {n}", scope=ALICE if n % 2 else BOB, grant_id="g1", trust=Trust.SANDBOX))
        for n in range(5)
    ]
    gone = replace(made[4], memory=replace(made[4].memory, delete_time=LATER, purge_time=LATER))
    await put(store, *made, entry(memory("of another", grant_id="g2")), entry("of none"))
    await store.commits.write(ChangeSet(updates=(gone,)))
    size = len("statement 0")
    day = made[2].memory.create_time.date()
    assert GrantUsage(5, 5, 5 * size) == await store.grants.usage("g1", day)
    assert GrantUsage(0, 5, 5 * size) == await store.grants.usage("g1", day + timedelta(days=1))
    assert GrantUsage(1, 1, len("of another")) == await store.grants.usage("g2", day)
    assert GrantUsage() == await store.grants.usage("g3", day)
    newest = [made[n].memory for n in (3, 2, 1, 0)]
    of_grant = MemorySelector(grant_id="g1", is_deleted=False)
    assert newest[:3] == await store.memories.scan(of_grant, limit=3, order=Order.NEWEST)
    after = place_in_time(newest[1].create_time, newest[1].id)
    assert newest[2:] == await store.memories.scan(of_grant, limit=9, after=after, order=Order.NEWEST)
    assert [gone.memory] == await store.memories.scan(MemorySelector(grant_id="g1"), limit=1, order=Order.NEWEST)


async def test_an_owner_s_size_says_how_much_of_it_is_new(store):
    for n, scope in enumerate([ALICE, ALICE, BOB]):
        await put(store, entry(memory(f"statement {n}", scope=scope, create_time=NOW + n * timedelta(hours=1))))
    counts = {
        since: {size.user_id: (size.memory_count, size.new_memory_count) for size in found.owners}
        for since in (None, NOW + timedelta(hours=1), LATER)
        if (found := await store.owners.sizes(limit=9, new_since=since))
    }
    assert {"alice": (2, 0), "bob": (1, 0)} == counts[None] == counts[LATER]
    assert {"alice": (2, 1), "bob": (1, 1)} == counts[NOW + timedelta(hours=1)]


async def test_usage_of_many_owners_in_one_transaction_is_that_of_each(store):
    owners = [Scope(f"u{n}") for n in range(12)]
    made = [entry(memory("text", scope=scope, grant_id=f"g{n % 5}")) for n, scope in enumerate(owners)]
    day = made[0].memory.create_time.date()
    for entries in (
        made[:6],
        [entry(memory("more", scope=one.memory.scope, grant_id=one.memory.grant_id)) for one in made],
    ):
        await store.commits.write(*(ChangeSet(inserts=(one,)) for one in entries))
    assert [5, 4, 3, 3, 3] == [(await store.grants.usage(f"g{n}", day)).stored_memories for n in range(5)]
    await store.commits.write(*(ChangeSet(purges=(one.memory,)) for one in made[:7]))  # one of them is not stored
    assert [3, 3, 2, 2, 2] == [(await store.grants.usage(f"g{n}", day)).stored_memories for n in range(5)]
    assert [12, 12, 8, 8, 8] == [(await store.grants.usage(f"g{n}", day)).stored_bytes for n in range(5)]


async def test_usage_follows_what_grows_is_purged_and_is_not_written(store):
    day = NOW.date()
    first, second = (entry(memory(text, create_time=NOW, grant_id="g1")) for text in ("one", "three"))
    await store.commits.write(ChangeSet(inserts=(first,)), ChangeSet(inserts=(entry(memory("of Bob", scope=BOB)),)))
    grown = replace(first, memory=replace(first.memory, tags=("ab",)))
    await store.commits.write(ChangeSet(inserts=(second,), updates=(grown,)))
    assert GrantUsage(2, 2, 10) == await store.grants.usage("g1", day)
    again = replace(grown, memory=replace(grown.memory, tags=("abcd",)))
    await store.commits.write(ChangeSet(updates=(again,)), ChangeSet(updates=(grown,)))
    await store.commits.write(ChangeSet(updates=(again, grown)))
    assert GrantUsage(2, 2, 10) == await store.grants.usage("g1", day)
    with pytest.raises(Contended):
        await store.commits.write(ChangeSet(inserts=(entry(memory("late", grant_id="g1")),), based_on=0))
    await store.commits.write(ChangeSet(purges=(second.memory,)))
    await store.commits.write(ChangeSet(purges=(second.memory,), updates=(second,)))  # it is gone
    assert GrantUsage(1, 1, 5) == await store.grants.usage("g1", day)
    await store.commits.write(ChangeSet(purges=(grown.memory,)))
    assert GrantUsage() == await store.grants.usage("g1", day)
    await store.commits.write(ChangeSet(inserts=(first,)))
    assert GrantUsage(1, 1, 3) == await store.grants.usage("g1", day)


async def test_a_closed_store_refuses(store):
    await store.close()
    with pytest.raises(Unavailable):
        await put(store, entry())


async def test_entries_come_in_the_order_of_their_ids_each_once_and_of_the_owner_alone(store):
    known = [entry(f"memory {n}") for n in range(20)]
    other = entry("of bob", scope=BOB)
    await put(store, *known, other)
    ids = [one.memory.id for one in known[::3][::-1]] + [known[1].memory.id]
    found = await store.memories.entries(known[0].memory.owner, [*ids, other.memory.id, ids[0], "a" * 26])
    assert ids == [one.memory.id for one in found]


async def test_of_threads_written_together_only_that_of_another_revision_is_refused(store):
    def change(name: str, revision: int) -> ChangeSet:
        thread = Thread(
            id=name, agent_id="default", scope=ALICE, create_time=NOW, update_time=NOW, turn_count=revision,
            revision=revision,
        )  # fmt: skip
        return ChangeSet(conversation=ConversationChange(Owner("default", ALICE), threads=(thread,)))

    names = [f"t{n}" for n in range(6)]
    await store.commits.write(*(change(name, 1) for name in names))
    for late, revision in (("t1", 1), ("t2", 2), ("absent", 2)):
        rest = [name for name in names if name != late]
        before = {name: (await store.conversations.thread(Owner("default", ALICE), name)).revision for name in rest}
        results = await asyncio.gather(
            *(
                store.commits.write(change(name, revision if name == late else before[name] + 1))
                for name in (rest[0], late, *rest[1:])
            ),
            return_exceptions=True,
        )
        assert [type(None), Contended, *[type(None)] * (len(rest) - 1)] == [type(result) for result in results]
        assert before == {
            name: (await store.conversations.thread(Owner("default", ALICE), name)).revision - 1 for name in rest
        }
    assert None is await store.conversations.thread(Owner("default", ALICE), "absent")
    assert [3, 3, 4] == [
        (await store.conversations.thread(Owner("default", ALICE), name)).turn_count for name in ("t1", "t2", "t3")
    ]


@pytest.mark.parametrize("count", [1, 20])
async def test_of_two_updates_of_one_memory_in_a_change_the_last_counts(store, count):
    made = [entry(f"statement {n}") for n in range(count)]
    await put(store, *made)
    first, last = (tuple(replace(one, memory=replace(one.memory, tags=(tag,))) for one in made) for tag in "ab")
    await store.commits.write(ChangeSet(updates=(*first, *last)))
    assert {("b",)} == {memory.tags for memory in await page(store)}
