"""`make soak MINUTES=20 FACTOR=72`: a day in twenty minutes; exit code 1 where something was lost, or grew."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

from tests.soak.load import Figures
from tests.soak.run import Found, Plan, Soak
from tests.soak.watch import HOUR_S, MIB, Sample, slope_percent, spread

DAY_S = 24 * HOUR_S
SLOPE_PERCENT = 1.0  # an hour, over the second half of the soak, in which nothing is started again
FILE_RATIO = 3.0
P99_RATIO = 1.5
MOST_DRIFT = 2  # threads or descriptors
MOST_UNFOUND_PERCENT = 1.0  # what was added may have been replaced by what was said meanwhile
JUDGED_MINUTES = 10.0
"""A shorter soak says nothing about growth: a daemon is warm only after some minutes."""


def main() -> int:
    """Run the soak that the arguments ask for and print what it found."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20, help="real minutes")
    parser.add_argument("--factor", type=float, default=72, help="simulated seconds in a real one")
    parser.add_argument("--workers", type=int, default=6, help="users who call at a time")
    parser.add_argument("--seed", type=int, default=1, help="of what they say")
    parser.add_argument("--keep", type=Path, help="an empty folder that keeps the data, the log and the samples")
    given = parser.parse_args()
    length_s = given.minutes * 60 * given.factor
    plan = Plan(
        seconds=given.minutes * 60,
        factor=given.factor,
        workers=given.workers,
        seed=given.seed,
        restart_s=length_s / 20,
        restore_s=length_s / 4.5,
        steps={2: -HOUR_S, 3: HOUR_S, 5: 40 * DAY_S, 6: -40 * DAY_S},
    )
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
        if any(given.keep.iterdir()):
            parser.error(f"--keep {given.keep} is not empty")
        return report(given.keep, plan)
    with tempfile.TemporaryDirectory(prefix="soak") as folder:
        return report(Path(folder), plan)


def report(folder: Path, plan: Plan) -> int:
    """Run it in a folder, print the figures, and return the exit code."""
    try:
        soak = Soak(folder, plan)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    found, figures = soak.run(), soak.figures
    columns = [field.name for field in fields(Sample)]
    rows = [[f"{getattr(one, name):.0f}" for name in columns] for one in found.samples]
    (folder / "samples.tsv").write_text("".join("\t".join(row) + "\n" for row in [columns, *rows]))
    faults = found.faults + figures.unexpected
    errors = {f"{call} {name}": count for (call, name), count in figures.errors.items()}
    print(f"calls: {dict(figures.done)}")
    print(f"errors, those of restarts among them: {errors}")
    print(f"jobs: {dict(sorted(found.jobs.items()))}")
    print(f"restarts: {len(found.restarts)}; restores: {'; '.join(found.restores)}")
    print(f"accounted for: {found.checked} memories and messages; searches that missed the last add: {figures.unfound}")
    grown = growth(found.samples, found, figures)
    if plan.seconds >= 60 * JUDGED_MINUTES:
        faults += grown
    for fault in faults[:50]:
        print(f"FAULT {fault}")
    print(f"{len(faults)} faults")
    return 1 if faults else 0


def growth(samples: Sequence[Sample], found: Found, figures: Figures) -> list[str]:
    """Print what was measured of growth, and return what grew too much."""
    last = samples[-1]
    longest = [one for one in samples if one.run == last.run and one.at_s > last.at_s / 2]
    slope = slope_percent(longest)
    second_s, last_s = tenths(figures)
    print(f"simulated: {last.at_s / HOUR_S:.1f} h; samples: {len(samples)}, {len(longest)} of the second half")
    print(f"resident: {samples[0].resident // MIB} to {last.resident // MIB} MiB; second half {slope:+.2f} % an hour")
    drifts = {}
    for name in ("descriptors", "threads"):
        values = [getattr(one, name) for one in longest] or [0]
        drifts[name] = spread(values)
        print(f"{name}: {min(values)} to {max(values)}, drift {drifts[name]:+d}")
    print(f"database: {last.database / MIB:.1f} MiB, {found.file_ratio:.2f} x a fresh copy")
    ratio = last_s / second_s
    unfound = 100 * figures.unfound / max(1, figures.done["search"])
    print(f"search p99: {second_s * 1000:.0f} ms in the second tenth, {last_s * 1000:.0f} in the last, {ratio:.2f} x")
    limits: list[tuple[str, float, float]] = [
        ("resident bytes of the second half, % an hour", slope, SLOPE_PERCENT),
        ("searches that missed the last add, %", unfound, MOST_UNFOUND_PERCENT),
        ("file by a fresh copy", found.file_ratio, FILE_RATIO),
        ("p99 of searches, last tenth by the second", ratio, P99_RATIO),
        *((f"drift of {name}", drift, MOST_DRIFT) for name, drift in drifts.items()),
    ]
    return [f"{name}: {value:.2f}, at most {limit:g}" for name, value, limit in limits if value > limit]


def tenths(figures: Figures) -> tuple[float, float]:
    """Return the 99th percentile of the seconds of searches in the second tenth of a soak, and in the last."""
    times = [took_s for _, took_s in sorted(figures.search_s)]
    tenth = len(times) // 10
    p99: Callable[[list[float]], float] = lambda some: statistics.quantiles(some, n=100)[98]  # noqa: E731
    return (p99(times[tenth : 2 * tenth]), p99(times[-tenth:])) if tenth > 1 else (1.0, 1.0)


if __name__ == "__main__":
    sys.exit(main())
