"""What tests, bench and eval share: a real daemon in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import grpc
from google.rpc import error_details_pb2, status_pb2
from memory_client import MemoryClient

from tests.forking import Forked, begin_command

BIN = Path(sys.executable).parent
PATIENCE = float(os.environ.get("MEMORYD_PATIENCE", "1"))  # on a slow machine, by how much everything takes longer
PATIENCE_S = 60 * PATIENCE
LONGEST_TEMP = 12  # characters of the folder of temporary files; below a longer one sockets do not fit
"""How long anything is waited for, in seconds: on a slower machine set MEMORYD_PATIENCE, by which it is multiplied."""
T = TypeVar("T")
figures: list[str] = []  # what was measured in passing; printed at the end of a run


def until(look: Callable[[], T], pause_s: float = 0.05) -> T:
    """Return what a look says once it is true, or its last word when patience has ended."""
    end = time.monotonic() + PATIENCE_S
    while not (found := look()) and time.monotonic() < end:
        time.sleep(pause_s)
    return found


async def until_async(ready: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it is so; it must be within patience."""
    end = time.monotonic() + PATIENCE_S
    while not await ready():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder of its own with a short path, wherever temporary files are: the path of a socket has 107 bytes."""
    is_long = len(tempfile.gettempdir()) > LONGEST_TEMP and os.access("/tmp", os.W_OK)
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp" if is_long else None, ignore_cleanup_errors=True) as path:
        yield Path(path)


class Daemon:
    """`memoryd serve` in a process of its own, on a socket in its data directory."""

    def __init__(self, folder: Path, *, config: str = "", env: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.socket = folder / "run" / "admin.sock"
        self.database = folder / "memory.duckdb"
        self.log = folder / "log"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), **(env or {})}
        self._arguments = ["--data-dir", str(folder), "--socket", str(self.socket)]
        if config:
            path = folder / "memoryd.toml"
            path.write_text(config, encoding="utf-8")
            self._arguments += ["--config", str(path)]
        self.process: subprocess.Popen[bytes] | Forked | None = None

    @property
    def endpoint(self) -> str:
        return f"unix://{self.socket}"

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "memoryd", *words, *self._arguments]

    def spawn(self) -> subprocess.Popen[bytes] | Forked:
        with self.log.open("ab") as log:
            self.process = begin_command(self.command("serve"), stdout=log, stderr=log, env=self.env)
        return self.process

    def start(self) -> float:
        """Start it and return the seconds until a call was answered."""
        began = time.perf_counter()
        process = self.spawn()
        while time.perf_counter() - began < PATIENCE_S:
            if process.poll() is not None:
                raise AssertionError(f"memoryd ended with {process.returncode}: {self.log.read_text()}")
            if self.socket.exists():
                try:
                    with MemoryClient(self.endpoint, timeout_s=PATIENCE_S) as client:
                        client.server_info()
                except Exception:  # noqa: BLE001, S110  it is not there yet; the deadline is above
                    pass
                else:
                    return time.perf_counter() - began
            time.sleep(0.005)
        raise AssertionError(f"memoryd did not start in {PATIENCE_S} s: {self.log.read_text()}")

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        if self.process is None or self.process.poll() is not None:
            return 0 if self.process is None else self.process.returncode
        self.process.terminate()
        return self.process.wait(timeout=PATIENCE_S)

    def client(self, user_id: str = "alice", chat_id: str = "", **more) -> MemoryClient:
        return MemoryClient(
            self.endpoint, user_id=user_id, chat_id=chat_id, agent_id="", **{"timeout_s": PATIENCE_S, **more}
        )

    def channel(self) -> grpc.Channel:
        return grpc.insecure_channel(f"unix:{self.socket}")


def reason_of(error: grpc.RpcError) -> str:
    """The reason in the details of a failed call; empty if it has none."""
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
    info = error_details_pb2.ErrorInfo()
    for detail in status_pb2.Status.FromString(details or b"").details:
        if detail.Is(info.DESCRIPTOR):
            detail.Unpack(info)
    return info.reason


@contextmanager
def running(folder: Path, **options) -> Iterator[Daemon]:
    daemon = Daemon(folder, **options)
    daemon.start()
    try:
        yield daemon
    finally:
        if daemon.stop() not in {0, -signal.SIGKILL}:
            print(daemon.log.read_text(), file=sys.stderr)
