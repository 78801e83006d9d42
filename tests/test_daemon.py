"""The daemon as a process: its socket, its start and stop, and callers that mean no good."""

from __future__ import annotations

import os
import socket
import stat
import time

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from memory_client import Draft

from memoryd.model import limits
from memoryd.v1 import memory_service_pb2 as pb
from memoryd.v1 import memory_service_pb2_grpc
from tests.support import PATIENCE_S, until


def stub_of(channel):
    return memory_service_pb2_grpc.MemoryServiceStub(channel)


def test_meaning_is_found_without_a_shared_word(daemon, user):
    with daemon.client(user) as memory:
        memory.add("I'm allergic to peanuts")
        memory.add("the standup is at nine")
        memory.add("my bicycle is blue")
        assert "I'm allergic to peanuts" == memory.search("What should I avoid eating?").hits[0].memory.content


def test_socket_and_files_are_for_their_owner_alone(daemon):
    assert 0o600 == stat.S_IMODE(daemon.socket.stat().st_mode)
    assert 0o700 == stat.S_IMODE(daemon.socket.parent.stat().st_mode)


def test_health_and_reflection_answer(daemon):
    with daemon.channel() as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for name in ("", "memoryd.v1.MemoryService"):
            answer = health.Check(health_pb2.HealthCheckRequest(service=name))
            assert health_pb2.HealthCheckResponse.SERVING == answer.status
        reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        names = {item.name for item in next(reflection.ServerReflectionInfo(asked)).list_services_response.service}
        assert {"memoryd.v1.MemoryService", "memoryd.v1.ContextService", "memoryd.v1.AdminService"} <= names


def test_a_recall_is_counted_in_the_background(daemon, user):
    with daemon.client(user) as memory:
        made = memory.add("counted apple").memory
        assert made.id == memory.search("apple", without_recall=True).hits[0].memory.id
        memory.search("apple")
        memory.context("apple")
        until(lambda: memory.get(made.id).recall_count == 2)
        found = memory.get(made.id)
        assert 2 == found.recall_count
        assert found.recall_time is not None


def failure(call) -> tuple[str, str, str]:
    """Return code, reason and field of a failed call."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    error = caught.value
    details = dict(error.trailing_metadata()).get("grpc-status-details-bin")
    assert details, error.details()
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status_pb2.Status.FromString(details).details:
        for known in (info, bad):
            if detail.Is(known.DESCRIPTOR):
                detail.Unpack(known)
    assert "memoryd" == info.domain
    return error.code().name, info.reason, bad.field_violations[0].field if bad.field_violations else ""


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"content": ""}, ("INVALID_ARGUMENT", "INVALID_FIELD", "content")),
        ({"content": " \n "}, ("INVALID_ARGUMENT", "INVALID_FIELD", "content")),
        ({"content": "a\0b"}, ("INVALID_ARGUMENT", "INVALID_FIELD", "content")),
        ({"content": "x" * (limits.MAX_CONTENT_BYTES + 1)}, ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED", "content")),
        ({"content": "x", "user_id": ""}, ("INVALID_ARGUMENT", "IDENTITY_MISSING", "user_id")),
        ({"content": "x", "shared": True}, ("INVALID_ARGUMENT", "INVALID_FIELD", "chat_id")),
        ({"content": "x", "kind": 99}, ("INVALID_ARGUMENT", "INVALID_FIELD", "kind")),
        ({"content": "x", "expires_days": 0.0}, ("INVALID_ARGUMENT", "INVALID_FIELD", "expires_days")),
        ({"content": "x", "expire_time": {"seconds": 1}}, ("INVALID_ARGUMENT", "INVALID_FIELD", "expire_time")),
        ({"content": "x", "event_time": {"seconds": 10**15}}, ("INVALID_ARGUMENT", "INVALID_FIELD", "event_time")),
        ({"content": "x", "tags": ["t"] * 33}, ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED", "tags")),
        ({"content": "x", "source": {"speaker": "\n"}}, ("INVALID_ARGUMENT", "INVALID_FIELD", "source.speaker")),
    ],
)
def test_a_bad_request_gets_one_reason_and_the_field(daemon, user, fields, expected):
    with daemon.channel() as channel:
        request = pb.AddMemoryRequest(**{"user_id": user, **fields})
        assert expected == failure(lambda: stub_of(channel).AddMemory(request))
        with daemon.client(user) as memory:
            assert () == memory.page().memories


def test_a_batch_names_its_bad_item_and_stores_nothing(daemon, user):
    good = pb.AddMemoryRequest(content="good")
    with daemon.channel() as channel:
        for requests, expected in (
            ([good, pb.AddMemoryRequest(content="")], ("INVALID_ARGUMENT", "INVALID_FIELD", "requests[1].content")),
            ([], ("INVALID_ARGUMENT", "INVALID_FIELD", "requests")),
            ([good] * (limits.MAX_BATCH + 1), ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED", "requests")),
            (
                [good, pb.AddMemoryRequest(content="x", user_id="bob")],
                ("INVALID_ARGUMENT", "INVALID_FIELD", "requests[1].user_id"),
            ),
        ):
            batch = pb.BatchAddMemoriesRequest(user_id=user, requests=requests)
            assert expected == failure(lambda batch=batch: stub_of(channel).BatchAddMemories(batch))
    with daemon.client(user) as memory:
        assert () == memory.page().memories
        assert 100 == len(memory.add_batch([Draft(content=f"n{n}") for n in range(limits.MAX_BATCH)]))


def test_a_malformed_message_is_refused_and_the_daemon_goes_on(daemon, user):
    with daemon.channel() as channel:
        raw = channel.unary_unary("/memoryd.v1.MemoryService/AddMemory")
        for junk in (b"\xff\xff\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x2a\x03\xed\xa0\x80"):  # the last: a surrogate
            assert ("INVALID_ARGUMENT", "INVALID_FIELD", "") == failure(lambda junk=junk: raw(junk, timeout=PATIENCE_S))
        with pytest.raises(grpc.RpcError) as caught:
            raw(b"\x2a" + b"x" * (limits.MAX_MESSAGE_BYTES + 1), timeout=PATIENCE_S)
        assert grpc.StatusCode.RESOURCE_EXHAUSTED is caught.value.code()
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/memoryd.v1.MemoryService/DropEverything")(b"", timeout=PATIENCE_S)
        assert grpc.StatusCode.UNIMPLEMENTED is caught.value.code()
        with pytest.raises(grpc.RpcError):
            raw(b"", metadata=(("x-large", "y" * 100_000),), timeout=PATIENCE_S)
    with daemon.client(user) as memory:
        assert memory.add("still here").memory


def test_garbage_and_silence_on_the_socket_harm_nobody(daemon, user):
    open_connections = []
    for junk in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        os.urandom(4096),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(999),
    ):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(daemon.socket))
        connection.sendall(junk)
        open_connections.append(connection)
    with daemon.client(user) as memory:
        assert memory.add("unharmed").memory
    for connection in open_connections:
        connection.close()


def test_a_caller_who_hangs_up_leaves_a_whole_write_or_none(daemon, user):
    with daemon.channel() as channel:
        for n in range(20):
            batch = pb.BatchAddMemoriesRequest(
                user_id=user, requests=[pb.AddMemoryRequest(content=f"{n} of {m}") for m in range(10)]
            )
            call = stub_of(channel).BatchAddMemories.future(batch)
            time.sleep(0.01 * (n % 10))
            call.cancel()
    with daemon.client(user) as memory:
        memory.add("settled")
        time.sleep(1)
        groups: dict[str, int] = {}
        for found in memory.pages(page_size=1000):
            groups[found.content.partition(" ")[0]] = groups.get(found.content.partition(" ")[0], 0) + 1
        del groups["settled"]
        assert all(count == 10 for count in groups.values()), groups
