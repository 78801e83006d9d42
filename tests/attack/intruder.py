"""
What is tried from inside a cage: `python -m tests.attack.intruder ATTACK DIRECTORY FACTS`, FACTS in JSON.

Prints one JSON object of what came of it, each entry an outcome in a word; nothing here asserts.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import json
import os
import random
import resource
import socket
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import grpc
import memory_cli.completion
import memory_cli.main
import memory_client.aio
import memory_client.failures
from google.rpc import error_details_pb2, status_pb2  # imported while files can still be read
from memory_client import Draft, MemoryClient, MemorydError

from memoryd.v1 import memory_service_pb2 as pb
from memoryd.v1 import memory_service_pb2_grpc
from tests.attack import cage
from tests.support import PATIENCE_S, until

OWN = f"{cage.MOUNT}/memory.sock"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, HEADERS, DATA, RST = 4, 6, 1, 0, 3
NEEDED = (error_details_pb2, status_pb2, memory_cli.completion, memory_client.aio, memory_client.failures)


def word(error: BaseException) -> str:
    if isinstance(error, OSError):
        return errno.errorcode.get(error.errno or 0, "OSError")
    if isinstance(error, MemorydError):
        return error.reason
    if isinstance(error, grpc.RpcError):
        return error.code().name
    return type(error).__name__


def outcome(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except Exception as error:  # noqa: BLE001  whatever comes of it is the answer
        return word(error)
    return "DONE"


def connect(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(10)
    try:
        made.connect(path)
    except BaseException:
        made.close()
        raise
    return made


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def greet(path: str = OWN) -> socket.socket:
    """Connect and say hello as HTTP/2 does."""
    made = connect(path)
    made.sendall(PREFACE + frame(SETTINGS, 0, 0, b""))
    return made


def client(endpoint: str = f"unix://{OWN}", **options: Any) -> MemoryClient:
    return MemoryClient(
        endpoint, wait_for_ready=False, **{"timeout_s": PATIENCE_S, "user_id": "", "chat_id": "", **options}
    )


def works() -> str:
    """Whether the cage's own socket serves it."""
    with client() as memory:
        return outcome(memory.whoami)


# --- attacks ---


def reach(facts: dict[str, Any]) -> dict[str, str]:
    """Use, list, read, replace and link to what is not its own."""
    victim = facts["victim"]
    link = "/tmp/link-to-a-victim"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(link)
    os.symlink(f"{victim}/memory.sock", link)
    found = {
        "own": works(),
        "connect to the victim's socket": outcome(lambda: connect(f"{victim}/memory.sock")),
        "through a link": outcome(lambda: connect(link)),
        "by the client through a link": outcome(lambda: client(f"unix://{link}").whoami()),
        "connect to the admin socket": outcome(lambda: connect(facts["admin"])),
        "list the sandboxes": outcome(lambda: os.listdir(os.path.dirname(victim))),
        "read the database": outcome(lambda: open(facts["database"], "rb").close()),
        "read the audit log": outcome(lambda: open(facts["audit"], "rb").close()),
        "unlink its own socket": outcome(lambda: os.unlink(OWN)),
        "put a link in its place": outcome(lambda: os.symlink("/etc/passwd", f"{cage.MOUNT}/x")),
        "chmod its socket": outcome(lambda: os.chmod(OWN, 0)),
        "chmod its directory": outcome(lambda: os.chmod(cage.MOUNT, 0o700)),
        "mount the victim's directory": outcome(lambda: cage._mount(victim, "/run", None, cage.MS_BIND)),
        "mount its own writable": outcome(
            lambda: cage._mount("none", cage.MOUNT, None, cage.MS_REMOUNT | cage.MS_BIND)
        ),
        "a path that is too long": outcome(lambda: client(f"unix:///{'x' * 200}").whoami()),
        "a path that is too long, bare": outcome(lambda: connect("/" + "x" * 200)),
    }
    os.unlink(link)
    return found


def spoof(facts: dict[str, Any]) -> dict[str, str]:
    """Say in the environment, on the command line, in requests and in metadata that it is somebody else."""

    def command(*words: str, **env: str) -> str:
        os.environ.clear()
        os.environ.update({"MEMORY_ENDPOINT": f"unix://{OWN}", **env})
        out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = memory_cli.main.main(list(words))
            except SystemExit as end:
                code = end.code
            out.flush()
            shown = out.buffer.getvalue().decode()
        return f"{code}{' LEAKED' if facts['canary'] in shown else ''}"

    victim, chat = facts["user"], facts["chat"]
    found = {
        "honest": command("search", "secret"),
        "MEMORY_USER_ID": command("search", "secret", MEMORY_USER_ID=victim),
        "MEMORY_CHAT_ID": command("search", "secret", MEMORY_CHAT_ID=chat),
        "MEMORY_AGENT_ID": command("search", "secret", MEMORY_AGENT_ID="other"),
        "MEMORY_TOKEN": command("search", "secret", MEMORY_TOKEN="rubbish"),  # noqa: S106  it is rubbish
        "--user": command("list", "--user", victim),
        "--chat": command("context", "secret", "--chat", chat),
        "add for another": command("add", "planted", "--user", victim),
        "another's endpoint": command("whoami", MEMORY_ENDPOINT=f"unix://{facts['victim']}/memory.sock"),
        "get": command("get", facts["id"]),
        "delete": command("delete", facts["id"]),
        "delete by a prefix": command("delete", facts["id"][:8]),
        "undelete": command("undelete", facts["id"]),
    }
    with grpc.insecure_channel(f"unix:{OWN}") as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        lies = (("user_id", victim), ("x-user-id", victim), ("x-forwarded-for", victim), ("grant_id", facts["grant"]))

        def search() -> None:
            answer = stub.SearchMemories(pb.SearchMemoriesRequest(query="secret"), timeout=PATIENCE_S, metadata=lies)
            if facts["canary"] in str(answer):
                raise AssertionError

        found["metadata"] = outcome(search)
    return found


def connections(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold thousands of connections, with and without a greeting, till descriptors run out."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (facts["count"] + 64, facts["count"] + 64))
    held, ends = [], Counter()
    for n in range(facts["count"]):
        made = socket.socket(socket.AF_UNIX)
        made.setblocking(False)
        try:
            made.connect(OWN)
            if n % 2:
                made.send(PREFACE + frame(SETTINGS, 0, 0, b""))
            ends["CONNECTED"] += 1
        except OSError as error:
            ends[word(error)] += 1
        held.append(made)
    time.sleep(facts["seconds"])
    for made in held:
        made.close()
    until(lambda: works() == "DONE")
    return {"ends": dict(ends), "own afterwards": works()}


def slow(facts: dict[str, Any]) -> dict[str, Any]:
    """Drip: a byte now and then of a greeting, of headers, of a message."""
    half = frame(HEADERS, 0, 1, b"\x83")  # a header block that does not end
    starts = [b"P", PREFACE[:10], PREFACE, PREFACE + frame(SETTINGS, 0, 0, b"") + half]
    held = []
    for n in range(facts["count"]):
        with contextlib.suppress(OSError):
            made = connect(OWN)
            made.setblocking(False)
            made.send(starts[n % len(starts)])
            held.append(made)
    end = time.monotonic() + facts["seconds"]
    while time.monotonic() < end:
        for made in held:
            with contextlib.suppress(OSError):
                made.send(b"\x00")
        time.sleep(0.2)
    for made in held:
        made.close()
    return {"own afterwards": works()}


def oversize(facts: dict[str, Any]) -> dict[str, str]:
    """Metadata, messages, identifiers and batches that are too large, and small ones that unfold."""
    with grpc.insecure_channel(
        f"unix:{OWN}", options=[("grpc.max_metadata_size", 1 << 22), ("grpc.max_send_message_length", -1)]
    ) as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        raw = channel.unary_unary("/memoryd.v1.MemoryService/AddMemory")
        search = pb.SearchMemoriesRequest(query="x")

        def with_metadata(size: int, count: int = 1) -> str:
            data = [(f"x-{n}", "v" * size) for n in range(count)]
            return outcome(lambda: stub.SearchMemories(search, timeout=PATIENCE_S, metadata=data))

        unfolding = pb.AddMemoryRequest(content="a" * facts["bytes"]).SerializeToString()
        return {
            "16 KiB of metadata": with_metadata(16 * 1024),
            "64 KiB of metadata": with_metadata(64 * 1024),
            "2,000 metadata keys": with_metadata(20, 2000),
            "a long path": outcome(lambda: channel.unary_unary("/memoryd.v1." + "x" * 12_000)(b"", timeout=PATIENCE_S)),
            "a message over the limit": outcome(lambda: raw(b"\x2a" + b"x" * (5 << 20), timeout=PATIENCE_S)),
            "a message that unfolds": outcome(
                lambda: channel.unary_unary("/memoryd.v1.MemoryService/AddMemory")(
                    unfolding, timeout=PATIENCE_S, compression=grpc.Compression.Gzip
                )
            ),
            "an authorization of 12 KiB": outcome(
                lambda: stub.SearchMemories(
                    search, timeout=PATIENCE_S, metadata=[("authorization", "Bearer " + "A" * 12_000)]
                )
            ),
            "deep nesting": outcome(lambda: raw(b"\x62\x02" * 50_000, timeout=PATIENCE_S)),
            "two million items of nothing": outcome(
                lambda: channel.unary_unary("/memoryd.v1.MemoryService/BatchAddMemories")(
                    b"\x22\x00" * 2_000_000, timeout=10
                )
            ),
            "own afterwards": works(),
        }


def garbage(facts: dict[str, Any]) -> dict[str, Any]:
    """Frames that mean nothing, too many that mean something, and protocols that are not spoken here."""
    dice = random.Random(facts["seed"])
    hello = PREFACE + frame(SETTINGS, 0, 0, b"")
    streams = range(1, 2 * facts["count"], 2)
    request = b"\x83\x86\x44\x1a/memoryd.v1.X/AddMemory"
    volleys: list[bytes] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + dice.randbytes(500),
        b"\x00" * 65_536,
        hello + frame(SETTINGS, 0, 0, b"\x00\x01\xff\xff\xff\xff" * 5000),
        hello + b"".join(frame(SETTINGS, 0, 0, b"") for _ in range(5000)),
        hello + b"".join(frame(PING, 0, 0, b"12345678") for _ in range(5000)),
        hello + b"\xff\xff\xff" + bytes([DATA, 0]) + b"\x00\x00\x00\x01",
        hello + b"".join(frame(HEADERS, 5, n, request) + frame(RST, 0, n, b"\0\0\0\x08") for n in streams),
        hello + b"".join(frame(DATA, 0, n, b"x" * 100) for n in streams),
        hello + frame(HEADERS, 4, 1, zlib.compress(b"x" * 100_000)),
        *(hello + frame(dice.randrange(12), dice.randrange(256), dice.randrange(9), dice.randbytes(dice.randrange(99)))
          for _ in range(facts["count"])),
        *(dice.randbytes(dice.randrange(1, 2000)) for _ in range(facts["count"])),
    ]  # fmt: skip
    ends: Counter[str] = Counter()
    for volley in volleys:

        def send(data: bytes = volley) -> None:
            with connect(OWN) as made:
                made.settimeout(0.3)
                made.sendall(data)
                made.recv(100)

        ends[outcome(send)] += 1
    until(lambda: works() == "DONE")
    return {"ends": dict(ends), "own afterwards": works()}


def flood(facts: dict[str, Any]) -> dict[str, Any]:
    """Offer batches of statements as fast as it can, for so many seconds."""
    ends: Counter[str] = Counter()
    with client(timeout_s=3 * PATIENCE_S) as memory:
        end = time.monotonic() + facts["seconds"]
        n = 0
        while time.monotonic() < end:
            drafts = [Draft(content=f"flood {facts['seed']} {n} {k} " + "word " * 40) for k in range(100)]
            ends[outcome(lambda drafts=drafts: memory.add_batch(drafts))] += 1
            n += 1
    return {"ends": dict(ends)}


ATTACKS = {
    "reach": reach,
    "spoof": spoof,
    "connections": connections,
    "slow": slow,
    "oversize": oversize,
    "garbage": garbage,
    "flood": flood,
}


def main() -> None:
    attack, directory, facts = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    # What a call imports only when it is made is imported now, but no call is made: gRPC would begin threads, and the
    # kernel lets only a process without threads into a user namespace.
    warm = (
        "from tests.attack.intruder import *\noutcome(client('unix:///nowhere').whoami)\n"
        "memory_cli.main.main(['list', '--endpoint', 'unix:///nowhere'])\nprint(*sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", warm], capture_output=True, text=True, check=True).stdout
    for name in found.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    cage.enter(directory)
    print(json.dumps(ATTACKS[attack](facts)), flush=True)
    os._exit(0)  # with connections of any state


if __name__ == "__main__":
    main()
