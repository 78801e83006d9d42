"""Times as whole microseconds since 1970, UTC: how arrays and tokens hold them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["from_us", "to_us"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_us(time: datetime) -> int:
    """Return microseconds since 1970."""
    return (time - EPOCH) // _MICROSECOND


def from_us(value: int) -> datetime:
    """Return the time so many microseconds after 1970."""
    return EPOCH + timedelta(microseconds=value)
