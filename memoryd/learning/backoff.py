"""How long to wait after failures in a row."""

from __future__ import annotations

__all__ = ["backoff_s"]

MOST_DOUBLINGS = 30  # no float holds two to the power of how often an endpoint fails within a week


def backoff_s(failed_count: int, *, first_s: float, longest_s: float) -> float:
    """Return a pause in seconds: `first_s` after the first failure, then twice as long each time, up to `longest_s`."""
    return min(longest_s, first_s * 2.0 ** min(failed_count - 1, MOST_DOUBLINGS))
