"""Samples of a daemon's process and files, and what they say of hours."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

__all__ = ["HOUR_S", "MIB", "Sample", "fresh_size", "sample", "slope_percent", "spread"]

HOUR_S = 3600.0
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """A process at a simulated time (seconds since the soak began); sizes in bytes."""

    at_s: float
    run: int  # which start of the daemon
    age_s: float  # simulated seconds since that start
    resident: int
    threads: int
    descriptors: int
    database: int
    log: int


def sample(pid: int, folder: Path, *, at_s: float, run: int, age_s: float) -> Sample:
    """Read /proc and the files; raises OSError where the process is gone."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines if ":" in line)

    def size(name: str) -> int:
        path = folder / name
        return path.stat().st_size if path.exists() else 0

    return Sample(
        at_s=at_s,
        run=run,
        age_s=age_s,
        resident=int(status["VmRSS"].split()[0]) * 1024,
        threads=int(status["Threads"]),
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        database=size("memory.duckdb"),
        log=size("memory.duckdb.wal"),
    )


def slope_percent(samples: Sequence[Sample]) -> float:
    """Return by how many percent of their mean resident bytes rise in a simulated hour (least squares)."""
    if len({one.at_s for one in samples}) < 2:
        return 0.0
    times, sizes = [one.at_s / HOUR_S for one in samples], [float(one.resident) for one in samples]
    return 100 * statistics.linear_regression(times, sizes).slope / statistics.fmean(sizes)


def spread(values: Sequence[int]) -> int:
    """Return by how much the median of the last quarter is above that of the first one."""
    quarter = len(values) // 4
    if not quarter:
        return 0
    return round(statistics.median(values[-quarter:]) - statistics.median(values[:quarter]))


def fresh_size(database: Path, target: Path) -> int:
    """Return the bytes of a copy in a new file of all that a database holds; the daemon has to be stopped."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{database}' AS old (READ_ONLY)")
        connection.execute(f"ATTACH '{target}' AS new")
        connection.execute("COPY FROM DATABASE old TO new")
        connection.execute("CHECKPOINT new")
    return target.stat().st_size
