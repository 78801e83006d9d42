"""What keeping costs: a search with figures and without, a scrape, a copy of the file under load, a restore."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from memoryd.v1 import identity_service_pb2, identity_service_pb2_grpc, memory_service_pb2_grpc
from memoryd.v1 import memory_service_pb2 as pb
from tests.bench.report import one, quantile, rss_mb, scratch
from tests.bench.seed import fill, sentences
from tests.support import Daemon, until

PAIRS = 400
SHARE = 0.99
BEFORE_S = 30.0  # of load before the copy begins


def metrics() -> None:
    """Search in two daemons in turns, one with figures; then scrape while empty calls go on."""
    folders = [scratch(), scratch()]
    for folder in folders:
        fill(folder / "memory.duckdb", {"k1": 1000})
    pair = [Daemon(folders[0]), Daemon(folders[1], config="[metrics]\nenabled = true\n")]
    for daemon in pair:
        daemon.start()
    queries = [" ".join(text.split()[:8]) for text in sentences(PAIRS, seed=11)]
    took: list[list[float]] = [[], []]
    with pair[0].channel() as plain, pair[1].channel() as measured:
        stubs = [memory_service_pb2_grpc.MemoryServiceStub(channel) for channel in (plain, measured)]
        for n, query in enumerate(queries):
            request = pb.SearchMemoriesRequest(query=query, user_id="k1", min_score=0.0)
            for which in (0, 1) if n % 2 else (1, 0):
                began = time.perf_counter()
                stubs[which].SearchMemories(request)
                took[which].append((time.perf_counter() - began) * 1e3)
        one("Search with figures", statistics.median(took[1]) / statistics.median(took[0]), "× without", "≤ 1.02")
        whoami = identity_service_pb2_grpc.IdentityServiceStub(measured)
        with pair[1].client() as client:
            quiet = _waits(whoami, lambda: time.sleep(2.0))
            scraped = _waits(whoami, lambda: [client.metrics() for _ in range(20)])
        waits = quantile(scraped, SHARE) - quantile(quiet, SHARE)
        one("Wait of an empty call more while scraped, p99", waits, "ms", "≤ 5")
    for daemon, folder in zip(pair, folders, strict=True):
        daemon.stop()
        shutil.rmtree(folder)


def _waits(whoami: identity_service_pb2_grpc.IdentityServiceStub, work: Callable[[], object]) -> list[float]:
    """Return the milliseconds of empty calls that are made while something is done."""
    thread = threading.Thread(target=work)
    thread.start()
    took = []
    while thread.is_alive():
        began = time.perf_counter()
        whoami.WhoAmI(identity_service_pb2.WhoAmIRequest(user_id="k1"))
        took.append((time.perf_counter() - began) * 1e3)
    return took


class _Load(threading.Thread):
    """Adds and searches until it is told to end, and notes how long each took, in milliseconds."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__()
        self.daemon_under_test, self.ends = daemon, threading.Event()
        self.adds: list[float] = []
        self.searches: list[float] = []

    def run(self) -> None:
        texts = sentences(20_000, seed=7)
        with self.daemon_under_test.client("w") as client:
            for n, text in enumerate(texts):
                if self.ends.is_set():
                    return
                for kept, work in ((self.adds, client.add), (self.searches, client.search)):
                    began = time.perf_counter()
                    work(f"{text} {n}")
                    kept.append((time.perf_counter() - began) * 1e3)


def backup(*, quick: bool) -> None:
    """Copy a store of 100,000 memories under load, and restore it once its directory is lost."""
    base, target = scratch(), scratch()
    fill(base / "memory.duckdb", {"k100": 10_000 if quick else 100_000})
    daemon = Daemon(base, config=f'[backup]\ndirectory = "{target}"\n')
    daemon.start()
    client = daemon.client()
    until(lambda: any(target.glob("*/*/image-*")) and not client.server_info().warnings)
    load = _Load(daemon)
    load.start()
    time.sleep(BEFORE_S)
    adds, searches = len(load.adds), len(load.searches)
    assert daemon.process is not None
    before, peak = rss_mb(daemon.process.pid), 0.0
    began = time.perf_counter()
    client.run_job("backup")
    while any(job.last_run and job.last_run.state.value == "running" for job in client.jobs() if job.name == "backup"):
        peak = max(peak, rss_mb(daemon.process.pid))
        time.sleep(0.05)
    one("Chain of the whole file, with its proof", time.perf_counter() - began, "s")
    load.ends.set()
    load.join()
    one("Slowest add while it is copied and proved", max(load.adds[adds:]) / max(load.adds[:adds]), "× before", "≤ 2")
    ratio = quantile(load.searches[searches:], SHARE) / quantile(load.searches[:searches], SHARE)
    one("Search p99 while it is copied and proved", ratio, "× before", "≤ 1.5")
    one("Resident while it is copied and proved", peak - before, "MiB more", "≤ 64")
    time.sleep(7)
    client.close()
    daemon.kill()
    size = (base / "memory.duckdb").stat().st_size
    began = time.perf_counter()
    shutil.copyfile(base / "memory.duckdb", base / "copy")
    _sync(base / "copy")
    copied = time.perf_counter() - began
    new = scratch() / "data"
    began = time.perf_counter()
    call = [sys.executable, "-m", "memoryd", "restore", str(target), "--data-dir", str(new)]
    subprocess.run(call, check=True, capture_output=True)
    restored = time.perf_counter() - began
    one("Size of the file", size / 2**20, "MiB")
    one("Restore, every block read", restored / copied, "× cp", "≤ 3 and the replay")
    one("Restore", restored, "s")
    for folder in (base, target, new.parent):
        shutil.rmtree(folder)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
