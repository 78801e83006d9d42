"""What every store keeps of the promises in store/base.py."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from memoryd.errors import Unavailable
from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.grant import PRESETS, Grant, GrantUsage, Permission, Quota, TokenKey
from memoryd.model.memory import Judgement, Kind, Outcome, Source
from memoryd.model.query import Filter
from memoryd.model.results import GcReport
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest
from memoryd.store.base import Cursor, Graces
from tests.builders import ALICE, BOB, NOW, TEAM, HashEncoder, entry, memory, open_duckdb, ram_store, run, visible_to


@pytest.fixture(params=["ram", "duckdb"])
def with_store(request, folder):
    """Runs a test's coroutine function with an open store, and closes it."""

    def runner(test):
        async def work():
            store = ram_store() if request.param == "ram" else open_duckdb(folder)
            try:
                await test(store)
            finally:
                await store.close()

        run(work())

    return runner


LATER = NOW + timedelta(days=1)


async def put(store, *entries):
    return await store.commit(ChangeSet(inserts=entries))


async def page(store, scope=ALICE, wanted=None, *, limit=9, after=None, chat_id=None):
    return await store.page(visible_to(scope, chat_id=chat_id), wanted or Filter(), now=LATER, limit=limit, after=after)


def test_another_scope_sees_nothing(with_store):
    async def rule(store):
        await put(store, entry("a"))
        assert [] == await page(store, BOB)
        assert [] == await page(store, TEAM)
        other_agent = replace(visible_to(ALICE), agent_id="other")
        assert [] == await store.page(other_agent, Filter(), now=LATER, limit=9)

    with_store(rule)


def test_a_user_in_a_chat_sees_both_scopes_and_no_third(with_store):
    async def rule(store):
        mine, ours, theirs = entry("mine"), entry("ours", scope=TEAM), entry("theirs", scope=BOB)
        await put(store, mine, ours, theirs)
        assert [ours.memory, mine.memory] == await page(store, ALICE, chat_id="team")

    with_store(rule)


def test_every_field_comes_back_as_it_was_put(with_store):
    async def rule(store):
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
        assert [full] == await store.find(visible_to(ALICE), full.id)
        back = await store.entry(full)
        assert (full, entry(full).terms, HashEncoder.fingerprint) == (back.memory, back.terms, back.fingerprint)
        assert np.array_equal(entry(full).vector, back.vector)

    with_store(rule)


def test_pages_run_newest_first_and_join(with_store):
    async def rule(store):
        entries = [entry(f"m{n}", create_time=NOW + timedelta(seconds=n // 2)) for n in range(7)]  # pairs share a time
        await put(store, *entries)
        whole = sorted((e.memory for e in entries), key=lambda m: (m.create_time, m.id), reverse=True)
        joined, after = [], None
        while some := await page(store, limit=2, after=after):
            joined += some
            after = Cursor(some[-1].create_time, some[-1].id)
        assert whole == joined

    with_store(rule)


def test_a_filter_lets_through_what_its_definition_admits(with_store):
    async def rule(store):
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

    with_store(rule)


def test_a_prefix_finds_at_most_two_and_an_exact_id_alone(with_store):
    async def rule(store):
        ids = ["aaaaaaaa" + "b" * 18, "aaaaaaaa" + "c" * 18, "aaaaaaaa" + "d" * 18]
        await put(store, *(entry(memory(id=i)) for i in ids))
        assert 2 == len(await store.find(visible_to(ALICE), "aaaaaaaa"))
        assert [ids[1]] == [m.id for m in await store.find(visible_to(ALICE), "aaaaaaaac")]
        assert [ids[2]] == [m.id for m in await store.find(visible_to(ALICE), ids[2])]
        assert [] == await store.find(visible_to(BOB), ids[0])
        assert [] == await store.find(visible_to(ALICE), "aaaaaaa%")
        assert [] == await store.find(visible_to(ALICE), "_aaaaaaa")

    with_store(rule)


def test_a_deleted_memory_is_found_only_when_asked_for(with_store):
    async def rule(store):
        gone = memory(delete_time=NOW)
        await put(store, entry(gone))
        assert [] == await store.find(visible_to(ALICE), gone.id)
        assert [gone] == await store.find(visible_to(ALICE), gone.id[:9], deleted=True)

    with_store(rule)


def test_an_update_replaces_what_may_change_and_nothing_else(with_store):
    async def rule(store):
        first = entry(tags=("a",))
        await put(store, first)
        changed = replace(first.memory, tags=("b",), confidence=0.5, supersede_time=NOW, superseded_by="x")
        await store.commit(ChangeSet(updates=(replace(first, memory=changed, terms="other words", vector=None),)))
        back = await store.entry(changed)
        assert (changed, "other words") == (back.memory, back.terms)
        assert np.array_equal(first.vector, back.vector)

    with_store(rule)


def test_an_update_of_what_is_not_there_changes_nothing(with_store):
    async def rule(store):
        await store.commit(ChangeSet(updates=(entry(),)))
        assert [] == await page(store)

    with_store(rule)


def test_a_change_set_is_whole_or_not_at_all(with_store):
    async def rule(store):
        known = entry("known")
        await put(store, known)
        with pytest.raises(Unavailable):
            await put(store, entry("new"), known)  # the second id is taken
        assert [known.memory] == await page(store)

    with_store(rule)


def test_one_bad_change_set_harms_no_other_of_its_transaction(with_store):
    async def rule(store):
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

    with_store(rule)


def test_commits_are_numbered_upwards_and_announced_before_they_return(with_store):
    async def rule(store):
        seen = []
        store.on_commit(lambda applied: seen.append(applied.commit_seq))
        numbers = [await put(store, entry(f"{n}")) for n in range(3)]
        assert numbers == sorted(set(numbers)) == seen

    with_store(rule)


def test_a_request_is_remembered_with_its_effect(with_store):
    async def rule(store):
        made = entry()
        request = RecordedRequest(
            made.memory.owner, "AddMemory", "r\x1f'1", "hash", ((made.memory.id, Outcome.INSERTED, ("x",)),), NOW
        )
        await store.commit(ChangeSet(inserts=(made,), request=request))
        assert request == await store.recorded(made.memory.owner, "AddMemory", "r\x1f'1")
        assert await store.recorded(made.memory.owner, "DeleteMemory", "r\x1f'1") is None
        assert await store.recorded(Owner("default", BOB), "AddMemory", "r\x1f'1") is None

    with_store(rule)


def test_a_purge_removes_the_memory_and_the_requests_that_name_it(with_store):
    async def rule(store):
        gone, kept = entry("gone"), entry("kept")
        for e, name in ((gone, "r1"), (kept, "r2")):
            request = RecordedRequest(e.memory.owner, "A", name, "h", ((e.memory.id, Outcome.INSERTED, ()),), NOW)
            await store.commit(ChangeSet(inserts=(e,), request=request))
        await store.commit(ChangeSet(purges=(gone.memory,)))
        assert [kept.memory] == await page(store)
        assert [] == await store.find(visible_to(ALICE), gone.memory.id, deleted=True)
        assert await store.recorded(gone.memory.owner, "A", "r1") is None
        assert await store.recorded(gone.memory.owner, "A", "r2") is not None

    with_store(rule)


def test_stats_count_by_kind_state_and_scope(with_store):
    async def rule(store):
        await put(
            store,
            entry("ä"),
            entry("bb", expire_time=NOW),
            entry("c", supersede_time=NOW),
            entry("d", delete_time=NOW),
            entry("e", kind=Kind.EVENT, scope=TEAM),
            entry("f", scope=BOB),
        )
        stats = await store.stats(visible_to(ALICE, chat_id="team"), LATER)
        assert [
            ("event", "live", True, 1),
            ("fact", "deleted", False, 1),
            ("fact", "expired", False, 1),
            ("fact", "live", False, 1),
            ("fact", "superseded", False, 1),
        ] == [(c.kind.value, c.state.value, c.shared, c.count) for c in stats.counts]
        assert 2 + 2 + 1 + 1 + 1 == stats.content_bytes

    with_store(rule)


def test_duplicates_and_keys_are_looked_up_among_the_live(with_store):
    async def rule(store):
        live = memory("My Colour is  blue.", key="color")
        await put(
            store,
            *map(
                entry,
                (live, memory("my colour is blue", delete_time=NOW), memory("x", key="color", supersede_time=NOW)),
            ),
        )
        owner = live.owner
        assert [live] == await store.same_text(owner, text_digest("my colour is blue"), LATER)
        assert [live] == await store.of_key(owner, "color", LATER)
        assert [] == await store.same_text(Owner("default", BOB), text_digest("my colour is blue"), LATER)

    with_store(rule)


def test_the_nearest_are_those_of_the_scope_and_the_filter(with_store):
    async def rule(store):
        encoder = HashEncoder()
        texts = ["red apple", "green apple pie", "blue car", "apple"]
        entries = [entry(text, tags=("t",) if "car" not in text else ()) for text in texts]
        await put(store, *entries, entry("apple", scope=BOB))
        query = encoder.encode(["apple"], query=True)[0]
        found = await store.nearest(
            visible_to(ALICE), query, encoder.fingerprint, Filter(tags=("t",)), now=LATER, limit=2
        )
        assert ["apple", "red apple"] == [m.content for m, _ in found]
        assert np.allclose([1.0, float(entries[0].vector @ query)], [score for _, score in found], atol=1e-6)
        assert [] == await store.nearest(visible_to(ALICE), query, "another", Filter(), now=LATER, limit=2)

    with_store(rule)


def test_a_snapshot_holds_all_but_the_deleted_oldest_first(with_store):
    async def rule(store):
        entries = [entry(f"m{n}") for n in range(5)]
        await put(store, *entries, entry(delete_time=NOW), entry(scope=BOB))
        seq = await put(store, entry("last"))

        def build(snapshot):
            return snapshot.commit_seq, snapshot.count, [e for chunk in snapshot.chunks for e in chunk]

        at, count, found = await asyncio.to_thread(store.read_owner, Owner("default", ALICE), build)
        assert (seq, 6, ["m0", "m1", "m2", "m3", "m4", "last"]) == (at, count, [e.memory.content for e in found])
        assert np.array_equal(entries[0].vector, found[0].vector)

    with_store(rule)


def test_collectable_is_what_is_past_its_grace(with_store):
    async def rule(store):
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
        request = RecordedRequest(Owner("default", ALICE), "A", "r", "h", (), NOW - timedelta(days=9))
        await store.commit(ChangeSet(inserts=tuple(map(entry, due + kept)), request=request))
        week = NOW - timedelta(days=7)
        report, found = await store.collectable(Graces(week, week, NOW, week), limit=9)
        assert (GcReport(1, 1, 1, 1), {m.id for m in due}) == (report, {m.id for m in found})
        for_ever, _ = await store.collectable(Graces(week, None, NOW, week), limit=9)
        assert 0 == for_ever.superseded_count
        assert 2 == len((await store.collectable(Graces(week, week, NOW, week), limit=2))[1])
        await store.commit(ChangeSet(forget_requests_before=week))
        assert await store.recorded(Owner("default", ALICE), "A", "r") is None

    with_store(rule)


def test_recalls_are_counted_and_survive_an_update(with_store):
    async def rule(store):
        made = entry()
        await put(store, made)
        await store.note_recalls({made.memory.owner: {made.memory.id: (NOW, 2, None)}})
        await store.note_recalls({made.memory.owner: {made.memory.id: (LATER, 1, LATER)}})
        await store.commit(ChangeSet(updates=(replace(made, memory=replace(made.memory, tags=("t",))),)))
        found = (await page(store))[0]
        assert (("t",), 3, LATER) == (found.tags, found.recall_count, found.recall_time)

    with_store(rule)


def grant(grant_id="g1", **more):
    given = {"agent_id": "default", "user_id": "alice", "permissions": PRESETS["full"], "create_time": NOW}
    return Grant(id=grant_id, listener=True, **{**given, **more})


def test_grants_and_keys_come_back_as_they_were_put(with_store):
    async def rule(store):
        first = grant(
            chat_ids=("c1", "c,2 ü"),
            permissions=frozenset({Permission.ADD, Permission.GET}),
            quota=Quota(calls_per_second=2.5, writes_per_day=7, stored_memories=8, stored_bytes=9, connections=3),
            label="for tests",
            expire_time=LATER,
        )
        second = grant("g2", user_id="", chat_ids=("c1",), create_time=LATER)
        keys = tuple(TokenKey(f"k{n}", bytes([n]) * 32, NOW + timedelta(seconds=n)) for n in range(3))
        await store.commit(ChangeSet(grants=(second, first), token_keys=keys[:2]))
        assert [first, second] == await store.grants()
        assert list(keys[:2]) == await store.token_keys()
        await store.commit(ChangeSet(grants=(replace(first, revoke_time=LATER),), token_keys=keys[1:]))
        assert [replace(first, revoke_time=LATER), second] == await store.grants()
        assert list(keys[1:]) == await store.token_keys()
        await put(store, entry("a"))
        assert list(keys[1:]) == await store.token_keys()

    with_store(rule)


def test_what_came_through_a_grant_is_counted_and_found_together(with_store):
    async def rule(store):
        made = [
            entry(memory(f"statement {n}", scope=ALICE if n % 2 else BOB, grant_id="g1", trust=Trust.SANDBOX))
            for n in range(5)
        ]
        gone = replace(made[4], memory=replace(made[4].memory, delete_time=LATER, purge_time=LATER))
        await put(store, *made, entry(memory("of another", grant_id="g2")), entry("of none"))
        await store.commit(ChangeSet(updates=(gone,)))
        size = len("statement 0")
        usage = await store.grant_usage(made[2].memory.create_time)
        other = usage.pop("g2")
        assert ({"g1": GrantUsage(3, 5, 5 * size)}, 1, len("of another")) == (
            usage, other.stored_memories, other.stored_bytes
        )  # fmt: skip
        newest = [made[n].memory for n in (3, 2, 1, 0)]
        assert newest[:3] == await store.of_grant("g1", limit=3)
        after = Cursor(newest[1].create_time, newest[1].id)
        assert newest[2:] == await store.of_grant("g1", limit=9, after=after)
        assert [gone.memory] == await store.of_grant("g1", limit=1, deleted=True)

    with_store(rule)


def test_a_closed_store_refuses(with_store):
    async def rule(store):
        await store.close()
        with pytest.raises(Unavailable):
            await put(store, entry())

    with_store(rule)
