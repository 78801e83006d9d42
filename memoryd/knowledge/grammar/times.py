"""
How a text tells of time, besides the days that it names.

Whether it is understood only on the day on which it was said, which days it leaves open to one side ("since March"),
when something is due or was, and for how long it is so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from itertools import islice

from memoryd.knowledge.grammar.amounts import span_of
from memoryd.knowledge.grammar.dates import Days, days_named
from memoryd.knowledge.grammar.pattern import compiled, expanded
from memoryd.knowledge.grammar.words import plain

__all__ = ["due_day", "has_relative_time", "is_yearly", "lasting", "opened", "past_day"]

MOST_CHARACTERS = 1000  # that are read: half a millisecond
_OTHER_LANGUAGES = re.compile(expanded("{other_languages}"))
_RELATIVE = re.compile(expanded(r"\b{relative}\b"))


def has_relative_time(text: str) -> bool:
    """Return whether a text needs the day on which it was said to be understood; of a long one it is taken for sure."""
    if len(text) > MOST_CHARACTERS:
        return True
    lower = text.lower()  # a quarter of the time of patterns that ignore case (measured)
    return bool(_RELATIVE.search(lower) or _OTHER_LANGUAGES.search(lower))


FAR = 36_525  # days: a hundred years
MOST = 4  # such words of a question that are read
_OPENS = compiled("{opens}")
_AHEAD = 40  # characters after such a word, in which its day stands
_FROM = frozenset(["since", "seit", "depuis", "desde"])
_AFTER = frozenset(["after", "nach", "après", "después de"])
_BEFORE = frozenset(["before", "prior to", "vor", "avant", "antes de", "antes del"])


def opened(text: str, days: Iterable[Days], today: date, years: Sequence[int]) -> list[Days]:
    """Return the days that a question names, those after such a word without an end on the side that it leaves open."""
    ranges = list(days)
    for match in islice(_OPENS.finditer(text), MOST) if ranges else ():
        after = text[match.end() : match.end() + _AHEAD]
        begin = re.split(r"[,;?!]| and | or ", after)[0]
        named = set(days_named(f"on {begin}", today, years)) | set(days_named(begin, today, years))
        ranges = [_opened(span, match["word"].lower(), today) if span in named else span for span in ranges]
    return list(dict.fromkeys(ranges))


def _opened(days: Days, word: str, today: date) -> Days:
    if word in _FROM:
        return Days(days.first, max(today.toordinal(), days.last))
    if word in _AFTER:
        return Days(days.last + 1, days.last + FAR)
    return Days(max(1, days.first - FAR), days.first - 1 if word in _BEFORE else days.last)


A_YEAR = 360  # days
MOST_NEXT = 2  # days until a weekday that no one calls "next"
_NEXT_DAY = compiled(r"\bnext {weekday_begins}")
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


def lasting(text: str, today: date) -> timedelta | None:
    """Return for how long something is so, where it says so: "I'm in Lisbon for two weeks", "until Friday"."""
    written = plain(text)
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
