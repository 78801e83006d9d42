"""What identity costs: a call's way through the gate, a thousand sockets, a flood from next door."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import grpc
from memory_client import Caveats, Draft, GrantSpec, MemoryClient, attenuate, check_permissions

from memoryd.audit.log import AuditLog
from memoryd.daemon.logs import set_up_logs
from memoryd.model.call_context import CallContext
from memoryd.model.grant import Door, Permission
from memoryd.service.gate import Call
from memoryd.v1 import identity_service_pb2 as pb
from tests.bench.report import cpu_s, one, quantile, row, rss_mb
from tests.bench.seed import sentences
from tests.builders import ports_over, ram_store, servers_over
from tests.doors import a_world, socket_of

PATH = "/memoryd.v1.IdentityService/WhoAmI"


async def _one(raw: bytes):
    yield raw


class _Context:
    """What gRPC tells of a call."""

    def __init__(self, token: str) -> None:
        self._metadata = (("user-agent", "bench"), *((("authorization", f"Bearer {token}"),) if token else ()))

    def invocation_metadata(self):
        return self._metadata


def gate(rounds: int) -> None:
    """The whole way of a call against its method alone, in turns, in one process: no wire, no store, no model."""

    def now() -> datetime:
        return datetime.now(UTC)

    async def measure(folder: Path) -> None:
        async with ports_over(ram_store()) as ports:
            audit = AuditLog(folder / "audit.jsonl")
            doors = servers_over(ports, folder, now, audit=audit)
            doors.listeners.take()
            full = check_permissions(["full"])
            spec = GrantSpec(user_id="alice", chat_ids=("c",), permissions=full, quota={"calls_per_second": 1e6})
            box = await doors.issuer.open_sandbox(spec, now())
            issued, _ = await doors.issuer.issue(box.grant.id, now())
            narrow = Caveats(permissions=full, chat_ids=frozenset({"c"}), expire_time=datetime(2100, 1, 1, tzinfo=UTC))
            token = attenuate(issued.text(), narrow)
            raw = pb.WhoAmIRequest(user_id="alice", chat_id="c").SerializeToString()
            method = doors._methods[PATH]
            for name, door, grant_id, shown in (
                ("admin socket", Door.ADMIN, "", ""),
                ("sandbox", Door.SANDBOX, box.grant.id, ""),
                ("token with three caveats", Door.SHARED, "", token),
            ):
                made = doors.gate(door, grant_id)
                details = type("Details", (), {"method": PATH})
                serve = made.service(details).stream_unary
                context = _Context(shown)
                session = made._authenticator.authenticate(context.invocation_metadata(), now())
                call_context = CallContext(time=now(), call="", rpc="", door="")
                steps = []
                for _ in range(rounds):
                    began = time.perf_counter()
                    who = made._authenticator.authenticate(
                        context.invocation_metadata(), call_context.time, call_context
                    )
                    who.require(Permission.SEARCH)
                    who.identity("", "alice", "c")
                    if who.grant is not None:
                        await made._grants.charge(who.grant, 0, call_context.time)
                    steps.append((time.perf_counter() - began) * 1e3)
                row(f"Authenticate, authorise, charge: {name}", steps, goal="p50 ≤ 0.1")
                costs = []
                for _ in range(rounds):
                    began = time.perf_counter()
                    request = method.request.FromString(raw)
                    call = Call(session, ("default", "alice", "c"), now(), call_context, context)
                    (await method.run(request, call)).SerializeToString()
                    alone = time.perf_counter() - began
                    began = time.perf_counter()
                    await serve(_one(raw), context)
                    costs.append((time.perf_counter() - began - alone) * 1e3)
                row(f"The whole gate, {name}: with message, audit line and log", costs)
            await doors.stop(0)
            doors.let_go()
            audit.close()

    set_up_logs("json", "info")  # as a daemon has it
    folder = Path(tempfile.mkdtemp(prefix="mb"))
    asyncio.run(measure(folder))
    shutil.rmtree(folder)


def doors(rounds: int) -> None:
    """The same call through each door, in turns."""
    folder = Path(tempfile.mkdtemp(prefix="mb"))
    with a_world(folder) as world:
        box = world.sandbox(quota={"calls_per_second": 0})
        token = world.token(quota={"calls_per_second": 0})
        ways = {
            "admin socket": (world.channel(world.daemon.endpoint), ()),
            "sandbox": (world.channel(socket_of(box)), ()),
            "shared socket, token": (world.channel(world.shared), (("authorization", f"Bearer {token}"),)),
            "TCP with TLS, token": (world.channel(world.tcp), (("authorization", f"Bearer {token}"),)),
        }
        raw = pb.WhoAmIRequest(user_id="alice").SerializeToString()
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, (channel, metadata) in ways.items():
                began = time.perf_counter()
                channel.unary_unary(PATH)(raw, metadata=metadata)
                times[name].append((time.perf_counter() - began) * 1e3)
        base = statistics.median(times["admin socket"])
        for name, values in times.items():
            row(f"WhoAmI, {name}", values, goal="" if name == "admin socket" else "p50 ≤ admin + 0.1")
            if name != "admin socket":
                one("  more than the admin socket", statistics.median(values) - base, "ms", "≤ 0.1 (but for TLS)")
    shutil.rmtree(folder)


def listeners(count: int) -> None:
    """So many sockets at once."""
    folder = Path(tempfile.mkdtemp(prefix="mb"))
    with a_world(folder) as world, world.admin() as host:
        pid = world.daemon.process.pid
        spec = GrantSpec(user_id="alice", permissions=check_permissions(["search"]))
        for _ in range(5):
            host.revoke_grant(host.open_sandbox(spec).grant.id)
        before, opened, closed, ids = rss_mb(pid), [], [], []
        for _ in range(count):
            began = time.perf_counter()
            box = host.open_sandbox(spec)
            opened.append((time.perf_counter() - began) * 1e3)
            ids.append(box.grant.id)
        with MemoryClient(socket_of(box), user_id="", chat_id="", agent_id="") as inside:
            inside.whoami()
        row(f"sandbox open, up to {count}", opened, goal="≤ 50 each")
        one("  resident memory a socket", (rss_mb(pid) - before) * 1024 / count, "KB", "≤ 64")
        one("  descriptors of the daemon", len(os.listdir(f"/proc/{pid}/fd")), "")
        time.sleep(3)
        cpu, wall = cpu_s(pid), time.perf_counter()
        time.sleep(20)
        one("  CPU while nobody calls", 100 * (cpu_s(pid) - cpu) / (time.perf_counter() - wall), "%", "≤ 1")
        world.daemon.stop()
        one(f"  start with {count} of them", world.daemon.start(), "s")
    with_again(folder, ids, closed)
    shutil.rmtree(folder)


def with_again(folder: Path, ids: list[str], closed: list[float]) -> None:
    """Close what was opened before a restart."""
    from tests.doors import NO_MODEL
    from tests.support import running

    with running(folder, config=NO_MODEL) as daemon, daemon.client() as host:
        for grant_id in ids:
            began = time.perf_counter()
            host.revoke_grant(grant_id)
            closed.append((time.perf_counter() - began) * 1e3)
    row(f"sandbox close, {len(ids)} of them", closed, goal="≤ 50 each")


def flood(count: int) -> None:
    """A victim's searches while another sandbox offers BatchAdd(100) without pause."""
    folder = Path(tempfile.mkdtemp(prefix="mb"))
    with a_world(folder, config="") as world:
        victim = world.sandbox(user_id="victim", quota={"calls_per_second": 0})
        unbound = {"calls_per_second": 0, "writes_per_day": 0, "stored_memories": 0}
        flooder = world.sandbox(user_id="flooder", quota=unbound)
        queries = sentences(2 * count, seed=5)
        with world.inside(victim) as inside:
            for n in range(0, 1000, 100):
                inside.add_batch([Draft(content=text) for text in sentences(100, seed=50 + n)])

            def search(texts: list[str]) -> list[float]:
                times = []
                for text in texts:
                    began = time.perf_counter()
                    inside.search(text)
                    times.append((time.perf_counter() - began) * 1e3)
                return times

            search(queries[:5])
            quiet = search(queries[:count])
            done = threading.Event()

            def offer() -> None:
                with MemoryClient(socket_of(flooder), user_id="", chat_id="", agent_id="", timeout_s=120) as other:
                    n = 0
                    while not done.is_set():
                        n += 1
                        other.add_batch([Draft(content=f"{text} {n}") for text in sentences(100, seed=1000 + n)])

            thread = threading.Thread(target=offer)
            thread.start()
            time.sleep(1)
            busy = search(queries[count:])
            done.set()
            thread.join()
    row("Search of a sandbox, quiet", quiet)
    row("Search beside a sandbox that floods BatchAdd(100)", busy, goal="p99 ≤ 3 × quiet p99")
    one("  ratio of the p99s", quantile(busy, 0.99) / quantile(quiet, 0.99), "×", "≤ 3")
    shutil.rmtree(folder)


def not_found(rounds: int) -> None:
    """Somebody else's id against one that nobody has, in turns."""
    folder = Path(tempfile.mkdtemp(prefix="mb"))
    with a_world(folder) as world:
        box = world.sandbox(user_id="mallory", quota={"calls_per_second": 0})
        with world.admin("bob") as bob:
            for n in range(0, 2000, 100):
                made = bob.add_batch([Draft(content=f"statement {n} {k} " + "word " * 50) for k in range(100)])
        theirs = made[50].memory.id
        nobodys = theirs[::-1]
        channel = world.channel(socket_of(box))
        call = channel.unary_unary("/memoryd.v1.MemoryService/GetMemory")
        times: dict[str, list[float]] = {theirs: [], nobodys: []}
        for n in range(rounds):
            for memory_id in (theirs, nobodys) if n % 2 else (nobodys, theirs):
                raw = b"\x22" + bytes([len(memory_id)]) + memory_id.encode()
                began = time.perf_counter()
                try:
                    call(raw)
                except grpc.RpcError:
                    times[memory_id].append((time.perf_counter() - began) * 1e3)
        row("GetMemory of somebody else's id", times[theirs])
        row("GetMemory of an id that nobody has", times[nobodys], goal="alike")
        medians = [statistics.median(values) for values in times.values()]
        one("  ratio of the medians", medians[0] / medians[1], "×", "about 1")
    shutil.rmtree(folder)
