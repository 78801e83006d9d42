"""
`make compare-others`: memoryd beside chromadb, lancedb and mem0 (without an LLM).

Each add and each search begins with a text and ends when the other side has answered; all use the same texts and the
same encoder, and take turns in blocks of 20. memoryd runs as users run it: a daemon, its client, a Unix socket; the
others are libraries in a process that holds their data. What an add promises differs: memoryd's is on disk, judged
against what is known, indexed by words and names, and in the audit log; lancedb and chromadb have written a file or a
log that may still be in the system's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.report import quantile
from tests.bench.seed import fill, sentences
from tests.others.chart import chart
from tests.support import Daemon

ROOT = Path(__file__).parent.parent.parent
BLOCK = 20
Ask = Callable[[str, str, Any], float]


class Other:
    """Another system in its own process."""

    def __init__(self, python: str, name: str, folder: Path) -> None:
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        script = str(Path(__file__).parent / "systems.py")
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [python, script, name, str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, env=env,
        )  # fmt: skip

    def ask(self, what: str, user: str, given: Any) -> float:
        """Return the milliseconds of one thing done."""
        print(json.dumps([what, user, given]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"it ended; see {self._log.name}")
        return json.loads(answer)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._log.close()


class Ours:
    """memoryd: a daemon and its client."""

    def __init__(self, folder: Path, scopes: dict[str, int]) -> None:
        fill(folder / "memory.duckdb", scopes)
        self._daemon = Daemon(folder)
        self._daemon.start()
        self._clients = {user: self._daemon.client(user, timeout_s=60) for user in scopes}

    def ask(self, what: str, user: str, given: Any) -> float:
        """Return the milliseconds of one thing done."""
        client = self._clients[user]
        began = time.perf_counter()
        if what == "add":
            client.add(given)
        else:
            client.search(given)
        return (time.perf_counter() - began) * 1e3

    def close(self) -> None:
        self._daemon.stop()


def measure(systems: dict[str, Ask], user: str, size: int, count: int) -> list[dict[str, Any]]:
    """Return the quantiles of each system's searches and adds in the scope of one user, in turns."""
    took: dict[tuple[str, str], list[float]] = {}
    queries = [" ".join(text.split()[:8]) for text in sentences(count + BLOCK, seed=61)]
    texts = sentences(count + BLOCK, seed=62)
    for begin in range(0, count + BLOCK, BLOCK):
        for name, ask in systems.items():
            for n in range(begin, begin + BLOCK):
                for what, given in (("search", f"{queries[n]} {n}"), ("add", f"{texts[n]} {size} {n}")):
                    ms = ask(what, user, given)
                    if begin:  # the first block warms up
                        took.setdefault((name, what), []).append(ms)
    return [
        {"system": name, "what": what, "size": size, "p50": statistics.median(ms), "p95": quantile(ms, 0.95)}
        for (name, what), ms in took.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="the Python of the environment of the others")
    parser.add_argument("--count", type=int, default=200, help="searches and adds of each (200)")
    parser.add_argument("--large", action="store_true", help="a scope of 100,000 too")
    parser.add_argument("--chart", type=Path, help="write the medians as a picture (SVG)")
    args = parser.parse_args()
    scopes = {"k1": 1000, "k10": 10_000} | ({"k100": 100_000} if args.large else {})
    folder = Path(tempfile.mkdtemp(prefix="memoryd-others-"))
    for name in ("memoryd", "chromadb", "lancedb", "mem0"):
        (folder / name).mkdir()
    ours = Ours(folder / "memoryd", scopes)
    others = {name: Other(args.python, name, folder / name) for name in ("chromadb", "lancedb", "mem0")}
    for name, other in others.items():
        for user, size in scopes.items():
            took_ms = other.ask("fill", user, sentences(size, seed=len(user) + size))
            print(f"{name}: {size} of {user} in {took_ms / 1e3:.1f} s", flush=True)
    systems: dict[str, Ask] = {"memoryd": ours.ask, **{name: other.ask for name, other in others.items()}}
    rows = [row for user, size in scopes.items() for row in measure(systems, user, size, args.count)]
    print("\n| what | scope | system | p50 | p95 | × memoryd |\n|---|---:|---|---:|---:|---:|")
    for what in ("search", "add"):
        for row in sorted((one for one in rows if one["what"] == what), key=lambda one: one["size"]):
            own = next(r["p50"] for r in rows if (r["system"], r["what"], r["size"]) == ("memoryd", what, row["size"]))
            print(f"| {what} | {row['size']} | {row['system']} | {row['p50']:.1f} ms | {row['p95']:.1f} ms"
                  f" | {row['p50'] / own:.2f} |")  # fmt: skip
    if args.chart:
        args.chart.write_text(chart(rows), encoding="utf-8")
    for system in (ours, *others.values()):
        system.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
