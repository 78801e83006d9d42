"""The hash of a request: the same for the same request, in every version."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b

import pytest
from memory_client import Conflict, MessageDraft

from memoryd.domain.forgetting.sweep import Match
from memoryd.domain.payload import is_payload, payload_hash
from memoryd.domain.shared import SeenRequests
from memoryd.errors import LimitExceeded, RequestIdReused
from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.memory import Draft, Kind, Source
from memoryd.model.query import Filter
from memoryd.model.receipt import MemoriesReceipt
from memoryd.model.scope import Owner
from tests.builders import ALICE, NOW, Local, added, open_duckdb, ports_over, ram_store, with_ports


@dataclass(frozen=True)
class Before:
    content: str
    tags: tuple[str, ...] = ()
    metadata: dict = field(default_factory=dict)


@dataclass(frozen=True)
class After(Before):
    colour: str = ""


def test_a_field_that_a_later_version_adds_changes_no_request_that_leaves_it_out():
    assert payload_hash(("x", Before("c", ("a",)))) == payload_hash(("x", After("c", ("a",))))
    assert payload_hash(After("c")) != payload_hash(After("c", colour="red"))


def test_every_part_counts_and_no_order_of_what_has_none():
    base = Draft(content="c", metadata={"a": "1", "b": "2"}, event_time=datetime(2026, 1, 1, tzinfo=UTC))
    same = Draft(content="c", metadata={"b": "2", "a": "1"}, event_time=datetime(2026, 1, 1, tzinfo=UTC))
    assert payload_hash(base) == payload_hash(same)
    others = [
        Draft(content="d", metadata=base.metadata, event_time=base.event_time),
        Draft(content="c", metadata={"a": "1"}, event_time=base.event_time),
        Draft(content="c", metadata=base.metadata),
        Draft(content="c", metadata=base.metadata, event_time=base.event_time, kind=Kind.EVENT),
        Draft(content="c", metadata=base.metadata, event_time=base.event_time, source=Source(speaker="s")),
        Draft(content="c", metadata=base.metadata, event_time=base.event_time, shared=True),
    ]
    assert len({payload_hash(one) for one in (base, *others)}) == 1 + len(others)
    assert payload_hash(frozenset({"a", "b"})) == payload_hash(frozenset({"b", "a"}))
    assert payload_hash(("a", "b")) != payload_hash(("b", "a"))


async def test_a_request_of_before_the_upgrade_gets_its_first_answer(clock):
    async with ports_over(ram_store()) as ports:
        alice = Local(ports, clock, user_id="alice")
        draft = Draft(content="I live in Rome")
        first = (await alice.add("I live in Rome")).memory
        old = blake2b(repr(("default", "alice", None, draft)).encode(), digest_size=16).hexdigest()
        assert is_payload(("default", "alice", None, draft), old)
        noted = RecordedRequest(Owner("default", ALICE), "AddMemory", "r1", old, added(first), NOW)
        await ports.store.commits.write(ChangeSet(request=noted))
        assert first.id == (await alice.add("I live in Rome", request_id="r1")).memory.id
        assert 1 == len((await alice.page()).memories)
        with pytest.raises(RequestIdReused):
            await alice.add("I live in Oslo", request_id="r1")


def test_the_form_of_the_hash_stays_as_it_was_released():
    canonical = b'{"content":"c","tags":["a"]}'
    assert f"2:{blake2b(canonical, digest_size=16).hexdigest()}" == payload_hash(Before("c", ("a",)))


async def test_a_delete_of_many_is_hashed_by_what_it_asks_for_and_known_in_the_first_form(clock):
    match = Match(text="tea")
    assert payload_hash((match, False)) == payload_hash(({"text": "tea"}, False))
    async with ports_over(ram_store()) as ports:
        alice = Local(ports, clock, user_id="alice")
        tea = (await alice.add("I like tea")).memory
        whole = Match(text="tea", filter=Filter(include_expired=True, include_superseded=True))
        old = "8cd1b7708d1707385aed754fdc732d96"  # as the first form of hashes was written for this request
        asked = ("default", "alice", None, (whole.first_form, False))
        assert old == blake2b(repr(asked).encode(), digest_size=16).hexdigest()
        noted = RecordedRequest(Owner("default", ALICE), "DeleteMemories", "r1", old, MemoriesReceipt.of([tea]), NOW)
        await ports.store.commits.write(ChangeSet(request=noted))
        assert (tea.id,) == (await alice.delete_matching(text="tea", request_id="r1")).deleted_ids
        assert 1 == len((await alice.page()).memories)
        with pytest.raises(RequestIdReused):
            await alice.delete_matching(text="coffee", request_id="r1")


def said(text: str, **more) -> MessageDraft:
    return MessageDraft(content=text, **more)


async def test_messages_are_repeated_after_a_restart_beside_others_and_everything_is_there_once(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        me = Local(ports, clock, user_id="u0")
        first = await me.append("t", said("zero", id="own"), request_id="r")
        again = await me.append("t", said("zero", id="own"), request_id="r")
        plain = await me.append("p", said("plain"), request_id="p")
        with pytest.raises(Conflict, match="has a message 'own' already"):
            await me.append("t", said("zero", id="own"), request_id="other")
    assert first == again
    async with ports_over(open_duckdb(folder)) as ports:  # what was seen is forgotten: nothing is looked up at first
        users = [Local(ports, clock, user_id=f"u{n}") for n in range(8)]
        done = await asyncio.gather(*(u.append("t", said("zero", id="own"), request_id="r") for u in users))
        assert first.messages == done[0].messages
        assert plain.messages == (await users[0].append("p", said("plain"), request_id="p")).messages
        assert 1 == (await users[0].thread("p")).message_count
        assert [1] * 8 == [(await u.thread("t")).message_count for u in users]
        with pytest.raises(RequestIdReused):
            await users[1].append("t", said("another"), request_id="r")
        assert [["zero"]] * 8 == [[one.content for one in (await u.messages("t")).messages] for u in users]


async def test_a_quota_that_is_used_up_refuses_no_repetition(clock):
    async with ports_over(ram_store()) as ports:
        inside = Local(ports, clock, user_id="u", grant_id="g", stored_bytes=10)
        first = await inside.append("t", said("12345678"), request_id="r")
        fresh = with_ports(ports, seen_requests=SeenRequests())
        repeated = Local(fresh, clock, user_id="u", grant_id="g", stored_bytes=10)
        assert first == await repeated.append("t", said("12345678"), request_id="r")
        with pytest.raises(LimitExceeded, match="stores 8 of 10 bytes"):
            await repeated.append("t", said("12345678"), request_id="s")
