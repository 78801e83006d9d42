"""
Whether the wall clock can be believed: what erases by age waits while it is implausibly far ahead.

While it is behind, as before the network has set it, less is due than should be, so that may go; but no date is put
right by it, and what is deleted is kept for its grace from the time that it should be.

The clock is compared with the time that has passed since it was right: with CLOCK_BOOTTIME while memoryd runs, and over
a stop with the time that memoryd wrote down last. It is believed again once it has come back or gone on steadily for a
day, or when the operator says that it is right.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

__all__ = ["AHEAD", "CLOCK_SEEN", "ClockWatch", "holds"]

CLOCK_SEEN = "clock seen"  # the mark of the last time that was believed
STOPPED = timedelta(days=7)  # so long may memoryd have been stopped without a doubt
LEAP = timedelta(hours=1)  # so far may the clock be set while it runs
STEADY = timedelta(days=1)
AHEAD = timedelta(days=1)  # a stored time so far ahead of the clock shows that a clock was wrong


def holds(until: datetime | None, now: datetime, longest: timedelta) -> bool:
    """Whether something lasts until a time that is to come; what ends later than `longest` comes from a wrong clock."""
    return until is not None and now < until <= now + longest


class ClockWatch:
    """Watches the wall clock; `uptime_s` returns seconds that have passed for certain, those of sleep too."""

    def __init__(self, now: datetime, seen: datetime | None, uptime_s: Callable[[], float]) -> None:
        """Begin with the last time that was believed; None: there was none."""
        self._uptime_s = uptime_s
        self._right = now if seen is None else seen  # the time that was believed,
        self._right_at = self._steady_at = uptime_s()  # when that was,
        self._leeway = STOPPED  # and how much more may have passed since
        self._steady = now  # from where on the clock goes steadily
        self.look(now)

    def _passed(self, since: float) -> timedelta:
        return timedelta(seconds=self._uptime_s() - since)

    def _surplus(self, now: datetime) -> timedelta:
        return now - (self._right + self._passed(self._right_at))

    def look(self, now: datetime) -> bool:
        """Look at the clock, as should be done once a minute; return whether it is believed."""
        steady = abs(now - (self._steady + self._passed(self._steady_at))) <= LEAP
        if not steady:
            self._steady, self._steady_at = now, self._uptime_s()
        plausible = -LEAP <= self._surplus(now) <= self._leeway
        if (plausible and self._leeway == STOPPED) or (steady and self._passed(self._steady_at) >= STEADY):
            self.believe(now)
            return True
        return plausible

    def believe(self, now: datetime) -> None:
        """Take the clock as it is."""
        self._right = self._steady = now
        self._right_at = self._steady_at = self._uptime_s()
        self._leeway = LEAP

    def is_behind(self, now: datetime) -> bool:
        """Whether the clock is implausibly far behind."""
        return self._surplus(now) < -LEAP

    def never_behind(self, now: datetime) -> datetime:
        """Return the time; where the clock is behind, the one that it should be at least."""
        return self._right + self._passed(self._right_at) if self.is_behind(now) else now

    def doubt(self, now: datetime) -> str:
        """Return why nothing is erased by its age now, and what to do; "" where the clock is not too far ahead."""
        ahead = self._surplus(now)
        if ahead <= self._leeway:
            return ""
        far = f"{ahead.days} days" if ahead.days > 1 else f"{ahead.total_seconds() / 3600:.0f} hours"
        return (
            f"the clock has gone forward by {far} since memoryd last believed it, so purge, decay and eviction wait"
            " until it has gone on steadily for a day; if it is right: memoryd gc --clock-is-right"
        )
