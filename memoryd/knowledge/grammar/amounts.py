"""Numbers with what they count: "for a couple of months", "5 feet 11 inches", "19:00"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from memoryd.knowledge.lexicon.load import table

__all__ = ["clock_of", "days_of", "measure_of", "number_of", "span_of"]

MOST_DAYS = 36_525  # a century; what is so for longer has no end
MOST_DIGITS = 5
_NUMBERS: Mapping[str, int] = {**table("numbers.counted"), **table("numbers.about")}
_DAYS: Mapping[str, int] = table("numbers.days")
_UNITS = {unit: (dimension, size) for dimension, units in table("numbers.unit").items() for unit, size in units.items()}
"""Unit → its dimension and size in kilograms, metres or seconds."""
_MEASURE = re.compile(r"(\d+(?:[.,]\d+)?)[ -]?([a-z]+)", re.IGNORECASE)
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.](\d\d))? ?(am|pm|a\.m\.|p\.m\.)?\b", re.IGNORECASE)


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


def measure_of(text: str) -> tuple[str, float] | None:
    """Return the dimension and the amount in its base unit, of all parts of it ("5 feet 11 inches")."""
    total, dimension = 0.0, ""
    for number, unit in _MEASURE.findall(text):
        known = _UNITS.get(unit.lower()) or _UNITS.get(unit.lower().rstrip("s"))
        if known is not None and dimension in {"", known[0]}:
            dimension = known[0]
            total += float(number.replace(",", ".")) * known[1]
    return (dimension, total) if dimension else None


def clock_of(text: str) -> frozenset[str]:
    """Return a time of day as one token, so that "7pm" and "19:00" are one."""
    match = _CLOCK.search(text)
    if match is None:
        return frozenset()
    hour, minute, half = int(match[1]), int(match[2] or 0), (match[3] or "").lower()
    if half.startswith("p") and hour < 12:  # noqa: PLR2004  noon
        hour += 12
    return frozenset({f"{hour}:{minute:02}"})
