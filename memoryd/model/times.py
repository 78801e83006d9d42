"""Times as whole microseconds since 1970, as arrays and tokens hold them, and as text; always UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["DAY_US", "EPOCH", "from_us", "rfc3339", "to_us"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
DAY_US = timedelta(days=1) // _MICROSECOND


def to_us(time: datetime) -> int:
    """Return microseconds since 1970."""
    return (time - EPOCH) // _MICROSECOND


def rfc3339(time: datetime) -> str:
    """Return the text for programs: `2026-11-22T21:52:46Z`."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def from_us(value: int) -> datetime:
    """Return the time so many microseconds after 1970."""
    return EPOCH + timedelta(microseconds=value)
