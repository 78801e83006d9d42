"""Whether a statement says when in words that mean something only on the day they were said: "next week"."""

from __future__ import annotations

import re

__all__ = ["has_relative_time"]

_UNIT = r"(?:second|minute|hour|day|week|weekend|month|quarter|semester|year|decade)s?"
_COUNT = r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|several|some|a few|few|a couple of)"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_RELATIVE = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|nowadays|recently|lately|soon|currently|presently|later|right now|just now"
    r"|now|at the moment|these days|so far|for now|from now on|the other day|the day (?:after|before)"
    rf"|(?:this|next|last|past|previous|coming|following|upcoming) (?:{_COUNT} )?(?:{_UNIT}|morning|afternoon|evening"
    rf"|night|spring|summer|autumn|fall|winter|term|time|{_WEEKDAY}|{_MONTH})"
    rf"|{_COUNT} (?:more )?{_UNIT} (?:ago|later|earlier|from now|before|after)|in {_COUNT} (?:more )?{_UNIT}"
    rf"|(?:for|within|over) the (?:next|last|past) (?:{_COUNT} )?{_UNIT}"
    rf"|(?<!every )(?<!each ){_WEEKDAY}(?! ?s)"  # "on Mondays" is a habit
    rf"|(?:in|since|by|until|till|before|after|early|late|mid|end of|\d(?:st|nd|rd|th)?(?: of)?) {_MONTH}"
    r"(?!,? (?:\d{1,2}(?:st|nd|rd|th)?,? )?(?:19|20)\d\d)"  # a month without its year
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?!,? (?:19|20)\d\d))\b",
    re.IGNORECASE,
)


def has_relative_time(text: str) -> bool:
    """Return whether a text needs the day on which it was said to be understood; English only."""
    return bool(_RELATIVE.search(text))
