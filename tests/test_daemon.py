"""The daemon as a process: its socket, its start and stop, and callers that mean no good."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from memory_client import Draft, Kind, MemoryClient, MemorydError, TimedOut, Unavailable

from memoryd.model import limits
from memoryd.v1 import memory_service_pb2 as pb
from memoryd.v1 import memory_service_pb2_grpc
from tests.support import Daemon, running

NO_MODEL = '[embedding]\nprovider = "none"\n'


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
        memory.search("apple")
        memory.context("apple")
        deadline = time.monotonic() + 15
        while (found := memory.get(made.id)).recall_count < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert 2 == found.recall_count
        assert found.recall_time is not None


# --- bad input over the wire ---


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
            assert ("INVALID_ARGUMENT", "INVALID_FIELD", "") == failure(lambda junk=junk: raw(junk, timeout=5))
        with pytest.raises(grpc.RpcError) as caught:
            raw(b"\x2a" + b"x" * (limits.MAX_MESSAGE_BYTES + 1), timeout=5)
        assert grpc.StatusCode.RESOURCE_EXHAUSTED is caught.value.code()
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/memoryd.v1.MemoryService/DropEverything")(b"", timeout=5)
        assert grpc.StatusCode.UNIMPLEMENTED is caught.value.code()
        with pytest.raises(grpc.RpcError):
            raw(b"", metadata=(("x-large", "y" * 100_000),), timeout=5)
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


# --- start and stop ---


def test_what_is_in_flight_at_sigterm_is_finished(folder):
    with running(folder, config=NO_MODEL) as daemon:
        results, go = [], threading.Event()

        def write(n: int) -> None:
            with daemon.client(f"u{n}", wait_for_ready=False) as memory:
                go.set()
                for m in range(500):
                    try:
                        results.append((f"u{n}", memory.add(f"{n} {m}").memory.id))
                    except MemorydError:
                        return

        threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        go.wait()
        time.sleep(0.3)
        assert 0 == daemon.stop()
        for thread in threads:
            thread.join()
        assert not daemon.socket.exists()
        wal = folder / "memory.duckdb.wal"
        assert not wal.exists() or not wal.stat().st_size  # a clean stop folds the log in
        daemon.start()
        for user, memory_id in results:
            with daemon.client(user) as memory:
                memory.get(memory_id)
        assert results


def test_a_second_signal_ends_it_at_once(folder):
    daemon = Daemon(folder, config=NO_MODEL + "[daemon]\nshutdown_grace_s = 60.0\n")
    daemon.start()
    with daemon.channel() as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=""))
        next(watch)  # a call that lasts
        daemon.process.send_signal(signal.SIGTERM)
        time.sleep(1)
        assert daemon.process.poll() is None
        daemon.process.send_signal(signal.SIGTERM)
        assert 0 == daemon.process.wait(timeout=10)


def test_a_second_daemon_is_refused_by_data_and_by_socket(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    with running(folder, config=NO_MODEL) as daemon:
        for arguments, words in (
            (["--data-dir", str(folder), "--socket", str(other / "s")], "in use by another memoryd"),
            (["--data-dir", str(other), "--socket", str(daemon.socket)], "served by another memoryd"),
        ):
            tried = subprocess.run(
                [sys.executable, "-m", "memoryd", "serve", *arguments], capture_output=True, text=True, check=False
            )
            assert 78 == tried.returncode
            assert words in tried.stderr
            assert "Traceback" not in tried.stderr
        with daemon.client() as memory:
            assert memory.add("the first goes on").memory


def test_a_socket_that_a_dead_daemon_left_is_taken_over(folder):
    daemon = Daemon(folder, config=NO_MODEL)
    daemon.start()
    daemon.kill()
    assert daemon.socket.exists()
    daemon.start()
    assert 0 == daemon.stop()


@pytest.mark.parametrize(
    ("arguments", "config", "words"),
    [
        (["--socket", "/tmp/" + "x" * 120], "", "longer than 107 bytes"),
        ([], "[stor]\npath = 'x'\n", "did you mean store"),
        ([], "[store]\npth = 'x'\n", "did you mean path"),
        ([], "[embedding]\nprovider = 'nonsense'\n", "neither builtin"),
        ([], "[embedding]\ndimensions = 9999\n", "the model makes 384"),
        ([], "not toml", "is not TOML"),
        (["--config", "/nowhere/memoryd.toml"], "", "cannot be read"),
        (["--data-dir", "/proc/nowhere"], "", "cannot write in"),
    ],
)
def test_a_start_that_cannot_be_is_refused_in_one_line(folder, arguments, config, words):
    (folder / "memoryd.toml").write_text(config)
    base = ["--data-dir", str(folder), "--socket", str(folder / "s"), "--config", str(folder / "memoryd.toml")]
    command = [sys.executable, "-m", "memoryd", "serve", *base, *arguments]
    tried = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (78, 1) == (tried.returncode, len(tried.stderr.strip().splitlines())), tried.stderr
    assert words in tried.stderr


def test_systemd_is_told_of_readiness_life_and_the_end(folder):
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    channel.bind(str(folder / "notify"))
    channel.settimeout(30)
    env = {"NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": "400000"}
    with running(folder, config=NO_MODEL, env=env) as daemon:
        heard = [channel.recv(99) for _ in range(3)]
        assert [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"] == heard
        daemon.stop()
        channel.setblocking(False)
        while heard[-1] != b"STOPPING=1":
            heard.append(channel.recv(99))
    channel.close()


def test_xdg_and_systemd_name_the_default_places(folder):
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "STATE_DIRECTORY": str(folder / "state"),
           "RUNTIME_DIRECTORY": str(folder / "run"), "MEMORYD_EMBEDDING_PROVIDER": "none"}  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "memoryd", "serve"], env=env, stderr=subprocess.DEVNULL)
    try:
        with MemoryClient(f"unix://{folder}/run/admin.sock", user_id="u", timeout_s=30, wait_for_ready=True) as memory:
            memory.add("x")
        assert (folder / "state" / "memory.duckdb").exists()
    finally:
        process.terminate()
        assert 0 == process.wait(timeout=30)


def test_the_log_is_json_without_content(folder):
    with running(folder, config=NO_MODEL + '[daemon]\nlog_level = "debug"\n') as daemon, daemon.client() as memory:
        memory.add("the secret word is xyzzy", tags=["plugh"])
        memory.search("xyzzy")
        with pytest.raises(MemorydError):
            memory.get("plugh" * 3)
    text = daemon.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    calls = [line for line in lines if line["event"] in {"AddMemory", "SearchMemories", "GetMemory"}]
    assert ["OK", "OK", "NOT_FOUND"] == [line["code"] for line in calls]
    assert 3 == len({line["call"] for line in calls})
    assert "xyzzy" not in text
    assert "plugh" not in text


def test_another_model_leaves_the_words_and_says_so(folder):
    with running(folder) as daemon, daemon.client() as memory:
        memory.add("I like tea")
    with running(folder, config="[embedding]\ndimensions = 128\n") as daemon, daemon.client() as memory:
        assert ["vector"] == [leg.value for leg in memory.search("tea").unavailable_legs]
        assert "I like tea" == memory.search("tea").hits[0].memory.content
        assert "another model" in memory.server_info().warnings[0]
        memory.add("I like coffee")  # without a vector, so that the first model's stay usable
    with running(folder, config=NO_MODEL) as daemon, daemon.client() as memory:
        assert {"I like tea", "I like coffee"} == {hit.memory.content for hit in memory.search("like").hits}
        assert ["vector"] == [leg.value for leg in memory.search("tea").unavailable_legs]
    with running(folder, config="") as daemon, daemon.client() as memory:
        assert () == memory.search("tea").unavailable_legs
        assert "I like tea" == memory.search("something hot to drink").hits[0].memory.content
        assert "1 memories have no vector" in memory.server_info().warnings[0]


def test_garbage_is_collected_at_start_and_by_command(folder):
    settings = "[memory]\ndelete_grace_days = 0.0\nauto_gc = {}\n"
    with running(folder, config=NO_MODEL + settings.format("false")) as daemon, daemon.client() as memory:
        for n in range(3):
            memory.delete(memory.add(f"x{n}").memory.id)
        dry = memory.run_gc(dry_run=True)
        assert (3, True) == (dry.deleted_count, dry.dry_run)
        assert 3 == memory.server_info().memory_count
        assert 3 == memory.run_gc().deleted_count
        assert 0 == memory.server_info().memory_count
        memory.delete(memory.add("y", kind=Kind.EVENT).memory.id)
    with running(folder, config=NO_MODEL + settings.format("true")) as daemon, daemon.client() as memory:
        deadline = time.monotonic() + 15
        while memory.server_info().memory_count and time.monotonic() < deadline:
            time.sleep(0.05)
        assert 0 == memory.server_info().memory_count


# --- the client without a daemon ---


def test_a_client_without_a_daemon_says_where_it_looked(folder):
    with MemoryClient(f"unix://{folder}/none", user_id="u") as memory:
        began = time.monotonic()
        for call in (lambda: memory.search("x"), lambda: memory.add("x")):
            with pytest.raises(Unavailable, match="none: .*; start it, or name another endpoint"):
                call()
        assert time.monotonic() - began < 5  # of timeout_s 10
    patient = MemoryClient(f"unix://{folder}/none", user_id="u", timeout_s=0.3, wait_for_ready=True)
    with patient as memory:
        with pytest.raises(TimedOut, match="in time$"):
            memory.search("x")
        with pytest.raises(TimedOut, match="in time; a write may have happened$"):
            memory.add("x")


def test_a_client_outlives_a_restart_of_the_daemon(folder):
    daemon = Daemon(folder, config=NO_MODEL)
    daemon.start()
    with daemon.client(timeout_s=30) as memory:
        memory.add("before")
        daemon.kill()
        restarted = threading.Thread(target=daemon.start)
        restarted.start()
        memory.add("after")  # waits, and is sent once
        restarted.join()
        assert ["after", "before"] == [m.content for m in memory.page().memories]
    daemon.stop()


def test_nothing_is_left_in_the_home_directory(folder):
    home = folder / "home"
    home.mkdir()
    with running(folder, env={"HOME": str(home)}) as daemon, daemon.client() as memory:
        memory.add("x")
        memory.search("y")
    assert [] == list(home.rglob("*"))


def test_a_store_that_cannot_note_its_progress_ends_the_daemon(folder):
    program = (
        "import sys, memoryd.store.duckdb.watermark as g\n"
        "def advance(self, seq):\n    raise OSError(28, 'planted')\n"
        "g.CommitWatermark.advance = advance\n"
        "from memoryd.__main__ import main\nmain()"
    )
    daemon = Daemon(folder, config=NO_MODEL)
    arguments = daemon.command("serve")[3:]
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], stderr=subprocess.DEVNULL)
    with daemon.client(timeout_s=30, wait_for_ready=True) as memory:
        assert memory.add("committed, so acknowledged").memory
    assert 70 == process.wait(timeout=30)
    daemon.start()
    with daemon.client() as memory:
        assert ["committed, so acknowledged"] == [m.content for m in memory.page().memories]
    daemon.stop()


def test_the_server_never_loads_the_hub_nor_the_client_the_server():
    def loaded(code: str) -> set[str]:
        script = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
        return set(
            subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
        )

    server = loaded(
        "import memoryd.daemon.serve\nfrom memoryd.embedding.onnx import builtin_encoder\nbuiltin_encoder()"
    )
    assert "huggingface_hub" not in server
    assert "duckdb" in server
    asking = loaded("import memoryd.cli.main")
    assert not asking & {"duckdb", "numpy", "onnxruntime", "tokenizers", "structlog"}
    client = loaded("import memory_client\nmemory_client.AsyncMemoryClient\nimport memory_cli.main")
    assert not client & {"duckdb", "numpy", "onnxruntime", "tokenizers", "structlog"}
