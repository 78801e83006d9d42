"""Intervals of days, and those that the calendar has."""

from __future__ import annotations

from calendar import monthrange
from datetime import date
from typing import NamedTuple

__all__ = ["Days", "day_of", "month_days"]


class Days(NamedTuple):
    """An interval of days, both of them in it, as proleptic ordinals (date.toordinal)."""

    first: int
    last: int


def day_of(year: int, month: int, day: int) -> int | None:
    """Return the ordinal of a day; None where the calendar has none such."""
    if not 1 <= day <= monthrange(year, month)[1]:
        return None
    return date(year, month, day).toordinal()


def month_days(year: int, month: int) -> Days:
    """Return all days of a month."""
    return Days(date(year, month, 1).toordinal(), date(year, month, monthrange(year, month)[1]).toordinal())
