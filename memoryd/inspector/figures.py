"""How the daemon's figures have moved while the inspector looked: what its plots show."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from memoryd.errors import MemorydError, Unavailable

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient

__all__ = ["PLOTS", "Figures", "Point", "Reading", "parse", "quantile"]

PAUSE_S = 5.0  # between two readings
PAUSE_AFTER_FAULT_S = 60.0  # where the daemon answers that it has none: it will not have some soon
MOST_APART = 3  # pauses; between readings further apart nothing was measured
ATTENTION = timedelta(minutes=5)  # so long after a look figures are read
KEPT = 720  # points: an hour
_LINE = re.compile(r"^(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")  # fmt: skip
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
RPC = "rpc_server_call_duration_seconds"
Labels = tuple[tuple[str, str], ...]


def parse(text: str) -> dict[tuple[str, Labels], float]:
    """Return the samples of a text in the format of Prometheus, by name and labels in order."""
    found = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        with suppress(ValueError):
            labels = tuple(sorted(_LABEL.findall(match["labels"] or "")))
            found[match["name"], labels] = float(match["value"])
    return found


@dataclass(frozen=True, slots=True)
class Reading:
    """The figures of one moment."""

    time: datetime
    samples: Mapping[tuple[str, Labels], float] = field(default_factory=dict)

    def total(self, name: str, **labels: str) -> float | None:
        """Return the sum of the samples of a name with these labels; None where there are none."""
        wanted = set(labels.items())
        values = [value for (one, has), value in self.samples.items() if one == name and wanted <= set(has)]
        return sum(values) if values else None

    def buckets(self, name: str, **labels: str) -> list[tuple[float, float]]:
        """Return a histogram: for each upper bound how many values were not above it, over all other labels."""
        wanted = set(labels.items())
        counts: dict[float, float] = {}
        for (one, has), value in self.samples.items():
            if one == f"{name}_bucket" and wanted <= set(has):
                bound = float(dict(has)["le"])
                counts[bound] = counts.get(bound, 0.0) + value
        return sorted(counts.items())


def quantile(before: Sequence[tuple[float, float]], after: Sequence[tuple[float, float]], share: float) -> float | None:
    """
    Return the value below which a share of what came between two readings lies; None where nothing came.

    Within a bucket values count as evenly spread, as Prometheus' histogram_quantile does.
    """
    earlier = dict(before)
    counts = [(bound, count - earlier.get(bound, 0.0)) for bound, count in after]
    if not counts or counts[-1][1] <= 0:
        return None
    wanted, low, below = share * counts[-1][1], 0.0, 0.0
    for bound, count in counts:
        if count >= wanted:
            if bound == float("inf"):
                return low
            return low + (bound - low) * (wanted - below) / max(count - below, 1e-9)
        low, below = bound, count
    return low


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a plot."""

    label: str
    of: Callable[[Reading, Reading], float | None]
    """Its value from a reading and the one before it; None: a gap."""


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture: lines over the same time, in one unit."""

    title: str
    unit: str
    series: tuple[Series, ...]


def _level(label: str, name: str, factor: float = 1.0, **labels: str) -> Series:
    """Return a figure that goes up and down."""

    def of(_before: Reading, after: Reading) -> float | None:
        value = after.total(name, **labels)
        return None if value is None else value * factor

    return Series(label, of)


def _rate(label: str, name: str, **labels: str) -> Series:
    """Return by how much a second a figure that only grows has grown."""

    def of(before: Reading, after: Reading) -> float | None:
        one, other = before.total(name, **labels), after.total(name, **labels)
        seconds = (after.time - before.time).total_seconds()
        grown = None if other is None else other - (one or 0.0)
        return None if grown is None or grown < 0 or seconds <= 0 else grown / seconds  # less: it was started again

    return Series(label, of)


def _slowest(label: str, name: str, **labels: str) -> Series:
    """Return in milliseconds the time that 95 of 100 did not exceed."""

    def of(before: Reading, after: Reading) -> float | None:
        value = quantile(before.buckets(name, **labels), after.buckets(name, **labels), P95)
        return None if value is None else value * 1e3

    return Series(label, of)


P95 = 0.95
METHODS = ("SearchMemories", "AddMemory", "BuildContext")
QUEUES = ("writer", "store_read", "embed_query", "embed_document")
PLOTS = (
    Plot("How long calls took, of 95 in 100", "ms", tuple(_slowest(one, RPC, rpc_method=one) for one in METHODS)),
    Plot("Calls a second", "", tuple(_rate(one, f"{RPC}_count", rpc_method=one) for one in METHODS)),
    Plot(
        "What waits for a thread",
        "",
        tuple(_level(one.replace("_", " "), "memoryd_queue_depth", queue=one) for one in QUEUES),
    ),
    Plot("How long a transaction took, of 95 in 100", "ms", (_slowest("commit", "memoryd_writer_commit_seconds"),)),
    Plot(
        "The longest wait for the event loop in the last minute",
        "ms",
        (_level("event loop", "memoryd_loop_lag_max_seconds", 1e3),),
    ),
    Plot(
        "What has no vector yet",
        "",
        tuple(_level(one, "memoryd_unembedded", kind=one) for one in ("memory", "message")),
    ),
    Plot("Memories that are stored", "", (_level("memories", "memoryd_memories"),)),
    Plot("Bytes of the database, without its log", "B", (_level("bytes", "memoryd_store_bytes"),)),
)


@dataclass(frozen=True, slots=True)
class Point:
    """What the plots show of one moment: a value for each series of each plot."""

    time: datetime
    values: tuple[tuple[float | None, ...], ...]


class Figures:
    """What the plots show of the last hour, a point every few seconds while someone looks."""

    def __init__(self, now: Callable[[], datetime], pause_s: float = PAUSE_S) -> None:
        """Keep nothing yet; `now` tells the time of a reading."""
        self._now = now
        self.points: deque[Point] = deque(maxlen=KEPT)
        self.latest: Reading | None = None
        self.fault = ""
        """Why nothing is read now; empty: it is."""
        self.is_away = False
        """Whether that is because the daemon is away."""
        self.pause_s = pause_s
        self._looked: datetime | None = None

    @asynccontextmanager
    async def watching(self, client: AsyncMemoryClient) -> AsyncIterator[None]:
        """Read figures as long as the block lasts."""
        task = asyncio.create_task(self._watch(client))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def note_look(self) -> None:
        """Note that someone looks at a page: figures are read for some minutes from then on."""
        self._looked = self._now()

    async def _watch(self, client: AsyncMemoryClient) -> None:
        """Read, and pause; where no one looks nothing is read, as each reading is a call in the audit log."""
        while True:
            if self._looked is None or self._now() - self._looked < ATTENTION:
                await self.read(client)
            await asyncio.sleep(PAUSE_AFTER_FAULT_S if self.fault and not self.is_away else self.pause_s)

    async def read(self, client: AsyncMemoryClient) -> None:
        """Take one reading."""
        try:
            text = await client.metrics()
        except MemorydError as error:
            self.fault, self.is_away = error.message, isinstance(error, Unavailable)
            return
        self.fault = ""
        self.take(Reading(self._now(), parse(text)))

    def take(self, reading: Reading) -> None:
        """Keep what the plots show of a reading."""
        before, self.latest = self.latest, reading
        if before is not None and (reading.time - before.time).total_seconds() > MOST_APART * self.pause_s:
            self.points.append(Point(before.time, tuple(tuple(None for _ in plot.series) for plot in PLOTS)))
        elif before is not None:
            values = tuple(tuple(series.of(before, reading) for series in plot.series) for plot in PLOTS)
            self.points.append(Point(reading.time, values))

    @property
    def times(self) -> list[datetime]:
        """When each point was taken."""
        return [point.time for point in self.points]

    def lines(self, plot: int) -> list[tuple[str, list[float | None]]]:
        """Return the lines of a plot, by its number."""
        return [
            (series.label, [point.values[plot][n] for point in self.points])
            for n, series in enumerate(PLOTS[plot].series)
        ]
