"""Knowledge, measured: adds that are judged and name people; a scope that fades, is evicted and collected."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory_client import Draft, Kind, MemoryClient

from memoryd.embedding.packaged import builtin_encoder
from memoryd.v1 import memory_service_pb2_grpc
from tests.bench.report import cpu_s, one, quantile, row
from tests.support import Daemon

_LISTS = """
Anna Ben Clara David Emma Felix Greta Hugo Ida Jonas Kira Leo Mia Noah Olga Paul Rosa Sam Tina Udo
Abel Berg Conti Dahl Ekman Frey Gallo Holm Ivers Jensen Koch Lund Moser Nagy Olsen Pike Quist Roth
tea jazz chess hiking sushi opera sailing pottery cycling ramen skiing poetry gardening climbing
Rome Oslo Lisbon Berlin Leeds York Porto Graz Turin Bergen Delft Ghent Lyon Malmo
"""
NAMES, SURNAMES, THINGS, PLACES = (line.split() for line in _LISTS.strip().splitlines())
FORMS = (
    "{name} {surname} likes {thing} and lives in {place}",
    "{name} {surname} moved to {place} because of {thing}",
    "my friend {name} {surname} teaches {thing} in {place}",
    "I met {name} {surname} in {place} for {thing}",
    "{name} {surname}'s favorite hobby is {thing}",
    "{name} {surname} works at a {thing} club near {place} number {n}",
    "The {thing} course in {place} starts at {hour} in room {n}",
    "I paid {n} euros for {thing} lessons in {place}",
)


def statements(count: int, seed: int) -> list[str]:
    """Statements as people make them: of some 350 persons, with the attributes that are read and some that are not."""
    dice = random.Random(seed)
    return [
        dice.choice(FORMS).format(
            name=dice.choice(NAMES), surname=dice.choice(SURNAMES), thing=dice.choice(THINGS),
            place=dice.choice(PLACES), hour=dice.randint(7, 20), n=dice.randint(1, 9999),
        )
        for _ in range(count)
    ]  # fmt: skip


def _fill(daemon: Daemon, user: str, count: int, **more) -> None:
    with daemon.client(user, timeout_s=300) as client:
        texts = statements(count, seed=5)
        for start in range(0, count, 100):
            drafts = [
                Draft(content=f"{text}, note {start + n}", **more) for n, text in enumerate(texts[start : start + 100])
            ]
            client.add_batch(drafts)


def judged_adds(count: int) -> None:
    """Add one after the other in a scope of 10,000 real statements, judging, finding people and secrets."""
    folder = Path(tempfile.mkdtemp(prefix="memoryd-bench-"))
    daemon = Daemon(folder)
    daemon.start()
    began = time.perf_counter()
    _fill(daemon, "k10", 10_000)
    one("BatchAdd(100) up to a scope of 10k, judged", 10_000 / (time.perf_counter() - began), "memories/s")
    texts = [f"{text}, today {n}" for n, text in enumerate(statements(count, seed=77))]
    encoder = builtin_encoder()
    alone, cpu_before = [], time.process_time()
    for text in texts:
        start = time.perf_counter()
        encoder.encode([text], query=False)
        alone.append((time.perf_counter() - start) * 1e3)
    embedding_cpu = (time.process_time() - cpu_before) / count * 1e3
    times = []
    with daemon.client("k10") as client:
        client.add("warm up")
        before = cpu_s(daemon.process.pid)
        for text in texts:
            start = time.perf_counter()
            client.add(text)
            times.append((time.perf_counter() - start) * 1e3)
        cpu = (cpu_s(daemon.process.pid) - before) / count * 1e3
    row("Embedding one text, in this process", alone, cpu=embedding_cpu)
    row("Add, judged, scope of 10k statements", times, goal="p50 ≤ embedding + 6", cpu=cpu)
    one("Add, judged: p50 beyond embedding", quantile(times, 0.5) - quantile(alone, 0.5), "ms", "≤ 6")
    one("Add, judged: CPU beyond embedding", cpu - embedding_cpu, "ms", "≤ 6")
    daemon.stop()
    shutil.rmtree(folder)


def upkeep() -> None:
    """10,000 memories are decayed, or evicted, and collected, while somebody else searches."""
    _while_searching("decayed", "[memory]\ndelete_grace_days = 0.0\nauto_gc = false\n", _decay)
    cap = SCOPE * 7 // 10  # nearly three of ten supersede another and do not count
    _while_searching("evicted", f"[memory]\nmax_entries = {cap}\ndelete_grace_days = 0.0\nauto_gc = false\n", _evict)


CROWD = [f"{name} {surname}" for name, surname in zip(NAMES, [*SURNAMES, "Stone", "Thoma"], strict=True)]


def _ask_for_people(endpoint: str, begun: Any, done: Any, answers: Any) -> None:
    """Ask without pause until `done`, and put the milliseconds of each call into `answers`."""
    took: dict[str, list[float]] = {"ListPeople": [], "GetEntity": [], "BuildContext": []}
    with MemoryClient(endpoint, user_id="crowd", timeout_s=300) as client:
        asked: dict[str, Callable[[], object]] = {
            "ListPeople": client.people,
            "GetEntity": lambda: client.entity(CROWD[0]),
            "BuildContext": lambda: client.context(f"When did {CROWD[0]} meet {CROWD[1]}?"),
        }
        while not done.is_set():
            for name, call in asked.items():
                began = time.perf_counter()
                call()
                took[name].append((time.perf_counter() - began) * 1e3)
            begun.set()
    answers.put(took)


def crowd(count: int) -> None:
    """Memories that all name the same 20 people, and one who asks for these while somebody else searches."""
    from tests.bench.__main__ import timed_search

    folder = Path(tempfile.mkdtemp(prefix="memoryd-bench-"))
    daemon = Daemon(folder, config='[embedding]\nprovider = "none"\n')
    daemon.start()
    _fill(daemon, "searcher", 2000)
    with daemon.client("crowd", timeout_s=300) as client, daemon.channel() as channel:
        for start in range(0, count, 50):
            client.add_batch([Draft(content=f"{', '.join(CROWD)} met, day {start + n}") for n in range(50)])
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        queries = statements(800, seed=9)
        quiet = [timed_search(stub, query, "searcher")[0] for query in queries[:400]]
        spawn = multiprocessing.get_context("spawn")  # in this process, it would hold up the one who measures
        begun, done, answers = spawn.Event(), spawn.Event(), spawn.SimpleQueue()
        asking = spawn.Process(target=_ask_for_people, args=(daemon.endpoint, begun, done, answers))
        asking.start()
        begun.wait(30)
        busy = [timed_search(stub, query, "searcher")[0] for query in queries[400:]]
        done.set()
        took: dict[str, list[float]] = answers.get()
        asking.join()
        lag_ms = client.server_info().max_loop_lag.total_seconds() * 1e3
    for name, times in took.items():
        row(f"{name}, {count} memories of the same {len(CROWD)} people", times)
    row("Search of another user, quiet", quiet)
    row("Search of another user meanwhile", busy)
    one("  longest hold of the event loop in the last minute", lag_ms, "ms", "≤ 5")
    one("  ratio of the p99s", quantile(busy, 0.99) / quantile(quiet, 0.99), "×", "≤ 3")
    daemon.stop()
    shutil.rmtree(folder)


SCOPE = 10_000
EVICTED = 1_000


def _decay(daemon: Daemon) -> str:
    with daemon.client("host", timeout_s=300) as host:
        return f"{host.run_decay().decayed_count} decayed, {host.run_gc().deleted_count} erased"


def _evict(daemon: Daemon) -> str:
    """A tenth more is stored than the cap allows: with each batch as many go."""
    with daemon.client("fading", timeout_s=300) as client:
        for n in range(0, EVICTED, 100):
            client.add_batch([Draft(content=text) for text in statements(100, seed=900 + n)])
        return f"{client.run_gc().deleted_count} evicted and erased"


def _while_searching(what: str, config: str, work: Callable[[Daemon], str]) -> None:
    from tests.bench.__main__ import timed_search

    folder = Path(tempfile.mkdtemp(prefix="memoryd-bench-"))
    daemon = Daemon(folder, config=config)
    daemon.start()
    _fill(daemon, "searcher", 2000)
    long_ago = datetime.now(UTC) - timedelta(days=2)
    _fill(daemon, "fading", SCOPE, kind=Kind.EVENT, event_time=long_ago, decay_rate=100.0)
    queries = statements(20_000, seed=9)
    with daemon.channel() as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        quiet = [timed_search(stub, f"{query} q", "searcher")[0] for query in queries[:400]]
        took: list[float] = []

        def run() -> None:
            began = time.perf_counter()
            print(f"  {work(daemon)}")
            took.append(time.perf_counter() - began)

        thread = threading.Thread(target=run)
        thread.start()
        busy: list[float] = []
        while thread.is_alive():
            busy.append(timed_search(stub, f"{queries[400 + len(busy)]} b", "searcher")[0])
        thread.join()
    goal = "≤ 2" if what == "decayed" else f"of which {EVICTED // 100} BatchAdd(100)"
    one(f"{SCOPE} memories {what} and collected", took[0], "s", goal)
    row("  Search, quiet", quiet)
    row("  Search meanwhile", busy)
    one("  ratio of the p99s", quantile(busy, 0.99) / quantile(quiet, 0.99), "×", "≤ 2")
    daemon.stop()
    shutil.rmtree(folder)
