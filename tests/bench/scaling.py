"""How long a search, an add and a load take as a scope grows, and the picture of it: two logarithmic axes, in SVG."""

from __future__ import annotations

import itertools
import math
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from memoryd.v1 import memory_pb2, memory_service_pb2_grpc
from memoryd.v1 import memory_service_pb2 as pb
from tests.bench.report import one, row, rss_mb
from tests.bench.seed import fill, sentences
from tests.support import Daemon

SIZES = (1000, 10_000, 100_000, 1_000_000)
CONFIG = "[index]\nmemory_bytes = 2147483648\n"  # 2 GiB: room for a million without the vectors of tokens
COLOURS = ("#1b6ca8", "#c8803a", "#5b8c5a", "#8a5a9e")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 90, 240, 20, 50
LABEL_HEIGHT = 17
QUIET_S, PAUSE_S = 3.0, 0.02

Curves = dict[str, list[tuple[int, float]]]


def scaling(*, quick: bool, chart: Path | None) -> None:
    """Measure each size in a database and a daemon of its own; with `quick` up to 100,000."""
    curves: Curves = {}
    for size in SIZES[:-1] if quick else SIZES:
        for name, ms in _measure(size).items():
            curves.setdefault(name, []).append((size, ms))
    if chart is not None:
        chart.write_text(drawn(curves), encoding="utf-8")


def _measure(size: int) -> Mapping[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="memoryd-bench-"))
    fill(folder / "memory.duckdb", {"k": size})
    measured = measured_in(folder, size)
    shutil.rmtree(folder)
    return measured


def measured_in(folder: Path, size: int) -> Mapping[str, float]:
    """Measure a daemon over a folder whose database holds so many memories of user k; return what is drawn."""
    from tests.bench.__main__ import timed_search

    daemon = Daemon(folder, config=CONFIG)
    daemon.start()
    queries = [f"{' '.join(text.split()[:8])} {n}" for n, text in enumerate(sentences(300, seed=99))]
    before = rss_mb(daemon.process.pid)
    with daemon.channel() as channel, daemon.client("k", timeout_s=600) as client:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        with _Other(daemon) as other:
            time.sleep(QUIET_S)
            quiet, other.taken = other.taken, []
            first_ms = timed_search(stub, "the first", "k")[0]  # of a large scope by words
            loading = time.perf_counter()
            request = pb.SearchMemoriesRequest(query="loaded", user_id="k")
            while memory_pb2.SEARCH_LEG_VECTOR in stub.SearchMemories(request).unavailable_legs:
                time.sleep(0.1)
            loaded_ms = first_ms + (time.perf_counter() - loading) * 1e3
        pairs = [timed_search(stub, query, "k") for query in queries]
        searches = [took - embedding for took, embedding in pairs[len(pairs) // 10 :]]
        adds = []
        for n, text in enumerate(sentences(110, seed=98)):
            began = time.perf_counter()
            client.add(f"{text} scaling {n}")
            adds.append((time.perf_counter() - began) * 1e3)
    row(f"Search less its embedding, scope of {size:,}", searches)
    row(f"Add, whole call, scope of {size:,}", adds[10:])
    row(f"A search of another user before {size:,} load", quiet)
    row(f"A search of another user while {size:,} load", other.taken)
    one(f"The first search of {size:,}", first_ms, "ms")
    one(f"Loading {size:,}, until its vectors are there", loaded_ms, "ms")
    one(f"Resident memory that {size:,} take", rss_mb(daemon.process.pid) - before, "MB")
    daemon.stop()
    return {
        "search less its embedding": statistics.median(searches),
        "add, whole call": statistics.median(adds[10:]),
        "loading the scope": loaded_ms,
    }


class _Other:
    """Another user with a few memories, who searches all the time with short pauses."""

    def __init__(self, daemon: Daemon) -> None:
        self.taken: list[float] = []
        """How long each search took, in ms."""
        self._ends = threading.Event()
        self._client = daemon.client("other", timeout_s=60)
        for text in sentences(50, seed=7):
            self._client.add(text)
        self._thread = threading.Thread(target=self._search)

    def _search(self) -> None:
        for n, text in enumerate(itertools.cycle(sentences(400, seed=5))):
            began = time.perf_counter()
            self._client.search(f"{text} {n}")
            self.taken.append((time.perf_counter() - began) * 1e3)
            if self._ends.wait(PAUSE_S):
                return

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        self._client.close()


def drawn(curves: Curves) -> str:
    """Return the curves as lines over the size of the scope; both axes are logarithmic."""
    points = [point for curve in curves.values() for point in curve]
    sizes, values = [size for size, _ in points], [ms for _, ms in points]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(size: float) -> float:
        share = math.log10(size / min(sizes)) / max(1e-9, math.log10(max(sizes) / min(sizes)))
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(ms: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(ms) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = []
    for power in range(low, high + 1):
        at = y(10.0**power)
        label = f"{10**power:,} ms" if power >= 0 else f"{10.0**power:g} ms"
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    for size in sorted(set(sizes)):
        parts.append(f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{size:,}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">memories in the scope</text>'
    )
    label_y = math.inf
    for colour, (name, curve) in sorted(zip(COLOURS, curves.items(), strict=False), key=lambda one: one[1][1][-1][1]):
        label_y = min(label_y - LABEL_HEIGHT, y(curve[-1][1]) + 4)  # from the lowest up, none over another
        parts.append(_line(name, [(x(size), y(ms), ms) for size, ms in curve], colour, label_y))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif"'
        f' font-size="13">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def _line(name: str, places: Sequence[tuple[float, float, float]], colour: str, label_y: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y, _ in places)
    end_x, _, ms = places[-1]
    told = f'<text x="{end_x + 10:.1f}" y="{label_y:.1f}" fill="{colour}">{name}, {ms:,.0f} ms</text>'
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}{told}'
