"""When something is that somebody says: the day on which it is due or was, and for how long it is so."""

from __future__ import annotations

import re
from datetime import date, timedelta

from memoryd.knowledge.grammar.dates import days_named
from memoryd.knowledge.grammar.duration import span_of
from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.grammar.words import plain

__all__ = ["due_day", "is_yearly", "lasting", "past_day"]

A_YEAR = 360  # days
MOST_NEXT = 2  # days until a weekday that nobody calls "next"
_NEXT_DAY = re.compile(r"\bnext (?:mon|tue|wed|thu|fri|sat|sun)", re.IGNORECASE)
_YEARLY = re.compile(r"\b(?:birthday|anniversary|bday|b-day|every|each|yearly|annually)\b", re.IGNORECASE)
_LASTS = compiled("{lasts}")
_STAYS = re.compile(r"\b(?:am|are|is|will be|staying|visiting|away|off|until|till)\b", re.IGNORECASE)


def is_yearly(written: str) -> bool:
    """Whether what is said of a day comes again and again."""
    return bool(_YEARLY.search(written))


def due_day(written: str, today: date) -> tuple[date, bool] | None:
    """Return the day on which something is due, and whether no other day is meant; None where none is still to come."""
    near = (today.year, today.year + 1)  # what is due is still to come
    named = [days for days in days_named(written, today, near) if days.last >= today.toordinal()]
    if not named:
        return None
    first, *later = sorted(named, key=lambda days: days.first)
    if later and first.first - today.toordinal() <= MOST_NEXT and _NEXT_DAY.search(written):
        first = later[0]  # on a Wednesday, "next Thursday" is not tomorrow
    day = date.fromordinal(max(first.first, today.toordinal()))
    certain = len({days for days in named if days.first - first.first < A_YEAR}) == 1 and first.first == first.last
    return day, certain


def past_day(written: str, today: date) -> tuple[date, bool] | None:
    """Return the last day named that is past, or today, and whether no other day is meant; None where none is."""
    named = set(days_named(written, today, (today.year - 1, today.year)))
    past = [days for days in named if 0 <= today.toordinal() - days.first < A_YEAR]
    if not past:
        return None
    last = max(past, key=lambda days: days.first)
    return date.fromordinal(last.first), len(past) == 1 and last.first == last.last


def lasting(said: str, today: date) -> timedelta | None:
    """Return for how long something is so, where it says so: "I'm in Lisbon for two weeks", "until Friday"."""
    written = plain(said)
    if not _STAYS.search(written) or re.search(r"\b(?:have|has|had) been\b", written, re.IGNORECASE):
        return None
    until = re.search(r"\b(?:until|till|through) (?P<when>.+)$", written, re.IGNORECASE)
    if until:
        named = [days for days in days_named(f"on {until['when']}", today) if days.first >= today.toordinal()]
        if named:
            return timedelta(days=min(day.last for day in named) + 1 - today.toordinal())
    match = _LASTS.search(written)
    if match is None or not (match["count"] or "next" in match[0] or "coming" in match[0]):
        return None
    return span_of(match["count"] or "one", match["unit"])
