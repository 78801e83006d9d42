"""What every store finds by a selector: the same as the definition in Python, page by page, in every order."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from random import Random

import pytest

from memoryd.model.change import ChangeSet, ConversationChange, NewMessage
from memoryd.model.conversation import Message, Role, Thread
from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.memory import DECAYED, Kind
from memoryd.model.scope import Owner, Scope
from memoryd.model.trust import Trust
from memoryd.store.conversations import MessageSelector
from memoryd.store.memories import NOT_RETIRED, MemorySelector, Order, Vectors, owner_place, place_in_time
from tests.builders import ALICE, NOW, TEAM, entry, memory

SCOPES = (ALICE, TEAM, Scope(user_id="élise"), Scope(chat_id="alice"))
HOUR = timedelta(hours=1)


def random_memories(dice: Random):
    def some_time():
        return NOW + dice.randint(0, 9) * HOUR if dice.random() < 0.4 else None

    for n in range(80):
        mentions = [Mention(f"e{dice.randint(1, 3)}", "x", Form.NAME, EntityType.PERSON, False, "")]
        made = memory(
            f"statement {n}", scope=dice.choice(SCOPES), agent_id=dice.choice(["a", "b"]), kind=dice.choice([*Kind]),
            grant_id=dice.choice(["", "g1", "g2"]), mentions=tuple(mentions * dice.randint(0, 1)),
            create_time=NOW + timedelta(minutes=dice.randint(0, 500), microseconds=n),
            trust=dice.choice([Trust.HOST, Trust.SANDBOX]), delete_time=some_time(), supersede_time=some_time(),
            expire_time=some_time(), enrich_time=some_time(),
        )  # fmt: skip
        reason = dice.choice([DECAYED, "deleted"]) if made.delete_time else ""
        yield entry(replace(made, delete_reason=reason, purge_time=made.delete_time))


def selectors(entries):
    owner, ids = entries[0].memory.owner, [one.memory.id for one in entries[:5]]
    return [
        MemorySelector(), MemorySelector(owner=owner), MemorySelector(ids=ids), MemorySelector(ids=()),
        MemorySelector(grant_id="g1", is_deleted=False), MemorySelector(naming={"e1", "e3"}), MemorySelector(naming=()),
        NOT_RETIRED, MemorySelector(is_deleted=True), MemorySelector(is_superseded=True),
        MemorySelector(kinds={Kind.FACT}, is_enriched=False), MemorySelector(is_enriched=True),
        MemorySelector(is_statement=True, created_after=NOW + HOUR, created_until=NOW + 5 * HOUR),
        MemorySelector(ended_after=NOW + 4 * HOUR), MemorySelector(owner=owner, faded_at=NOW + 3 * HOUR),
        MemorySelector(not_fingerprint=entries[0].fingerprint), MemorySelector(not_fingerprint="another"),
    ]  # fmt: skip


def owner_key(one):
    return one.agent_id, one.scope.user_id or "", one.scope.chat_id or "", one.id


@pytest.mark.parametrize("seed", range(2))
async def test_a_scan_finds_what_its_selector_admits_page_by_page_in_every_order(store, seed):
    entries = list(random_memories(Random(seed)))
    bare = [replace(one, vector=None, fingerprint="") if n % 7 == 0 else one for n, one in enumerate(entries)]
    await store.commits.write(*ChangeSet(inserts=tuple(bare)).by_owner())
    for selector in selectors(entries[1:]):
        admitted = [one.memory for one in bare if selector.admits(one.memory, one.fingerprint)]
        by_time = sorted(admitted, key=lambda one: (one.create_time, one.id))
        expected = {
            Order.OWNERS: sorted(admitted, key=owner_key), Order.NEWEST: by_time[::-1], Order.OLDEST: by_time,
        }  # fmt: skip
        assert len(admitted) == await store.memories.count(selector), selector
        for order, wanted in expected.items():
            found, after = [], ""
            while page := await store.memories.scan(selector, limit=7, after=after, order=order):
                found += page
                last = page[-1]
                after = owner_place(last) if order is Order.OWNERS else place_in_time(last.create_time, last.id)
            told = found if order is not Order.OWNERS else sorted(found, key=lambda one: owner_key(one)[:3])
            assert wanted == told, (selector, order)
            assert found == await store.memories.scan(selector, limit=0, order=order)
            if order is Order.OWNERS:  # which owner comes first is the store's own
                owners = [owner for owner, _ in groupby(found, key=lambda one: one.owner)]
                assert len(owners) == len({*owners})
        in_turns = await store.memories.scan(selector, limit=0, order=Order.IN_TURNS)
        assert by_time == in_turns
        first = await store.memories.scan(selector, limit=9, order=Order.IN_TURNS)
        hosts = sum(one.trust is Trust.HOST for one in admitted)
        assert min(9, hosts) == sum(one.trust is Trust.HOST for one in first)


async def test_entries_come_in_the_order_of_ids_with_the_vectors_that_are_wanted(store):
    made = [replace(entry(f"statement {n}"), tokens=b"12", windows=b"3") for n in range(3)]
    other = entry("of the team", scope=TEAM)
    await store.commits.write(*ChangeSet(inserts=(*made, other)).by_owner())
    owner, ids = made[0].memory.owner, [made[2].memory.id, "x" * 26, made[0].memory.id, other.memory.id]
    for vectors, expected in (
        (Vectors.NONE, (False, "", b"", b"")),
        (Vectors.TEXTS, (True, made[0].fingerprint, b"", b"3")),
        (Vectors.ALL, (True, made[0].fingerprint, b"12", b"3")),
    ):
        for wanted in (ids, ids[:1]):
            found = await store.memories.entries(owner, wanted, vectors)
            assert [made[2].memory, made[0].memory][: len(wanted)] == [one.memory for one in found]
            assert {expected} == {(one.vector is not None, one.fingerprint, one.tokens, one.windows) for one in found}
            assert made[2].terms == found[0].terms
    assert [] == await store.memories.entries(owner, [])


OWNERS = [Owner("default", scope) for scope in (ALICE, TEAM)]


def message(owner, thread_id, seq):
    return Message(
        id=f"{thread_id}-{seq}", agent_id=owner.agent_id, scope=owner.scope, thread_id=thread_id, seq=seq,
        session_id=f"s{seq // 6}", role=Role.USER, content="x" * seq, create_time=NOW,
    )  # fmt: skip


async def test_messages_are_read_by_thread_by_place_and_by_id(store):
    said = {}
    for owner in OWNERS:
        for name in ("t", "u"):
            made = [message(owner, name, seq) for seq in range(1, 41)]
            told = Thread(id=name, agent_id="default", scope=owner.scope, create_time=NOW, update_time=NOW, revision=1)
            talk = ConversationChange(owner, messages=tuple(map(NewMessage, made)), threads=(told,))
            await store.commits.write(ChangeSet(conversation=talk))
            said[owner, name] = made
    owner, ours = OWNERS
    t, u = said[owner, "t"], said[owner, "u"]
    places = {("u", 2), ("t", 40), ("t", 2), ("v", 1), ("t", 99)}
    many = {(name, seq) for name in ("t", "u") for seq in range(1, 41)}
    in_t = MessageSelector(owner=owner, thread_id="t")
    for selector, expected in (
        (in_t, t),
        (replace(in_t, limit=3), t[:3]),
        (replace(in_t, limit=3, is_from_end=True), t[-3:]),
        (replace(in_t, limit=3, is_from_end=True, before=30, after=28), t[28:29]),
        (replace(in_t, limit=99, is_from_end=True, before=30, after=10), t[10:29]),
        (replace(in_t, limit=4, session_id="s2", is_from_end=True), t[13:17]),
        (replace(in_t, limit=40, is_from_end=True, most_bytes=100), t[-3:]),
        (replace(in_t, limit=3, is_from_end=True, most_bytes=1), t[-2:]),
        (replace(in_t, ids={"t-3", "t-1", "u-1", "none"}), [t[0], t[2]]),
        (replace(in_t, ids=()), []),
        (MessageSelector(owner=owner, places=places), [t[1], t[39], u[1]]),
        (MessageSelector(owner=owner, places=many), [*t, *u]),
        (MessageSelector(owner=owner, places=()), []),
        (MessageSelector(owner=ours, places={("t", 1)}), said[ours, "t"][:1]),
        (MessageSelector(owner=ours, thread_id="none"), []),
    ):
        assert expected == await store.conversations.messages(selector), selector
        if not selector.most_bytes:
            heads = [(one.owner, one.thread_id, one.seq, one.id, one.text_bytes) for one in expected]
            assert heads == await store.conversations.heads(selector), selector
    anybody = await store.conversations.heads(MessageSelector(ids=("t-7",)))
    assert {owner, ours} == {head.owner for head in anybody}
    assert 1 == len(await store.conversations.heads(MessageSelector(ids=("t-7",), limit=1)))
