"""
Commands of the project in processes that are forked from one which has imported everything.

Importing is most of what a short-lived daemon costs. The command is the same, `main` of its module, in a process of
its own with its own arguments, environment, directory and files. A test of how a process starts (an interpreter of its
own, preloaded libraries, a terminal) uses `subprocess` as ever; with MEMORYD_FORKS=0 all do.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn, Self

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
KNOWN = {"input", "timeout", "text", "check", "capture_output", "env"}  # options of a run
LONGEST = 200_000  # bytes of a request
PAUSE_S = 0.003
PATIENCE_S = 10.0
ROOT = Path(__file__).parent.parent
READ_AT_THE_START = ("PYTHON", "LD_", "MALLOC_", "LC_", "TZ")  # by the interpreter, or in C
ALIKE = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}  # of these too, but they change nothing that a test sees
COMMANDS = {"memoryd": "memoryd.__main__:main", "memory": "memory_cli.main:run", "memory-mcp": "memory_mcp.main:run"}
IMPORTED = (
    "memoryd.daemon.serve", "memoryd.daemon.metrics", "memoryd.http.door", "memoryd.inspector.app",
    "memoryd.metrics.endpoint", "memoryd.store.opening", "memoryd.backup.folder", "memoryd.embedding.packaged",
    "memoryd.web.server", "memory_mcp.server", "memory_mcp.http", "duckdb", "onnxruntime", "tokenizers", "uvicorn",
)  # fmt: skip
_one_at_a_time = threading.Lock()


class Forked:
    """A process as subprocess.Popen has it; it is a child of this one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._asks = threading.Lock()
        self.stdout: IO[Any] | None = None
        self.stderr: IO[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()
        self.wait()

    def poll(self) -> int | None:
        with self._asks:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(PAUSE_S)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def can_fork(env: Mapping[str, str]) -> bool:
    """Whether a process with such an environment may be forked: nothing in it is read when an interpreter starts."""
    is_read = any(name.startswith(READ_AT_THE_START) and name not in ALIKE for name in env)
    is_plain = not is_read and env.get("LANG", "C.UTF-8") == "C.UTF-8"
    is_test = "PYTEST_VERSION" in os.environ  # a measurement starts what it measures as its user does
    return is_plain and is_test and sys.platform == "linux" and os.environ.get("MEMORYD_FORKS") != "0"


def fork(command: str, arguments: Sequence[str], env: Mapping[str, str], files: Sequence[int]) -> Forked:
    """Begin a command with its standard input, output and errors."""
    asked = {"command": command, "arguments": list(arguments), "env": dict(env), "cwd": os.getcwd(), "umask": _umask()}
    door = _forker(os.getpid())
    with _one_at_a_time:
        _adopts(True)
        socket.send_fds(door, [json.dumps(asked).encode()], files)
        pid = int(door.recv(LONGEST))
        _adopts(False)
    return Forked(pid)


def _named(call: Sequence[object]) -> tuple[str, list[str]]:
    """Return which command a call runs, and its arguments; "" if it is none of ours."""
    words = [os.fspath(one) for one in call]  # type: ignore[arg-type]
    if words[:3] == [sys.executable, "-m", "memoryd"]:
        return "memoryd", [str(ROOT / "memoryd/__main__.py"), *words[3:]]
    if words[0] in {str(Path(sys.executable).parent / one) for one in COMMANDS}:
        return Path(words[0]).name, words
    return "", words


def begin_command(call: Sequence[object], **options: Any) -> subprocess.Popen | Forked:
    """Begin a command as subprocess.Popen does, which does it where it cannot be forked."""
    name, arguments = _named(call)
    env = options.get("env") or os.environ
    if not name or not can_fork(env) or not {"env", "stdout", "stderr", "text"}.issuperset(options):
        return subprocess.Popen(call, **options)  # type: ignore[call-overload]
    kinds = (subprocess.DEVNULL, options.get("stdout"), options.get("stderr"))
    pipes = [os.pipe() if kind == subprocess.PIPE else () for kind in kinds]
    with open(os.devnull, "r+b") as nothing:
        files = []
        for number, (kind, pipe) in enumerate(zip(kinds, pipes, strict=True)):
            if pipe:
                files.append(pipe[1])
            elif kind is None:
                files.append(number)
            else:
                files.append(nothing.fileno() if kind == subprocess.DEVNULL else kind.fileno())
        process = fork(name, arguments, env, files)
    for attribute, pipe in zip(("stdin", "stdout", "stderr"), pipes, strict=True):
        if pipe:
            os.close(pipe[1])
            mode = "r" if options.get("text") else "rb"
            setattr(process, attribute, open(pipe[0], mode))  # noqa: SIM115  closed with the process
    return process


def run_command(call: Sequence[object], **options: Any) -> subprocess.CompletedProcess:
    """Run a command to its end as subprocess.run does, which does it where it cannot be forked."""
    name, arguments = _named(call)
    env = options.get("env") or os.environ
    if not name or not can_fork(env) or not KNOWN.issuperset(options) or not options.get("capture_output"):
        return subprocess.run(call, check=options.pop("check", False), **options)  # type: ignore[call-overload]
    return _run(name, arguments, **{**options, "env": env})


def _run(
    name: str,
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    input: str | bytes | None = None,  # noqa: A002  as subprocess.run has it
    timeout: float | None = None,
    text: bool = False,
    check: bool = False,
    **_: object,
) -> subprocess.CompletedProcess:
    given = input.encode() if isinstance(input, str) else input or b""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(given)
        stdin.seek(0)
        process = fork(name, arguments, env, [stdin.fileno(), stdout.fileno(), stderr.fileno()])
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        told = []
        for one in (stdout, stderr):
            one.seek(0)
            told.append(one.read().decode() if text else one.read())
    done = subprocess.CompletedProcess(list(arguments), code, *told)
    if check:
        done.check_returncode()
    return done


def _adopts(does: bool) -> None:
    """Say whether this process becomes the parent of a descendant whose own parent ends; by default it is not."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(does), 0, 0, 0)


@cache
def _forker(of: int) -> socket.socket:
    """Return the socket of this process's forker."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {name: value for name, value in os.environ.items() if not name.startswith(READ_AT_THE_START)}
    command = [sys.executable, "-m", "tests.forking", str(theirs.fileno())]
    process = subprocess.Popen(
        command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=env | {"LANG": "C.UTF-8"}, cwd=ROOT
    )
    theirs.close()
    atexit.register(process.wait, PATIENCE_S)
    atexit.register(ours.close)  # before it: then the forker ends
    return ours


def _umask() -> int:
    """Return the umask without setting one, which other threads would see."""
    [told] = re.findall(r"^Umask:\s*([0-7]+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(told, 8)


def _serve(door: socket.socket) -> NoReturn:
    """Fork a process for each request, until the tests end."""
    before = dict(os.environ)
    mains = {}
    for name, place in COMMANDS.items():
        module, _, function = place.partition(":")
        mains[name] = getattr(importlib.import_module(module), function)
    for module in IMPORTED:
        importlib.import_module(module)
    assert len(os.listdir("/proc/self/task")) == 1, "an import has started a thread: what is forked would lack it"
    added = {name: value for name, value in os.environ.items() if name not in before}
    while True:
        raw, files, *_ = socket.recv_fds(door, LONGEST, 3)
        if not raw:
            os._exit(0)
        told, tell = os.pipe()
        if (between := os.fork()) == 0:
            if (pid := os.fork()) == 0:
                break
            os.write(tell, str(pid).encode())
            os._exit(0)
        os.waitpid(between, 0)  # now the process has its new parent
        door.send(os.read(told, 32))
        for one in (told, tell, *files):
            os.close(one)
    door.close()
    asked = json.loads(raw)
    for number, one in enumerate(files):
        os.dup2(one, number)
    for one in (told, tell, *files):
        os.close(one)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  for as long as it lives
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  for as long as it lives
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115  as above
    os.environ.clear()
    os.environ.update(asked["env"] | added)
    os.chdir(asked["cwd"])
    os.umask(asked["umask"])
    sys.argv = asked["arguments"]
    sys.exit(mains[asked["command"]]())


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
