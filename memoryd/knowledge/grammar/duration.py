"""For how long something is so: "for two weeks", "for a couple of months"."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from memoryd.knowledge.lexicon.load import table

__all__ = ["days_of", "number_of", "span_of"]

MOST_DAYS = 36_525  # a century; what is so for longer has no end
MOST_DIGITS = 5
_NUMBERS: Mapping[str, int] = {**table("numbers.counted"), **table("numbers.about")}
_DAYS: Mapping[str, int] = table("numbers.days")


def days_of(unit: str) -> int:
    """Return the days of a day, week, month or year."""
    return _DAYS[unit.lower()]


def number_of(count: str) -> int:
    """Return how many are counted, in words: "a couple of" are 2, "the next few" 3; 1 where nothing is counted."""
    return next((_NUMBERS[word] for word in reversed(count.lower().split()) if word in _NUMBERS), 1)


def span_of(count: str, unit: str) -> timedelta | None:
    """Return so many units, the count in digits or in words; None where that is no end at all."""
    if count.isdigit() and len(count) > MOST_DIGITS:
        return None
    days = (int(count) if count.isdigit() else number_of(count)) * days_of(unit)
    return timedelta(days=days) if days <= MOST_DAYS else None
