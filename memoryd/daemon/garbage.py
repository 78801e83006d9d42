"""
The interpreter's garbage collector in small passes: a pass holds everybody for as long as what it looks at is large.

Left alone, it looks at young objects when more were made than freed. A daemon whose caches are full frees as many as it
makes, so young objects heap up, and a pass over them takes 5 to 15 ms. Here a pass comes by time, and takes about 1 ms.
A pass over everything takes 100 ms next to 12,000 memories; it comes when no one is served, or when the process has
grown by so much that old circles may be what fills it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import resource
import time
from pathlib import Path

__all__ = ["Garbage", "resident_bytes"]

AIM_S = 0.001  # of a young pass
SHORTEST_S, LONGEST_S = 0.01, 0.25  # between two
THRESHOLDS = 5_000, 10, 5_000
"""Of gc.set_threshold: new objects before a young pass, such passes before a middle one, those before a full one."""
LOOK_S = 2.0  # at how busy it is
QUIET_SHARE = 0.03  # of one core; who uses less serves no one
FULL_EVERY_S = 60.0  # at the most
WORTH_S = 2.0  # of work since the last full pass, or there is little to collect
MOST_PASSES = 4  # over everything, one after the other
GROWN_BYTES = 256 << 20  # since the last full pass, and another one comes however busy it is


def resident_bytes() -> int:
    """Return how much memory the process has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def _give_back() -> None:
    """Give free memory back to the system."""
    with contextlib.suppress(OSError, AttributeError):  # a C library other than glibc has no malloc_trim
        ctypes.CDLL(None).malloc_trim(0)


class Garbage:
    """Paces the collector."""

    def __init__(self) -> None:
        """Collect what the start has left; what it made stays, and is not looked at again."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        _give_back()  # loading a model takes more than it keeps
        self._resident = resident_bytes()
        self._pause_s = SHORTEST_S
        self._looked = self._full = (time.monotonic(), time.process_time())
        """When it was looked at how busy the process is, and when all was collected; and the work until then."""

    async def collect(self) -> None:
        """Collect until it is cancelled."""
        while True:
            await asyncio.sleep(self._pause_s)
            self._young()
            if time.monotonic() - self._looked[0] >= LOOK_S:
                has_grown = resident_bytes() - self._resident > GROWN_BYTES
                if self._is_quiet() or has_grown:
                    await self._all(until_clean=has_grown)

    async def _all(self, *, until_clean: bool) -> None:
        """Collect everything; what only a finalizer lets go of is met by another pass, after others had their turn."""
        for _ in range(MOST_PASSES if until_clean else 1):
            if not gc.collect():
                break
            await asyncio.sleep(LONGEST_S if until_clean else 0)
        if until_clean:
            _give_back()
        self._resident = resident_bytes()
        self._full = self._looked = (time.monotonic(), time.process_time())

    def _young(self) -> None:
        """Collect what is young; after half the pause there is half as much to look at."""
        began = time.perf_counter()
        gc.collect(1 if gc.get_count()[1] >= THRESHOLDS[1] else 0)
        took = max(time.perf_counter() - began, 1e-6)
        self._pause_s = min(LONGEST_S, max(SHORTEST_S, self._pause_s * min(2.0, max(0.5, AIM_S / took))))

    def _is_quiet(self) -> bool:
        """Whether no one is served, and there is something to collect."""
        now, work = time.monotonic(), time.process_time()
        (looked, worked), self._looked = self._looked, (now, work)
        busy = (work - worked) / max(now - looked, 1e-6)
        return busy < QUIET_SHARE and now - self._full[0] >= FULL_EVERY_S and work - self._full[1] >= WORTH_S
