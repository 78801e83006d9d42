"""The client says what was wrong in its own errors, whatever it is given."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
import typing
from pathlib import Path

import memory_client
import pytest
from memory_client import (
    Appended,
    AsyncMemoryClient,
    ConnectionLost,
    Draft,
    Filter,
    InternalError,
    InvalidArgument,
    Kind,
    MemoryClient,
    MessageDraft,
    PermissionDenied,
    TimedOut,
    Unavailable,
)
from memory_client.aio_conversations import AsyncConversation
from memory_client.endpoint import Identity
from memory_client.knowledge_calls import delete_matching


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": None},
        {"content": b"x"},
        {"content": "x", "metadata": {"a": {1, 2}}},
        {"content": "x", "metadata": "a=1"},
        {"content": "x", "confidence": "high"},
        {"content": "x", "kind": "nonsense"},
        {"content": "x", "tags": "drinks"},
        {"content": "x", "subjects": "Sarah"},
        {"content": "x", "tags": [1]},
        {"content": "x", "expires_days": "2w"},
        {"content": "x", "event_time": "today"},
    ],
)
def test_an_argument_of_the_wrong_type_is_named(daemon, user, arguments):
    with daemon.client(user) as memory:
        with pytest.raises(InvalidArgument):
            memory.add(**arguments)
        assert () == memory.page().memories


def test_other_calls_check_their_types_too(daemon, user):
    with daemon.client(user) as memory:
        for call in (
            lambda: memory.search("x", filter={"tags": ["a"]}),
            lambda: memory.search("x", limit="many"),
            lambda: memory.search(None),
            lambda: memory.add_batch(["a"]),
            lambda: memory.get(7),
        ):
            with pytest.raises(InvalidArgument):
                call()


def test_a_kind_may_be_given_by_its_name(daemon, user):
    with daemon.client(user) as memory:
        assert Kind.EVENT is memory.add("x", kind="event").memory.kind
        assert Kind.EVENT is Draft(content="x", kind="event").kind


def test_a_closed_client_says_so(daemon, user):
    memory = daemon.client(user)
    memory.close()
    with pytest.raises(InvalidArgument, match="closed"):
        memory.search("x")


async def test_a_closed_asynchronous_client_says_so(daemon, user):
    memory = AsyncMemoryClient(daemon.endpoint, user_id=user)
    await memory.add("x")
    await memory.close()
    with pytest.raises(InvalidArgument, match="closed"):
        await memory.search("x")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), None, "1"])
def test_a_timeout_is_a_number_of_seconds(timeout):
    with pytest.raises(InvalidArgument, match="timeout_s"):
        MemoryClient("unix:///nowhere", timeout_s=timeout)


def test_only_what_the_daemon_refuses_is_certainly_not_written():
    from memory_client.failures import error_of

    class Failure:
        def __init__(self, code, details):
            self._code, self._details = code, details

        def code(self):
            return self._code

        def details(self):
            return self._details

        def trailing_metadata(self):
            return ()

    import grpc

    for code, details, expected in (
        (grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses", "Unavailable"),
        (grpc.StatusCode.UNAVAILABLE, "Socket closed", "ConnectionLost"),
        (grpc.StatusCode.DATA_LOSS, "", "StoreDamaged"),
        (grpc.StatusCode.UNAVAILABLE, "connect: Permission denied (13)", "PermissionDenied"),
        (grpc.StatusCode.CANCELLED, "cancelled", "ConnectionLost"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "", "TimedOut"),
        (grpc.StatusCode.UNKNOWN, "", "InternalError"),
    ):
        assert expected == type(error_of(Failure(code, details), "t")).__name__


def test_what_the_client_says_itself_is_no_answer_of_the_daemon(folder):
    if os.getuid():
        pytest.skip("needs root, to become another user")
    place = folder / "x.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        place.chmod(0o600)
        for above in (folder, folder.parent):
            above.chmod(above.stat().st_mode | 0o011)
        program = (
            "import os, memory_client, time, grpc, random, google.rpc.status_pb2, google.rpc.error_details_pb2\n"
            f"client = memory_client.MemoryClient('unix://{place}', user_id='x', timeout_s=20)\n"
            "memory_client.MemorydError; os.setgid(65534); os.setuid(65534)\n"
            "for _ in range(2):\n"
            "    began = time.monotonic()\n"
            "    try:\n        client.get('abcdefgh')\n"
            "    except memory_client.MemorydError as error:\n"
            "        print(type(error).__name__, time.monotonic() - began < 10)\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ["PermissionDenied True"] * 2 == done.stdout.splitlines(), done.stderr


def test_a_call_that_only_hosts_make_is_refused_with_the_way_to_it(world):
    with world.inside(world.sandbox()) as inside:
        for call in (inside.grants, inside.run_decay, inside.rotate_token_keys):
            with pytest.raises(PermissionDenied, match="does not have this call: hosts make it on the admin socket"):
                call()


def test_a_purge_by_filter_is_not_sent_twice():
    def asked(**more):
        given = {"wanted": Filter(tags=("x",)), "text": "", "source": None, "grant_id": "", "shared": None,
                 "dry_run": False, "purge": False, "request_id": ""}  # fmt: skip
        return delete_matching(Identity("default", "alice", ""), **{**given, **more}).retryable

    assert (True, False, True) == (asked(), asked(purge=True), asked(purge=True, dry_run=True))


def test_every_name_of_the_client_is_there_and_no_other():
    for name in memory_client.__all__:
        assert getattr(memory_client, name) is not None
        assert name in dir(memory_client)
    with pytest.raises(AttributeError, match="no attribute 'Memories'"):
        memory_client.Memories  # noqa: B018


def test_what_a_sandbox_calls_tells_its_types_as_tools_are_made_of_them():
    for name in ("add", "search", "page", "get", "delete", "restore", "stats", "context", "history", "correct"):
        assert typing.get_type_hints(getattr(MemoryClient, name))["return"]


def test_a_search_imports_nothing_of_the_host():
    program = (
        "import sys; sys.argv = ['memory', 'search', 'tea', '--endpoint', 'unix:///nowhere', '--user', 'x']\n"
        "from memory_cli.main import main\nassert main() == 6\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"grpc", "memory_client.client", "memoryd.v1.memory_service_pb2"} <= {*done.stdout.split()}
    assert not {
        "hashlib", "uuid", "numpy", "memory_client.aio", "memory_client.admin_calls", "memory_client.grant_calls",
        "memory_client.knowledge_calls", "memoryd.model.grant", "memoryd.model.reports", "memoryd.v1.admin_service_pb2",
        "memoryd.v1.grant_service_pb2", "memoryd.v1.entity_service_pb2",
    } & {*done.stdout.split()}  # fmt: skip


class Lossy:
    """A client whose answers can be lost: what was sent counts all the same."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.failure: BaseException | None = None

    async def append(self, thread_id, messages, *, shared, session_id, request_id):
        self.sent.append((messages[0].content, request_id))
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return Appended(True, (), "s")


@pytest.mark.parametrize(
    "failure", [TimedOut("lost"), Unavailable("down"), asyncio.CancelledError(), InternalError("?")]
)
async def test_what_may_be_stored_is_said_again_under_its_request_id(failure):
    client = Lossy()
    talk = AsyncConversation(client, "t")
    client.failure = failure
    with pytest.raises(type(failure)):
        await talk.user("hi")
    client.failure = None
    await talk.user("and then")
    await talk.user("hi")
    await talk.user("hi")
    ids = [request_id for content, request_id in client.sent if content == "hi"]
    assert (ids[0] == ids[1], ids[1] == ids[2]) == (True, False)


async def test_the_same_words_said_at_once_or_after_a_refusal_are_no_repetition():
    client = Lossy()
    talk = AsyncConversation(client, "t")
    await asyncio.gather(*(talk.user("ok") for _ in range(5)))
    client.failure = InvalidArgument("no", field="content")
    with pytest.raises(InvalidArgument):
        await talk.user("ok")
    client.failure = None
    await talk.user("ok")
    assert 7 == len({request_id for _, request_id in client.sent})


def test_messages_that_say_the_same_are_named_by_their_own_ids_in_a_search_of_all(daemon):
    with daemon.client("twice") as memory:
        memory.append("t", [MessageDraft(content="The oven is broken", name="Ann", id=f"own-{n}") for n in range(3)])
        (hit,) = memory.search("the oven is broken", filter=Filter(kinds=frozenset({Kind.EPISODE}))).hits
    assert {"own-0", "own-1", "own-2"} == {hit.memory.id, *hit.same_ids}


def losing_the_answer(place: Path, target: str) -> threading.Event:
    """Serve a daemon's socket at another place; once the event is set, lose an answer and listen no more."""
    loses, listener = threading.Event(), socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen(8)

    def carry(source: socket.socket, sink: socket.socket, *, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                if is_answer and loses.is_set() and len(piece) > 60:  # more than a ping or a window
                    place.unlink()
                    listener.close()
                    sink.shutdown(socket.SHUT_RDWR)
                    return
                sink.sendall(piece)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(target.removeprefix("unix://"))
                threading.Thread(target=carry, args=(near, far), kwargs={"is_answer": False}, daemon=True).start()
                threading.Thread(target=carry, args=(far, near), kwargs={"is_answer": True}, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return loses


def test_a_write_that_may_have_happened_is_never_said_not_to_have(daemon, user, folder):
    loses = losing_the_answer(folder / "lossy.sock", daemon.endpoint)
    with MemoryClient(f"unix://{folder}/lossy.sock", timeout_s=4, wait_for_ready=False) as host:
        host.acting_for(user_id=user).append("t", MessageDraft(content="first"))
        loses.set()
        with pytest.raises(ConnectionLost):
            host.acting_for(user_id=user).append("t", MessageDraft(content="second"))
    with MemoryClient(daemon.endpoint, user_id=user) as direct:
        assert ["first", "second"] == [message.content for message in direct.messages("t").messages]


def test_clients_of_one_channel_know_together_that_it_was_answered(daemon, user):
    with MemoryClient(daemon.endpoint) as host:
        host.acting_for(user_id=user).stats()
        assert host._answered.is_set()
        assert host.acting_for(user_id="somebody else")._answered.is_set()
