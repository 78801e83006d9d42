"""How figures are printed, and how a process is looked at."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
HEAD = (
    "| what | × RPC | × embedding | min | p50 | p95 | p99 | unit | CPU ms/call | goal |\n"
    "|---|---:|---:|---:|---:|---:|---:|---|---:|---|"
)
_base: dict[str, float] = {}


def compare_with(*, rpc_ms: float, embedding_ms: float) -> None:
    """From now on show the medians as multiples of an empty RPC and of the embedding of a query, of this run."""
    _base.update(rpc=rpc_ms, embedding=embedding_ms)


def _multiples(value: float, unit: str) -> str:
    if unit != "ms" or not _base:
        return " | "
    return f"{value / _base['rpc']:.1f} | {value / _base['embedding']:.1f}"


def scratch() -> Path:
    """Return a folder for one measurement."""
    return Path(tempfile.mkdtemp(prefix="memoryd-bench-"))


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / TICK


def rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(name: str, values: list[float], *, unit: str = "ms", goal: str = "", cpu: float | None = None) -> None:
    cells = [min(values), statistics.median(values), quantile(values, 0.95), quantile(values, 0.99)]
    digits = 3 if max(cells) < 1 else 2
    print(
        f"| {name} | {_multiples(cells[1], unit)} | {' | '.join(f'{cell:.{digits}f}' for cell in cells)} | {unit} |"
        f" {'' if cpu is None else f'{cpu:.2f}'} | {goal} |",
        flush=True,
    )


def one(name: str, value: float, unit: str, goal: str = "") -> None:
    print(f"| {name} | {_multiples(value, unit)} | | {value:.2f} | | | {unit} | | {goal} |", flush=True)


async def in_turns(
    ways: Mapping[str, Callable[[str], Awaitable[object]]], queries: Sequence[str], calls: int
) -> dict[str, list[float]]:
    """Ask by each way so many times, in turns that another one begins each time; return the milliseconds of each."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for n in range(calls):
        first = n % len(names)
        for place, name in enumerate(names[first:] + names[:first]):
            began = time.perf_counter()
            await ways[name](queries[len(names) * n + place])
            took[name].append((time.perf_counter() - began) * 1e3)
    return took
