"""A victim who goes on while others attack: nothing of it may fail, and how long it takes is printed at the end."""

from __future__ import annotations

import os
import statistics
import threading
import time
from contextlib import contextmanager

from memory_client import GrantStatus, MemorydError

from tests.doors import World
from tests.support import figures

__all__ = ["FULL", "undisturbed"]

FULL = os.environ.get("MEMORYD_ATTACK") == "full"


@contextmanager
def undisturbed(world: World, victim: GrantStatus, name: str):
    """The victim goes on meanwhile: nothing of it may fail. Reports its p99 beside that in peace."""
    times: list[float] = []
    failed: list[str] = []
    over = threading.Event()

    def live() -> None:
        with world.inside(victim) as inside:
            n = 0
            while not over.is_set():
                began = time.perf_counter()
                try:
                    if not inside.search(f"violet secret {name} {n}").hits:
                        failed.append("found nothing")
                except MemorydError as error:
                    failed.append(f"{error.reason}: {error.message}")
                times.append((time.perf_counter() - began) * 1e3)
                n += 1
                time.sleep(0.002)

    @contextmanager
    def living():
        times.clear()
        over.clear()
        thread = threading.Thread(target=live)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    with living():
        time.sleep(5.0 if FULL else 0.5)
    quiet = sorted(times)
    with living():
        yield
    loud = sorted(times)
    assert [] == failed
    assert len(loud) > 10
    p99 = [values[int(len(values) * 0.99)] for values in (quiet, loud)]
    figures.append(
        f"{name}: the victim's search p50 {statistics.median(quiet):.1f} → {statistics.median(loud):.1f} ms,"
        f" p99 {p99[0]:.1f} → {p99[1]:.1f} ms ({p99[1] / p99[0]:.1f} ×), {len(loud)} searches, none failed"
    )
