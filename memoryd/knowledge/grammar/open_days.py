"""Days of a question that are open to one side: "since March", "before 3 May", "by Friday", "as of 2024"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import islice

from memoryd.knowledge.grammar.dates import Days, days_named
from memoryd.knowledge.grammar.pattern import compiled

__all__ = ["opened"]

FAR = 36_525  # days: a hundred years
MOST = 4  # such words of a question that are read
_OPENS = compiled("{opens}")
_AHEAD = 40  # characters after such a word, in which its day stands
_FROM = frozenset(["since", "seit", "depuis", "desde"])
_AFTER = frozenset(["after", "nach", "après", "después de"])
_BEFORE = frozenset(["before", "prior to", "vor", "avant", "antes de", "antes del"])


def opened(text: str, days: Iterable[Days], today: date, years: Sequence[int]) -> list[Days]:
    """Return the days that a question names, those after such a word without an end on the side that it leaves open."""
    held = list(days)
    for match in islice(_OPENS.finditer(text), MOST) if held else ():
        after = text[match.end() : match.end() + _AHEAD]
        begin = re.split(r"[,;?!]| and | or ", after)[0]
        named = set(days_named(f"on {begin}", today, years)) | set(days_named(begin, today, years))
        held = [_opened(one, match["word"].lower(), today) if one in named else one for one in held]
    return list(dict.fromkeys(held))


def _opened(days: Days, word: str, today: date) -> Days:
    if word in _FROM:
        return Days(days.first, max(today.toordinal(), days.last))
    if word in _AFTER:
        return Days(days.last + 1, days.last + FAR)
    return Days(max(1, days.first - FAR), days.first - 1 if word in _BEFORE else days.last)
