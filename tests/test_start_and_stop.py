"""Starting, stopping, and the client without a daemon."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from memory_client import Kind, MemoryClient, MemorydError, TimedOut, Unavailable

from tests.forking import run_command
from tests.support import PATIENCE_S, Daemon, running, until

NO_MODEL = '[embedding]\nprovider = "none"\n'


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
        assert 0 == sum(log.stat().st_size for log in folder.glob("memory.duckdb.wal"))  # a clean stop folds it in
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
        assert 0 == daemon.process.wait(timeout=PATIENCE_S)


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
    tried = run_command(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (78, 1) == (tried.returncode, len(tried.stderr.strip().splitlines())), tried.stderr
    assert words in tried.stderr


def test_systemd_is_told_of_readiness_life_and_the_end(folder):
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    channel.bind(str(folder / "notify"))
    channel.settimeout(30)
    env = {"NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": "400000"}
    with running(folder, config=NO_MODEL, env=env) as daemon:
        first = channel.recv(199)
        assert first.startswith(b"EXTEND_TIMEOUT_USEC=30000000\nSTATUS=opening 0 MiB"), first
        heard = [channel.recv(99) for _ in range(3)]
        assert [b"READY=1\nSTATUS=serving", b"WATCHDOG=1", b"WATCHDOG=1"] == heard
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
        with MemoryClient(
            f"unix://{folder}/run/admin.sock", user_id="u", timeout_s=PATIENCE_S, wait_for_ready=True
        ) as memory:
            memory.add("x")
        assert (folder / "state" / "memory.duckdb").exists()
    finally:
        process.terminate()
        assert 0 == process.wait(timeout=PATIENCE_S)


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
        assert until(lambda: not memory.server_info().memory_count)


def test_a_client_without_a_daemon_says_where_it_looked(folder):
    with MemoryClient(f"unix://{folder}/none", user_id="u") as memory:
        for call in (lambda: memory.search("x"), lambda: memory.add("x")):
            with pytest.raises(Unavailable, match=r"none: .*; start it \(memoryd serve\), or name another endpoint"):
                call()
    patient = MemoryClient(f"unix://{folder}/none", user_id="u", timeout_s=0.3, wait_for_ready=True)
    with patient as memory:
        with pytest.raises(TimedOut, match="in time$"):
            memory.search("x")
        with pytest.raises(TimedOut, match="in time; a write may have happened$"):
            memory.add("x")


def test_a_client_outlives_a_restart_of_the_daemon(folder):
    daemon = Daemon(folder, config=NO_MODEL)
    daemon.start()
    with daemon.client(timeout_s=PATIENCE_S) as memory:
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
    daemon = Daemon(folder, config=NO_MODEL + "[memory]\nauto_gc = false\n")
    arguments = daemon.command("serve")[3:]
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], stderr=subprocess.DEVNULL)
    with daemon.client(timeout_s=PATIENCE_S, wait_for_ready=True) as memory:
        assert memory.add("committed, so acknowledged").memory
    assert 70 == process.wait(timeout=PATIENCE_S)
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
        "import memoryd.daemon.serve\nfrom memoryd.embedding.packaged import builtin_encoder\nbuiltin_encoder()"
    )
    assert "huggingface_hub" not in server
    assert "onnxruntime" in server
    asking = loaded("import memoryd.cli.main")
    assert not asking & {"duckdb", "numpy", "onnxruntime", "tokenizers", "structlog"}
    client = loaded("import memory_client\nmemory_client.AsyncMemoryClient\nimport memory_cli.main")
    assert not client & {"duckdb", "numpy", "onnxruntime", "tokenizers", "structlog"}
