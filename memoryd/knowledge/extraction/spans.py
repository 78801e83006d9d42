"""For how long something is so: "for two weeks", "for a couple of months"."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["days_of", "span_of"]

MOST_DAYS = 36_525  # a century; what is so for longer has no end
MOST_DIGITS = 5
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "twelve": 12, "a couple of": 2, "a few": 3,
}  # fmt: skip
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


def days_of(unit: str) -> int:
    """Return the days of a day, week, month or year."""
    return _DAYS[unit.lower()]


def span_of(count: str, unit: str) -> timedelta | None:
    """Return so many units, the count in digits or in words; None where that is no end at all."""
    if count.isdigit() and len(count) > MOST_DIGITS:
        return None
    number = int(count) if count.isdigit() else _COUNTS[count.lower()]
    days = number * days_of(unit)
    return timedelta(days=days) if days <= MOST_DAYS else None
