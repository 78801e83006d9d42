"""
By how much the server's clock differs from a daemon's.

Leases lie on the server in its time, and are told in the daemon's: so they end at one moment for all daemons, whatever
their clocks say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from memoryd.model.work import Lease

__all__ = ["Skew"]

STEP = timedelta(seconds=1)  # below it the difference is kept as it was, so that what is read is what was written


class Skew:
    """What is known of it; zero before the server has told its time."""

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        """Take the daemon's clock; None: it is taken to go as the server's does."""
        self._clock = clock
        self._ahead = timedelta(0)

    def note(self, server_time: datetime) -> None:
        """Take in what the server's clock says now."""
        if self._clock is None:
            return
        ahead = server_time - self._clock()
        if abs(ahead - self._ahead) > STEP:
            self._ahead = ahead

    def stored(self, lease: Lease) -> Lease:
        """Return a lease in the server's time."""
        return replace(lease, until=lease.until + self._ahead)

    def told(self, lease: Lease) -> Lease:
        """Return a stored lease in the daemon's time."""
        return replace(lease, until=lease.until - self._ahead)
