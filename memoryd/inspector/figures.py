"""How the daemon's figures have moved while the inspector looked: what its plots show."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from memoryd.errors import MemorydError

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient

__all__ = ["Figures", "Reading", "parse"]

PAUSE_S = 5.0  # between two readings
KEPT = 720  # readings: an hour
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


class Figures:
    """The readings of the last hour, one every few seconds."""

    def __init__(self, now: Callable[[], datetime], pause_s: float = PAUSE_S) -> None:
        """Keep nothing yet; `now` tells the time of a reading."""
        self._now = now
        self.readings: deque[Reading] = deque(maxlen=KEPT)
        self.fault = ""
        """Why nothing is read now; empty: it is."""
        self.pause_s = pause_s

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

    async def _watch(self, client: AsyncMemoryClient) -> None:
        while True:
            await self.read(client)
            await asyncio.sleep(self.pause_s)

    async def read(self, client: AsyncMemoryClient) -> None:
        """Take one reading."""
        try:
            text = await client.metrics()
        except MemorydError as error:
            self.fault = error.message
            return
        self.fault = ""
        self.readings.append(Reading(self._now(), parse(text)))

    @property
    def times(self) -> list[datetime]:
        """When each reading but the first was taken."""
        return [reading.time for reading in self.readings][1:]

    def levels(self, name: str, factor: float = 1.0, **labels: str) -> list[float | None]:
        """Return a figure that goes up and down, at each time."""
        found = (reading.total(name, **labels) for reading in list(self.readings)[1:])
        return [None if value is None else value * factor for value in found]

    def rates(self, name: str, **labels: str) -> list[float | None]:
        """Return by how much a second a figure that only grows has grown, up to each time."""
        rates: list[float | None] = []
        for before, after in pairwise(self.readings):
            one, other = before.total(name, **labels), after.total(name, **labels)
            seconds = (after.time - before.time).total_seconds()
            grown = None if other is None else other - (one or 0.0)
            rates.append(None if grown is None or grown < 0 or seconds <= 0 else grown / seconds)
        return rates

    def quantiles(self, share: float, name: str = RPC, **labels: str) -> list[float | None]:
        """Return in milliseconds how long things took, up to each time: a share of them no longer than that."""
        pairs = [(one.buckets(name, **labels), other.buckets(name, **labels)) for one, other in pairwise(self.readings)]
        found = (quantile(before, after, share) for before, after in pairs)
        return [None if value is None else value * 1e3 for value in found]
