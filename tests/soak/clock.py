"""A clock that runs faster than the real one, for the daemon alone (libfaketime, by LD_PRELOAD)."""

from __future__ import annotations

import time
from pathlib import Path

__all__ = ["FastClock", "faketime_library"]

PLACES = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib*/faketime/libfaketimeMT.so.1")


def faketime_library() -> Path | None:
    """Return the library of Debian's package libfaketime; None where it is not installed."""
    return next((path for place in PLACES for path in Path("/").glob(place[1:])), None)


class FastClock:
    """Simulated seconds since the Unix epoch, `factor` of them in each real second."""

    def __init__(self, factor: float) -> None:
        """Begin with the real time; without libfaketime the factor has to be 1. Raises ValueError."""
        library = faketime_library()
        if library is None and factor != 1:
            raise ValueError("FACTOR needs libfaketime (Debian's package faketime); without it, use FACTOR=1")
        self.factor = factor
        self._library = library
        self._began = time.time()
        self._stepped_s = 0.0

    def now(self) -> float:
        """Return the simulated time."""
        return self._began + (time.time() - self._began) * self.factor + self._stepped_s

    def passed_s(self) -> float:
        """Return the simulated seconds that have passed, steps left out."""
        return (time.time() - self._began) * self.factor

    def env(self) -> dict[str, str]:
        """Return what a process that starts now needs in its environment."""
        if self._library is None:
            return {}
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME": f"{self.now() - time.time():+.3f} x{self.factor:g}",
        }

    def step(self, seconds: float) -> None:
        """
        Set the clock forward, or back, for processes that start from now on.

        A process that runs keeps its own: libfaketime would set its monotonic clock too, which no real step does.
        """
        self._stepped_s += seconds

    @staticmethod
    def clean_up(pid: int) -> None:
        """Remove what libfaketime leaves in shared memory of a process that has ended."""
        for name in ("faketime_shm", "sem.faketime_sem"):
            Path(f"/dev/shm/{name}_{pid}").unlink(missing_ok=True)
