"""The order of the gate, and what a grant reaches."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from memory_client import Caveats, Permission, attenuate

from memoryd.errors import InvalidArgument, LimitExceeded, Unavailable
from memoryd.service import gate
from memoryd.v1 import memory_service_pb2
from memoryd.wire.raw import check_counts, counted
from tests.access_helpers import ABSENT, DENIED, METHODS, MISMATCH, NOBODY, OK, ask, ask_raw
from tests.doors import a_world, socket_of
from tests.support import PATIENCE_S


def test_authenticate_then_authorise_then_quota_then_validate(world):
    add, search = "MemoryService/AddMemory", "MemoryService/SearchMemories"
    bad = {"content": ""}
    nobody = world.channel(world.shared)
    assert NOBODY == ask(nobody, add, {**bad, "user_id": "bob"})
    assert NOBODY == ask_raw(nobody, "/memoryd.v1.MemoryService/AddMemory", b"\xff\xff")
    poor = world.channel(socket_of(world.sandbox("search", quota={"calls_per_second": 0.001})))
    assert DENIED == ask(poor, add, {**bad, "user_id": "bob"})  # before its scope is looked at
    assert MISMATCH == ask(poor, search, {"query": "", "user_id": "bob"})  # before it costs anything
    assert OK == ask(poor, search, {"query": "tea"})
    assert MISMATCH == ask(poor, search, {"query": "", "user_id": "bob"})
    assert ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED") == ask(poor, search, {"query": ""})  # before it is read
    assert ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED") == ask_raw(
        poor, "/memoryd.v1.MemoryService/SearchMemories", b"\xff\xff"
    )
    rich = world.channel(socket_of(world.sandbox("search", "add")))
    assert ("INVALID_ARGUMENT", "INVALID_FIELD") == ask(rich, add, bad)
    assert ("INVALID_ARGUMENT", "INVALID_FIELD") == ask_raw(
        rich, "/memoryd.v1.MemoryService/SearchMemories", b"\xff\xff"
    )


def test_an_item_of_a_batch_cannot_name_somebody_else(world):
    channel = world.channel(socket_of(world.sandbox(chat_ids=("c1", "c2"))))
    name = "MemoryService/BatchAddMemories"
    same = {"content": "x", "user_id": "alice"}
    assert OK == ask(channel, name, {"requests": [same]})
    assert MISMATCH == ask(channel, name, {"requests": [same, {"content": "x", "user_id": "bob"}]})
    assert MISMATCH == ask(channel, name, {"requests": [same, {"content": "x", "chat_id": "c3"}]})
    other = {"chat_id": "c1", "requests": [same, {"content": "x", "chat_id": "c2"}]}
    assert ("INVALID_ARGUMENT", "INVALID_FIELD") == ask(channel, name, other)


def test_a_method_that_no_service_has_is_refused(world):
    for endpoint in (world.daemon.endpoint, world.shared, socket_of(world.sandbox())):
        channel = world.channel(endpoint)
        for path in ("/memoryd.v1.MemoryService/DropEverything", "/memoryd.v1.Nothing/AddMemory", "/x/Y"):
            assert ABSENT == ask_raw(channel, path, b"")


def test_health_and_reflection_are_the_hosts_alone(world):
    for endpoint in (world.shared, world.tcp, socket_of(world.sandbox())):
        channel = world.channel(endpoint)
        assert ABSENT == ask_raw(channel, "/grpc.health.v1.Health/Check", b"")
        assert ABSENT == ask_raw(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", b"")


def test_a_message_that_would_unfold_in_memory_is_refused_before_it_is_read(world):
    channel = world.channel(socket_of(world.sandbox()))
    too_much = ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED")
    batch, search = "/memoryd.v1.MemoryService/BatchAddMemories", "/memoryd.v1.MemoryService/SearchMemories"
    assert too_much == ask_raw(channel, batch, b"\x22\x00" * 2_000_000)
    assert too_much == ask_raw(channel, batch, b"\x22\x05\x12\x03bob" * 500_000)
    assert too_much == ask_raw(channel, batch, b"\x58\x01" * 1_000_000)  # fields that nobody knows
    assert too_much == ask_raw(channel, search, b"\x22\x01x" + b"\x32\x02\x1a\x00" * 60_000)
    item = b"\x2a\x01x" + b"\x42\x00" * 20_000  # a memory with so many empty tags
    assert too_much == ask_raw(
        channel, batch, b"\x22" + bytes([len(item) & 127 | 128, len(item) >> 7 & 127 | 128, len(item) >> 14]) + item
    )
    append = "/memoryd.v1.ConversationService/AppendMessages"
    calls = b"\x52\x00" * 60_000  # tool calls of one message, two bytes each
    length = bytes([len(calls) & 127 | 128, len(calls) >> 7 & 127 | 128, len(calls) >> 14])
    assert too_much == ask_raw(channel, append, b"\x22\x01t\x3a" + length + calls)


BATCH = memory_service_pb2.BatchAddMemoriesRequest
COUNTED = counted(BATCH.DESCRIPTOR, {"requests": 2, "tags": 2, "metadata": 1})
items = st.builds(
    memory_service_pb2.AddMemoryRequest,
    content=st.just("x"),
    tags=st.lists(st.just("t"), max_size=4),
    metadata=st.dictionaries(st.sampled_from("abc"), st.just("v"), max_size=3),
)


@given(st.builds(BATCH, requests=st.lists(items, max_size=4)).map(lambda made: made.SerializeToString()) | st.binary())
def test_fields_are_counted_as_the_parser_counts_them_or_more(raw):
    try:
        check_counts(raw, COUNTED)
    except (InvalidArgument, LimitExceeded):
        return
    message = BATCH()
    try:
        message.ParseFromString(raw)
    except DecodeError:
        return
    assert len(message.requests) <= 2
    assert all(len(item.tags) <= 2 and len(item.metadata) <= 1 for item in message.requests)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (BATCH(requests=[{}] * 3).SerializeToString(), "requests"),
        (BATCH(requests=[{}, {"tags": ["t"] * 3}]).SerializeToString(), "requests[1].tags"),
        (BATCH(requests=[{"metadata": {"a": "b", "c": "d"}}]).SerializeToString(), "requests[0].metadata"),
        (b"\x58\x01" * 65, ""),
    ],
    ids=["items", "tags", "metadata", "unknown"],
)
def test_what_is_too_much_is_named(raw, field):
    with pytest.raises(LimitExceeded) as caught:
        check_counts(raw, COUNTED)
    assert field == caught.value.field


def test_what_comes_again_and_would_be_joined_is_refused_and_so_is_too_much_together():
    twice = b"\x32\x03\x12\x01a" * 2  # the filter of a search, with a subject each time
    search = memory_service_pb2.SearchMemoriesRequest
    assert 2 == len(search.FromString(twice).filter.subjects)
    with pytest.raises(LimitExceeded, match="filter has more than 1 items"):
        check_counts(twice, counted(search.DESCRIPTOR, {}))
    item = {"tags": ["t"] * 400}
    with pytest.raises(LimitExceeded, match="the request has more than 32768 fields") as caught:
        check_counts(BATCH(requests=[item] * 100).SerializeToString(), counted(BATCH.DESCRIPTOR, {}))
    assert "request_fields" == caught.value.limit
    full = {"content": "x", "tags": ["t"] * 32, "subjects": ["s"] * 16, "metadata": {f"k{n}": "v" for n in range(32)},
            "source": {"message_ids": ["m"] * 100}}  # fmt: skip
    check_counts(BATCH(requests=[full] * 100).SerializeToString(), counted(BATCH.DESCRIPTOR, {"requests": 100}))


def test_numbers_in_one_piece_are_counted_too():
    filtered = memory_service_pb2.SearchMemoriesRequest(filter={"kinds": [1] * 2000})
    with pytest.raises(LimitExceeded, match="filter.kinds has more than"):
        check_counts(filtered.SerializeToString(), counted(filtered.DESCRIPTOR, {}))


def test_a_batch_of_so_many_items_and_no_more_is_read():
    def batch(count: int) -> bytes:
        items = [memory_service_pb2.AddMemoryRequest(content="x" * 300) for _ in range(count)]
        return memory_service_pb2.BatchAddMemoriesRequest(user_id="u", requests=items).SerializeToString()

    fields = counted(BATCH.DESCRIPTOR, {"requests": 100})
    for n in (0, 1, 99, 100):
        check_counts(batch(n), fields)
    for n in (101, 5000):
        with pytest.raises(LimitExceeded):
            check_counts(batch(n), fields)


def test_calls_of_one_grant_under_way_are_bounded_at_every_door(world):
    token = world.token(quota={"calls_per_second": 0})
    own = [("grpc.use_local_subchannel_pool", 1)]  # a connection of its own, not one with the other channels
    channel = grpc.insecure_channel(world.shared.replace("unix://", "unix:"), options=own)
    path, metadata = "/memoryd.v1.IdentityService/WhoAmI", (("authorization", f"Bearer {token}"),)
    silent = threading.Event()

    def nothing():
        silent.wait(20)
        yield b""

    calls = [channel.stream_unary(path).future(nothing(), metadata=metadata, timeout=PATIENCE_S) for _ in range(64)]
    full, deadline = OK, time.monotonic() + 8
    while full == OK and time.monotonic() < deadline:  # until all of them have arrived
        full = ask(world.channel(world.shared), "IdentityService/WhoAmI", {}, token)
    other = ask(world.channel(world.shared), "IdentityService/WhoAmI", {}, world.token())
    silent.set()
    for call in calls:
        call.exception()  # when it has ended, however it did
    assert ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED") == full
    assert OK == other
    assert OK == ask(world.channel(world.shared), "IdentityService/WhoAmI", {}, token)
    channel.close()


def test_who_has_no_token_holds_no_call_open(world):
    own = [("grpc.use_local_subchannel_pool", 1)]  # a connection of its own, not one with the other channels
    channel = grpc.insecure_channel(world.shared.replace("unix://", "unix:"), options=own)
    never = threading.Event()

    def nothing():
        never.wait(30)
        yield b""

    method = channel.stream_unary("/memoryd.v1.IdentityService/WhoAmI")
    calls = [method.future(nothing(), timeout=PATIENCE_S) for _ in range(50)]
    codes = {(call.code(), call.details()) for call in calls}  # none waited for its message, which takes 30 s
    never.set()
    channel.close()
    assert {grpc.StatusCode.UNAUTHENTICATED} == {code for code, _ in codes}, codes


def test_of_several_chats_none_is_meant_unless_it_is_named(world):
    with world.admin("alice", "m1") as host:
        host.add("said in m1", shared=True)
    with world.inside(world.sandbox(chat_ids=("m1", "m2"))) as inside:
        assert "" == inside.whoami().chat_id
        assert not [m for m in inside.pages() if m.content == "said in m1"]
        named = inside.acting_for(chat_id="m1")
        assert [m for m in named.pages() if m.content == "said in m1"]
    with world.inside(world.sandbox(chat_ids=("m1",))) as inside:
        assert "m1" == inside.whoami().chat_id
        assert [m for m in inside.pages() if m.content == "said in m1"]


def test_a_grant_of_chats_alone_reaches_no_personal_memory(world):
    with world.admin("alice") as host:
        host.add("personal to alice")
    with world.inside(world.sandbox(user_id="", chat_ids=("g1", "g2"))) as inside:
        assert ("", "") == (inside.whoami().user_id, inside.whoami().chat_id)
        assert ("INVALID_ARGUMENT", "IDENTITY_MISSING") == ask(
            world.channel(inside.target), "MemoryService/ListMemories", {}
        )
        in_chat = inside.acting_for(chat_id="g1")
        in_chat.add("said in g1", shared=True)
        assert ["said in g1"] == [m.content for m in in_chat.pages()]


def test_somebody_elses_id_is_not_found_in_the_same_words(world):
    with world.admin("bob") as bob:
        theirs = bob.add("bob's own").memory.id
    channel = world.channel(socket_of(world.sandbox()))
    texts = []
    for memory_id in (theirs, theirs[::-1]):
        for name in ("GetMemory", "DeleteMemory", "RestoreMemory"):
            service, method = METHODS[f"MemoryService/{name}"]
            raw = message_factory.GetMessageClass(method.input_type)(id=memory_id).SerializeToString()
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(f"/{service.full_name}/{name}")(raw, timeout=PATIENCE_S)
            texts.append((caught.value.code().name, caught.value.details().replace(memory_id, "ID")))
    assert {("NOT_FOUND", "there is no memory ID")} == set(texts)


def test_page_tokens_and_request_ids_are_of_one_scope(world):
    with world.admin("alice") as alice:
        for n in range(3):
            alice.add(f"alice {n}")
        page = alice.page(page_size=1)
        first = alice.add("once", request_id="00000000-0000-0000-0000-000000000001").memory.id
    with world.inside(world.sandbox(user_id="bob")) as bob:
        channel = world.channel(bob.target)
        fields = {"page_size": 1, "page_token": page.next_page_token}
        assert ("INVALID_ARGUMENT", "PAGE_TOKEN_INVALID") == ask(channel, "MemoryService/ListMemories", fields)
        second = bob.add("once", request_id="00000000-0000-0000-0000-000000000001").memory
        assert first != second.id
        assert "bob" == second.scope.user_id


def test_a_token_in_a_sandbox_narrows_what_the_socket_gives(world):
    sandbox = world.sandbox("full")
    with world.admin() as host:
        token = host.issue_token(sandbox.grant.id, via=sandbox.grant.id).token
    narrow = attenuate(token, Caveats(permissions=frozenset({Permission.SEARCH})))
    with world.inside(sandbox, token) as inside:
        assert set(Permission) == inside.whoami().permissions
    with world.inside(sandbox, narrow) as inside:
        assert {Permission.SEARCH} == inside.whoami().permissions
    assert NOBODY == ask(world.channel(world.shared), "IdentityService/WhoAmI", {}, token)


def test_revoking_takes_effect_on_the_next_call(world):
    token = world.token()
    with world.client(world.tcp, token) as caller, world.admin() as host:
        grant_id = caller.whoami().grant_id
        host.revoke_grant(grant_id[:8])
        assert NOBODY == ask(world.channel(world.tcp), "IdentityService/WhoAmI", {}, token)
        assert host.inspect_token(token).refusal.startswith(f"grant {grant_id[:8]} was revoked")


def test_dropping_the_keys_ends_every_token(folder):
    with a_world(folder) as world:
        old = world.token()
        with world.admin() as host:
            host.rotate_token_keys()
            new = world.token()
            assert (True, True) == (host.inspect_token(old).valid, host.inspect_token(new).valid)
            assert () == host.rotate_token_keys(drop_older=True).older_key_ids
            assert (False, False) == (host.inspect_token(old).valid, host.inspect_token(new).valid)
            assert host.inspect_token(world.token()).valid


def test_what_is_asked_for_wrongly_is_refused_with_its_field(world):
    channel = world.channel(world.daemon.endpoint)
    bad = ("INVALID_ARGUMENT", "INVALID_FIELD")
    grant = {"user_id": "alice", "permissions": ["search"]}
    for fields, expected in (
        ({}, bad),
        ({"user_id": "alice"}, bad),
        ({"permissions": ["search"]}, bad),
        ({**grant, "permissions": ["everything"]}, bad),
        ({**grant, "chat_ids": [""]}, bad),
        ({**grant, "chat_ids": [f"c{n}" for n in range(65)]}, ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED")),
        ({**grant, "label": "a\nb"}, bad),
        ({**grant, "label": "x" * 129}, ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED")),
        ({**grant, "expire_time": datetime.now(UTC) - timedelta(seconds=1)}, bad),
        ({**grant, "quota": {"writes_per_day": -1}}, bad),
        ({**grant, "quota": {"calls_per_second": float("nan")}}, bad),
    ):
        assert expected == ask(channel, "GrantService/OpenSandbox", {"spec": fields}), fields
        assert expected == ask(channel, "GrantService/IssueToken", {"spec": fields}), fields
    assert bad == ask(channel, "GrantService/IssueToken", {})
    assert bad == ask(channel, "GrantService/IssueToken", {"spec": grant, "via": "admin"})
    for name in ("RevokeGrant", "ListGrantMemories", "DeleteGrantMemories"):
        assert bad == ask(channel, f"GrantService/{name}", {"grant_id": "short"})
        assert ("NOT_FOUND", "GRANT_NOT_FOUND") == ask(channel, f"GrantService/{name}", {"grant_id": "a" * 26})
    assert bad == ask(channel, "GrantService/InspectToken", {"token": "rubbish"})


def test_grants_are_listed_by_page(world):
    made = [world.sandbox(label=f"page {n}").grant.id for n in range(3)]
    with world.admin() as host:
        host.revoke_grant(made[1])
        open_ids, token = [], ""
        while True:
            page = host.grants(page_size=2, page_token=token, listeners_only=True)
            open_ids += [status.grant.id for status in page.grants]
            token = page.next_page_token
            if not token:
                break
        assert [made[2], made[0]] == [grant_id for grant_id in open_ids if grant_id in made]
        every = [status.grant for status in host.grants(include_ended=True).grants]
        assert made[1] in [grant.id for grant in every if grant.revoke_time is not None]


async def test_a_request_that_does_not_arrive_in_time_may_be_sent_again(monkeypatch):
    async def dripping():
        await asyncio.sleep(PATIENCE_S)
        yield b""

    monkeypatch.setattr(gate, "RECEIVE_S", 0.01)
    with pytest.raises(Unavailable, match="did not arrive"):
        await gate._received(dripping())
