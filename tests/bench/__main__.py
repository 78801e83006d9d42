"""
`make bench`: the daemon as its callers meet it, measured from another process over the Unix socket.

A search is judged by its time less its own embedding, which the daemon reports in trailing metadata; a write by the
daemon's CPU time beyond embedding, and by its median. Every query is new, so that no cache is measured. These figures
are no test: they depend on the machine, and what else it does.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from memory_client import Draft, MemoryClient

from memoryd.embedding.packaged import builtin_encoder
from memoryd.v1 import identity_service_pb2, identity_service_pb2_grpc, memory_pb2, memory_service_pb2_grpc
from memoryd.v1 import memory_service_pb2 as pb
from tests.bench import embedding, identity, knowledge, operations, talk
from tests.bench.callers import callers
from tests.bench.http import http
from tests.bench.imports import imports
from tests.bench.inspector import inspector
from tests.bench.mcp import mcp
from tests.bench.night import endpoint, night
from tests.bench.notes import notes
from tests.bench.postgres import postgres
from tests.bench.report import HEAD, compare_with, cpu_s, one, quantile, row, rss_mb, scratch
from tests.bench.scaling import scaling
from tests.bench.seed import fill, sentences
from tests.bench.typescript import typescript
from tests.support import Daemon

NO_MODEL = '[embedding]\nprovider = "none"\n'


def timed_search(stub, query: str, user: str, *, said: bool = False) -> tuple[float, float]:
    """Return (milliseconds of the call, milliseconds of its embedding); with `said`, of memories of kind EPISODE."""
    wanted = memory_pb2.MemoryFilter(kinds=[memory_pb2.MEMORY_KIND_EPISODE] if said else [])
    request = pb.SearchMemoriesRequest(query=query, user_id=user, filter=wanted, min_score=0.0)
    began = time.perf_counter()
    _, call = stub.SearchMemories.with_call(request)
    took = (time.perf_counter() - began) * 1e3
    embedding = next(int(value) for key, value in call.trailing_metadata() if key == "memoryd-embedding-us") / 1e3
    return took, embedding


def baseline(daemon: Daemon) -> None:
    """Measure what every other figure is a multiple of: an empty RPC, and the embedding of a query in the daemon."""
    queries = [" ".join(text.split()[:8]) for text in sentences(300, seed=5)]
    with daemon.channel() as channel:
        whoami = identity_service_pb2_grpc.IdentityServiceStub(channel)
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        rpcs, embeddings = [], []
        for _ in queries:
            began = time.perf_counter()
            whoami.WhoAmI(identity_service_pb2.WhoAmIRequest(user_id="k1"))
            rpcs.append((time.perf_counter() - began) * 1e3)
        for query in queries:
            embeddings.append(timed_search(stub, query, "k1")[1])
    compare_with(rpc_ms=statistics.median(rpcs), embedding_ms=statistics.median(embeddings))
    row("An empty RPC (WhoAmI)", rpcs)
    row("The embedding of a query of 8 words, in the daemon", embeddings)


def searches(daemon: Daemon, user: str, count: int, goal: str, name: str, *, said: bool = False) -> None:
    queries = [f"{text} {n}" for n, text in enumerate(sentences(count, seed=99))]
    with daemon.channel() as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        stub.SearchMemories(pb.SearchMemoriesRequest(query="warm up", user_id=user))
        pid = daemon.process.pid
        began = cpu_s(pid)
        pairs = [
            timed_search(stub, " ".join(query.split()[:8]) + f" {n}", user, said=said)
            for n, query in enumerate(queries)
        ]
        cpu = (cpu_s(pid) - began) / count * 1e3
    row(f"Search, {name}: whole call", [took for took, _ in pairs], cpu=cpu)
    row(f"Search, {name}: less its embedding", [took - embedding for took, embedding in pairs], goal=goal)


def several_sentences(daemon: Daemon, user: str, count: int) -> None:
    """A question alone, with another one, and between four sentences, in turns: whole calls."""
    texts = [" ".join(text.split()[:8]) for text in sentences(6 * count, seed=44)]
    took: dict[int, list[float]] = {1: [], 2: [], 5: []}
    with daemon.channel() as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        for n in range(count):
            some = texts[6 * n : 6 * n + 6]
            for many, values in took.items():
                asked = [*(f"We {text} today." for text in some[: many // 2]), f"What is {some[many]} {many}?"]
                asked += [f"They {text} tonight." for text in some[many // 2 : many - 1]]
                values.append(timed_search(stub, " ".join(asked), user)[0])
    alone = statistics.median(took[1])
    for many, values in took.items():
        more = f", {statistics.median(values) / alone:.2f} × alone" if many > 1 else ""
        row(f"Search, a question among {many} sentences{more}", values, goal="≤ 1.6 × alone" if many > 1 else "")


def adds(daemon: Daemon, user: str, count: int) -> None:
    encoder = builtin_encoder()
    texts = [f"{text} bench {n}" for n, text in enumerate(sentences(count, seed=7))]
    began = time.process_time()
    alone = []
    for text in texts:
        start = time.perf_counter()
        encoder.encode([text], query=False)
        alone.append((time.perf_counter() - start) * 1e3)
    embedding_cpu = (time.process_time() - began) / count * 1e3
    with daemon.client(user) as client:
        client.add("warm up")
        pid = daemon.process.pid
        before = cpu_s(pid)
        times = []
        for text in texts:
            start = time.perf_counter()
            client.add(text)
            times.append((time.perf_counter() - start) * 1e3)
        cpu = (cpu_s(pid) - before) / count * 1e3
    row("Embedding one text, in this process", alone, cpu=embedding_cpu)
    row("Add, scope of 10k", times, goal="p50 ≤ embedding + 4", cpu=cpu)
    one("Add: CPU beyond embedding", cpu - embedding_cpu, "ms", "≤ 4")


def batches(daemon: Daemon, user: str, rounds: int) -> float:
    texts = sentences(100 * rounds, seed=11)
    with daemon.client(user, timeout_s=120) as client:
        client.add_batch([Draft(content="warm up")])
        began = time.perf_counter()
        for n in range(rounds):
            client.add_batch([Draft(content=f"{text} b{n}") for text in texts[n * 100 : n * 100 + 100]])
        return 100 * rounds / (time.perf_counter() - began)


def own_throughput(rounds: int) -> float:
    """Return texts a second of the encoder alone, in pieces of 32, one thread."""
    encoder = builtin_encoder()
    texts = sorted(sentences(100 * rounds, seed=11), key=len)
    began = time.perf_counter()
    for n in range(0, len(texts), 32):
        encoder.encode(texts[n : n + 32], query=False)
    return len(texts) / (time.perf_counter() - began)


def beside_batches(daemon: Daemon, user: str, count: int) -> None:
    """Search while another user's batches run without pause."""
    queries = sentences(2 * count, seed=21)
    with daemon.channel() as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        quiet = [timed_search(stub, f"{query} q", user)[0] for query in queries[:count]]
        done = threading.Event()

        def flood() -> None:
            with daemon.client("flooder", timeout_s=120) as client:
                n = 0
                while not done.is_set():
                    n += 1
                    texts = sentences(100, seed=1000 + n)
                    client.add_batch([Draft(content=f"{text} f{n}") for text in texts])

        thread = threading.Thread(target=flood)
        thread.start()
        time.sleep(1)
        busy = [timed_search(stub, f"{query} b", user)[0] for query in queries[count:]]
        done.set()
        thread.join()
    row("Search, quiet", quiet)
    row("Search beside BatchAdd(100) without pause", busy, goal="p99 ≤ 3 × quiet p99")
    one("  ratio of the p99s", quantile(busy, 0.99) / quantile(quiet, 0.99), "×", "≤ 3")


def cold_scope(daemon: Daemon, user: str) -> None:
    """64 callers at once on a scope that is not in memory."""
    queries = sentences(64, seed=31)
    clients = [MemoryClient(daemon.endpoint, user_id=user, timeout_s=60) for _ in range(64)]
    for client in clients:
        client.server_info()

    def ask(n: int) -> float:
        began = time.perf_counter()
        clients[n].search(queries[n])
        return (time.perf_counter() - began) * 1e3

    with ThreadPoolExecutor(64) as pool:
        row("64 callers on a cold scope of 10k", list(pool.map(ask, range(64))), goal="every one ≤ 1500")
    for client in clients:
        client.close()


def command_line(daemon: Daemon, count: int) -> None:
    """CPU of `memory search`, all of it, and of a Python that only imports gRPC, in turns."""
    values: dict[str, list[float]] = {"search": [], "grpc": []}
    env = {"PATH": os.environ["PATH"], "MEMORY_ENDPOINT": daemon.endpoint, "MEMORY_USER_ID": "k1"}
    program = str(Path(sys.executable).parent / "memory")
    commands = {"search": [program, "search", "some words"], "grpc": [sys.executable, "-c", "import grpc"]}
    for _ in range(count):
        for name, command in commands.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, env=env, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            values[name].append((after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3)
    row("memory search: CPU of the command", values["search"])
    row("python -c 'import grpc': CPU", values["grpc"])
    one("  ratio of the medians", statistics.median(values["search"]) / statistics.median(values["grpc"]), "×", "≤ 1.4")


def _copy(seeded: Path) -> Path:
    folder = scratch()
    for path in seeded.iterdir():
        shutil.copy(path, folder)
    return folder


def wal_start() -> None:
    """Start after kill −9 with a log of about 256 MB."""
    folder = scratch()
    fill(folder / "memory.duckdb", {"k1": 1000})
    daemon = Daemon(folder)
    daemon.start()
    opened_size = 0
    with daemon.client("w", timeout_s=120) as client:
        n = 0
        wal = folder / "memory.duckdb.wal"
        drafts = [
            Draft(content="x" * 8000 + f" {m}", metadata={f"k{i}": "y" * 1000 for i in range(7)}) for m in range(100)
        ]
        while opened_size < 235 * 2**20 and n < 400:
            n += 1
            client.add_batch([Draft(content=f"{n} {d.content}"[:8192], metadata=d.metadata) for d in drafts])
            opened_size = wal.stat().st_size if wal.exists() else 0
    daemon.kill()
    one("  log at the kill", opened_size / 2**20, "MB")
    one("Start after kill −9", daemon.start(), "s", "≤ 3 with 256 MB of log")
    daemon.stop()
    shutil.rmtree(folder)


def memories(on: Callable[[str], bool], *, quick: bool) -> None:
    """What concerns memories: starts, searches and writes."""
    base = scratch()
    scopes = {"k1": 1000, "k10": 10_000}
    if not quick:
        scopes["k100"] = 100_000
    fill(base / "memory.duckdb", scopes)
    daemon = Daemon(base)
    steps: list[tuple[str, Callable[[], object]]] = [
        ("start", lambda: (daemon.stop(), one("Start, clean, 10k and more", daemon.start(), "s", "≤ 1.0"))),
        ("cold", lambda: cold_scope(daemon, "k10")),
        ("search", lambda: searches(daemon, "k1", 300, "≤ 2.5 × RPC", "scope of 1k")),
        ("search", lambda: searches(daemon, "k10", 300, "≤ 4 × RPC", "scope of 10k")),
        ("sentences", lambda: several_sentences(daemon, "k1", 60)),
        ("rss", lambda: one("Resident memory, 11k memories in use", rss_mb(daemon.process.pid), "MB", "≤ 450 (10k)")),
        ("cli", lambda: command_line(daemon, 15)),
        ("add", lambda: adds(daemon, "k10", 200)),
        ("beside", lambda: beside_batches(daemon, "k10", 300)),
        ("batch", lambda: one("Encoder alone", own_throughput(3), "texts/s")),
        ("batch", lambda: one("BatchAdd(100), model", batches(daemon, "b", 5), "memories/s", "≥ 0.8 × encoder")),
    ]
    daemon.start()
    baseline(daemon)
    for name, step in steps:
        if on(name):
            step()
    if not quick and on("search"):
        searches(daemon, "k100", 200, "≤ 12 × RPC", "scope of 100k")
    daemon.stop()
    if on("search"):
        _said(quick=quick)
    if on("batch"):
        folder = scratch()
        plain = Daemon(folder, config=NO_MODEL)
        plain.start()
        one("BatchAdd(100), no model", batches(plain, "b", 50), "memories/s", "≥ 5000")
        plain.stop()
        shutil.rmtree(folder)
    if on("start"):
        wal_start()
    if not quick and on("million"):
        folder = scratch()
        fill(folder / "memory.duckdb", {"k1": 1000, "k10": 10_000, "k100": 100_000}, others=1_000_000)
        big = Daemon(folder)
        big.start()
        big.stop()
        one("Start, clean, 1.1M rows", big.start(), "s", "≤ 1.5")
        searches(big, "k1", 200, "≤ 1.5", "1k beside 1M of others")
        searches(big, "k10", 200, "≤ 1.5", "10k beside 1M of others")
        searches(big, "k100", 100, "≤ 4", "100k beside 1M of others")
        one("Resident memory, 111k in use beside 1M", rss_mb(big.process.pid), "MB")
        big.stop()
        shutil.rmtree(folder)
    shutil.rmtree(base)


def _said(*, quick: bool) -> None:
    """Searches of what was said in sessions: every leg takes part."""
    folder = scratch()
    fill(folder / "memory.duckdb", {"s1": 1000, "s10": 10_000}, said=True)
    daemon = Daemon(folder)
    daemon.start()
    searches(daemon, "s1", 100 if quick else 300, "", "1,000 turns of sessions", said=True)
    searches(daemon, "s10", 100 if quick else 300, "", "10,000 turns of sessions", said=True)
    daemon.stop()
    shutil.rmtree(folder)


IDENTITY: dict[str, Callable[[], object]] = {
    "identity": lambda: (identity.gate(3000), identity.doors(1000), identity.not_found(1000)),
    "listeners": lambda: identity.listeners(1000),
    "flood": lambda: identity.flood(400),
}
"""What concerns identity: see tests/bench/identity.py."""
KNOWLEDGE: dict[str, Callable[[], object]] = {
    "judged": lambda: knowledge.judged_adds(300),
    "upkeep": knowledge.upkeep,
    "crowd": lambda: knowledge.crowd(3000),
}
"""What concerns knowledge: see tests/bench/knowledge.py."""
EMBEDDING: dict[str, Callable[[], object]] = {
    "callers": callers,
    "embedding": embedding.encoders,
    "reembed": lambda: embedding.reembedding(10_000),
}
"""What concerns the model: see tests/bench/embedding.py."""
TALK: dict[str, Callable[[], object]] = {
    "append": lambda: talk.appends(300),
    "talk": lambda: talk.batches(15),
    "context": lambda: talk.contexts(100),
    "pages": lambda: (talk.pages(10_000), talk.pages(1_000_000)),
}
"""What concerns conversations: see tests/bench/talk.py."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller: no 100k scope, no million rows of others")
    parser.add_argument(
        "--only",
        default="",
        help="comma-separated: start,cold,search,sentences,rss,cli,add,beside,batch,million,"
        "identity,listeners,flood,judged,upkeep,crowd,callers,embedding,reembed,append,talk,context,pages,night,endpoint,scaling,"
        "backup,metrics,notes,mcp,imports,inspector,http,typescript,postgres",
    )
    parser.add_argument("--chart", type=Path, help="write the curves of scaling as a picture (SVG)")
    args = parser.parse_args()
    wanted = set(args.only.split(",")) if args.only else set()

    def on(name: str) -> bool:
        return not wanted or name in wanted

    load = os.getloadavg()
    print(f"cores {os.cpu_count()}, load average {load[0]:.2f} {load[1]:.2f} {load[2]:.2f}\n")
    print(HEAD)
    growing = {
        "night": lambda: night(quick=args.quick),
        "endpoint": endpoint,
        "metrics": operations.metrics,
        "backup": lambda: operations.backup(quick=args.quick),
        "notes": lambda: notes(quick=args.quick),
        "mcp": mcp,
        "http": http,
        "typescript": typescript,
        "inspector": lambda: inspector(quick=args.quick),
        "postgres": lambda: postgres(quick=args.quick),
        "imports": lambda: imports(quick=args.quick),
        "scaling": lambda: scaling(quick=args.quick, chart=args.chart),
    }
    parts = IDENTITY | KNOWLEDGE | EMBEDDING | TALK | growing
    if not wanted or wanted - set(parts):
        memories(on, quick=args.quick)
    for name, steps in parts.items():
        if on(name):
            steps()
    load = os.getloadavg()
    print(f"\nload average at the end {load[0]:.2f} {load[1]:.2f} {load[2]:.2f}")


if __name__ == "__main__":
    main()
