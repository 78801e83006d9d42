"""
From words to days: what a text says of when, as intervals of days.

A question's words are resolved against now, a memory's against its own time. Rules, no library: measured on the phrases
of tests/knowledge/date_phrases.py, dateparser and recurrent name points in time where people mean spans, and read
numbers and names as dates.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import islice
from typing import NamedTuple

from memoryd.knowledge.grammar.amounts import number_of
from memoryd.knowledge.grammar.pattern import expanded
from memoryd.knowledge.lexicon.load import words

__all__ = ["Days", "days_named"]


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


MOST_CHARACTERS = 1000  # of a text that are read
MOST_DAYS = 24  # intervals of one text
MOST_MATCHES = 8  # of one form in one text
FAR_DAYS = 366 * 120  # no one's own memory is farther away


_MONTHS = {name: n for n, name in enumerate(words("time.month"), 1)}
_MONTHS |= {name[:3]: n for name, n in _MONTHS.items()} | {"sept": 9}
_WEEKDAYS = {
    spelled: n
    for n, name in enumerate(words("time.weekday"))
    for spelled in (name, name[:3], *({name[:4], name[:5]} & {"tues", "thurs"}))
}
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": -1}
_SEASONS = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11), "winter": (12, 2)}

_MONTH = expanded(r"(?P<month>{month}|sept|{month_begins}\b\.?)")
_MONTH2 = _MONTH.replace("month", "month2", 1)
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_DAY2 = _DAY.replace("day", "day2", 1)
_YEAR = r"(?:(?:,? of)?,? (?P<year>(?:19|20)\d\d))"
_TO = r" ?(?:-|–|—|to|until|till|through|and) ?(?:the )?"
_COUNT = expanded("{dates_count}")
_UNIT = r"(?P<unit>day|night|week|weekend|fortnight|month|year)s?"
_WEEKDAY = expanded("{dates_weekday}")

_Rule = Callable[[re.Match[str], date, Sequence[int]], Iterator[Days]]


def _month_of(name: str) -> int:
    return _MONTHS[name.rstrip(".")]


def _years(match: re.Match[str], years: Sequence[int]) -> Sequence[int]:
    said = match.groupdict().get("year")
    return (int(said),) if said else years


def _ordered(first: int | None, last: int | None) -> Iterator[Days]:
    if first is not None and last is not None and first <= last:
        yield Days(first, last)


def _iso(match: re.Match[str], _: date, __: Sequence[int]) -> Iterator[Days]:
    year, month, day = int(match["year"]), int(match["number"]), match["day"]
    if not 1 <= month <= 12:  # noqa: PLR2004  months of a year
        return
    if day is None:
        yield month_days(year, month)
    else:
        found = day_of(year, month, int(day))
        yield from _ordered(found, found)


def _numeric(match: re.Match[str], _: date, __: Sequence[int]) -> Iterator[Days]:
    """18.11.2026, 18/11/2026, 11-18-2026: with dots the day comes first; of what else may be either, both."""
    year, one, two = int(match["year"]), int(match["one"]), int(match["two"])
    ways = [(one, two)] if match["mark"] == "." else [(one, two), (two, one)]
    for day, month in dict.fromkeys(ways):
        if 1 <= month <= 12:  # noqa: PLR2004  months of a year
            found = day_of(year, month, day)
            yield from _ordered(found, found)


def _of_the_nth(match: re.Match[str], today: date, _: Sequence[int]) -> Iterator[Days]:
    """The 18th: of this month, the one before and the next."""
    day = int(match["day"])
    for step in (-1, 0, 1):
        months = today.year * 12 + today.month - 1 + step
        found = day_of(months // 12, months % 12 + 1, day)
        yield from _ordered(found, found)


def _of_months(match: re.Match[str], _: date, years: Sequence[int]) -> Iterator[Days]:
    """A day, or days to days: "9 January", "January 9th to 11th", "Jan 30 to Feb 2"."""
    parts = match.groupdict()
    for year in _years(match, years):
        month = _month_of(match["month"])
        month2 = _month_of(parts["month2"]) if parts.get("month2") else month
        first = day_of(year, month, int(match["day"]))
        last = first
        if parts.get("day2"):
            last = day_of(year + (month2 < month), month2, int(parts["day2"]))
        yield from _ordered(first, last)


def _of_month(match: re.Match[str], _: date, years: Sequence[int]) -> Iterator[Days]:
    """A month or a part of it: "mid-March", "the last week of May", "June 2023"; "from March to May" is both."""
    parts = match.groupdict()
    for year in _years(match, years):
        days = month_days(year, _month_of(match["month"]))
        if parts.get("month2"):
            month2 = _month_of(parts["month2"])
            yield from _ordered(days.first, month_days(year + (month2 < _month_of(match["month"])), month2).last)
        else:
            yield _part_of(days, parts.get("part") or "", parts.get("nth") or "", parts.get("piece") or "")


def _part_of(days: Days, part: str, nth: str, piece: str) -> Days:
    """Return a part of a month: early is its first eleven days, mid the 9th to the 21st, late its last twelve."""
    first, last = days
    if piece:
        length = {"week": 7, "weekend": 7, "half": 15}[piece]
        number = _ORDINALS[nth]
        if number < 0 or (piece == "half" and number > 1):
            return Days(last - length + 1 if piece != "half" else first + 15, last)
        start = first + (number - 1) * length
        return Days(min(start, last), min(start + length - 1, last))
    part = part.removeprefix("the ")
    if part.startswith(("early", "beginning", "start")):
        return Days(first, first + 10)
    if part.startswith("mid"):
        return Days(first + 8, first + 20)
    if part.startswith(("late", "end")):
        return Days(last - 11, last)
    return days


def _of_year(match: re.Match[str], _: date, __: Sequence[int]) -> Iterator[Days]:
    year = int(match["year"])
    yield Days(date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal())


def _of_quarter(match: re.Match[str], _: date, years: Sequence[int]) -> Iterator[Days]:
    for year in _years(match, years):
        first = 3 * int(match["quarter"]) - 2
        yield Days(month_days(year, first).first, month_days(year, first + 2).last)


def _of_season(match: re.Match[str], today: date, years: Sequence[int]) -> Iterator[Days]:
    """Northern seasons: the summer of a year, last summer, this winter."""
    first, last = _SEASONS[match["season"]]
    which = match.groupdict().get("which")
    if which:
        begin = date(today.year, first, 1).toordinal()
        year = today.year
        if which == "last":
            year -= begin + 92 > today.toordinal()  # one that is not over is not the last one
        elif which == "next":
            year += begin <= today.toordinal()
        years = (year,)
    for year in _years(match, years):
        yield Days(month_days(year, first).first, month_days(year + (last < first), last).last)


def _of_near(match: re.Match[str], today: date, _: Sequence[int]) -> Iterator[Days]:
    """Words for days around today."""
    word, now = match["near"], today.toordinal()
    away = {"yesterday": -1, "tomorrow": 1, "the day before yesterday": -2, "the day after tomorrow": 2}
    if word in away:
        yield Days(now + away[word], now + away[word])
    elif word.startswith("last night"):
        yield Days(now - 1, now)
    elif word in {"the other day", "recently", "lately"}:
        yield Days(now - 14, now)
    else:  # today, tonight, this morning …
        yield Days(now, now)


def _of_week(match: re.Match[str], today: date, _: Sequence[int]) -> Iterator[Days]:
    """Last, this and next week, weekend, month, year: calendar ones, as people count them."""
    which, unit = match["which"], match["unit"]
    step = {"last": -1, "past": -1, "previous": -1, "this": 0, "current": 0}.get(which, 1)
    monday = today.toordinal() - today.weekday()
    if unit == "week":
        first = monday + 7 * step
        yield Days(first - (step < 0), first + 6)
    elif unit == "weekend":
        saturday = monday + 5 + 7 * step
        if step < 0 and saturday + 1 >= today.toordinal():
            saturday -= 7
        yield Days(saturday - 1, saturday + 1)
    elif unit == "month":
        months = today.year * 12 + today.month - 1 + step
        yield month_days(months // 12, months % 12 + 1)
    elif unit == "year":
        yield Days(date(today.year + step, 1, 1).toordinal(), date(today.year + step, 12, 31).toordinal())


def _of_past(match: re.Match[str], today: date, _: Sequence[int]) -> Iterator[Days]:
    """The past three weeks, the next ten days: from or to today."""
    span = round(_number(match["count"] or "one") * _LENGTHS[match["unit"]])
    now = today.toordinal()
    yield Days(now, now + span) if match["which"] in {"next", "coming"} else Days(now - span, now)


_LENGTHS = {"day": 1, "night": 1, "week": 7, "weekend": 7, "fortnight": 14, "month": 30.44, "year": 365.25}
_SLACK = {"day": 0, "night": 0, "week": 3, "weekend": 3, "fortnight": 4, "month": 15, "year": 183}
_VAGUE_SLACK = {"day": 2, "night": 2, "week": 7, "weekend": 7, "fortnight": 14, "month": 31, "year": 365}


def _number(text: str) -> int:
    if text.isdigit():
        return int(text)
    return number_of(text)


def _of_ago(match: re.Match[str], today: date, _: Sequence[int]) -> Iterator[Days]:
    """So many days, weeks, months or years ago, or from now; the larger the unit, the less exactly it is meant."""
    count, unit = _number(match["count"]), match["unit"]
    slack = _VAGUE_SLACK[unit] if "few" in match["count"] or "couple" in match["count"] else _SLACK[unit]
    away = round(count * _LENGTHS[unit])
    middle = today.toordinal() + (-away if match["way"] in {"ago", "back", "earlier", "before"} else away)
    yield Days(middle - slack, middle + slack)


def _of_weekday(match: re.Match[str], today: date, _: Sequence[int]) -> Iterator[Days]:
    """Last Friday is the one before today; next Friday, this Friday and on Friday may be either of two."""
    number, which = _WEEKDAYS[match["weekday"]], match.groupdict().get("which") or ""
    now = today.toordinal()
    before = now - ((today.weekday() - number) % 7 or 7)
    after = now + ((number - today.weekday()) % 7 or 7)
    if which in {"last", "past", "previous"}:
        yield Days(before, before)
    elif which in {"next", "coming"}:
        yield Days(after, after)
        if after - now < 7 and which == "next":  # noqa: PLR2004  the one of next week may be meant
            monday = now - today.weekday() + 7
            if monday + number != after:
                yield Days(monday + number, monday + number)
    elif which == "this":
        this = now - today.weekday() + number
        yield Days(this, this)
    else:
        yield Days(before, before)
        yield Days(after, after)


class _Form(NamedTuple):
    """One way of naming days. A text that it reads holds one of the anchors; looking for those is fast."""

    pattern: re.Pattern[str]
    read: _Rule
    anchors: tuple[str, ...]


def _form(pattern: str, read: _Rule, *anchors: str) -> _Form:
    return _Form(re.compile(rf"(?<![\w.]){pattern}(?![\w])"), read, anchors)


_MONTH_STARTS, _DAY_STARTS = words("time.month_begins"), words("time.weekday_begins")
_PART = r"(?P<part>early|mid|late|the (?:beginning|start|middle|end) of|(?:beginning|start|middle|end) of)[ -]"
_NTH = rf"(?:the )?(?P<nth>{'|'.join(_ORDINALS)}) (?P<piece>week|weekend|half) of "
_DATED = (
    _form(rf"{_MONTH} {_DAY}{_TO}(?:{_MONTH2} )?{_DAY2}{_YEAR}?", _of_months),
    _form(rf"(?:the )?{_DAY}{_TO}{_DAY2}(?: of)? {_MONTH}{_YEAR}?", _of_months),
    _form(rf"(?:the )?{_DAY}(?: of)? {_MONTH}{_TO}{_DAY2}(?: of)? {_MONTH2}{_YEAR}?", _of_months),
    _form(rf"(?:the )?{_DAY}(?: of)? {_MONTH}{_YEAR}?", _of_months),
    _form(rf"{_MONTH},? (?:the )?{_DAY}(?!\d|:| ?[ap]m\b){_YEAR}?", _of_months),
    _form(rf"{_NTH}{_MONTH}{_YEAR}?", _of_month),
    _form(rf"{_PART}(?:the month of )?{_MONTH}{_YEAR}?", _of_month),
    _form(rf"(?:from |between ){_MONTH}{_TO}{_MONTH2}{_YEAR}?", _of_month),
    _form(rf"{_MONTH}{_YEAR}", _of_month),
    # a bare month: "may" and "march" are words of their own but for what stands before them
    _form(rf"(?:in|during|since|of|until|till|by|this|last|next) {_MONTH}", _of_month),
    _form(r"(?P<month>january|february|april|june|july|august|september|october|november|december)", _of_month),
)
_OTHERS = (
    _form(
        r"(?P<year>(?:19|20)\d\d)[-/.](?P<number>[01]?\d)(?:[-/.](?P<day>[0-3]?\d))?(?:t[\d:.]+z?)?", _iso, "19", "20"
    ),
    _form(
        r"(?P<one>[0-3]?\d)(?P<mark>[./-])(?P<two>[0-3]?\d)(?P=mark)(?P<year>(?:19|20)\d\d)", _numeric, "19", "20"
    ),
    _form(
        r"(?:on |by |since |until |before |after )?the (?P<day>[0-3]?\d)(?:st|nd|rd|th)"
        r"(?! (?!at\b|in the\b|of\b)[a-z])",
        _of_the_nth,
        *("1st", "2nd", "3rd", *(f"{n}th" for n in range(10))),
    ),
    _form(r"q(?P<quarter>[1-4])(?:,? (?:of )?(?P<year>(?:19|20)\d\d))?", _of_quarter, "q1", "q2", "q3", "q4"),
    _form(
        rf"(?:the )?(?P<season>{'|'.join(_SEASONS)}) (?:of )?(?P<year>(?:19|20)\d\d)", _of_season, *_SEASONS
    ),
    _form(rf"(?P<which>last|this|next) (?P<season>{'|'.join(_SEASONS)})", _of_season, *_SEASONS),
    _form(
        rf"{_COUNT} {_UNIT} (?P<way>ago|back|earlier|from now)", _of_ago, " ago", " back", "earlier", "from now"
    ),
    _form(
        rf"(?:the |this )?(?P<which>last|past|next|coming) {_COUNT} {_UNIT}", _of_past, "last", "past", "next", "coming"
    ),
    _form(rf"the (?P<which>past) (?P<count>){_UNIT}", _of_past, "the past "),
    _form(
        expanded("(?P<near>{near_days})"),
        _of_near,
        "yesterday", "tomorrow", "last night", "today", "tonight", "this ", "the other", "recently", "lately",
    ),
    _form(
        r"(?P<which>last|past|previous|this|current|next|coming|following) (?P<unit>weekend|week|month|year)", _of_week,
        "last ", "past ", "previous", "this ", "current", "next ", "coming", "following",
    ),
    _form(
        rf"(?P<which>last|past|previous|this|next|coming) {_WEEKDAY}", _of_weekday,
        *(f"{word} {day}" for word in ("last", "past", "previous", "this", "next", "coming") for day in _DAY_STARTS),
    ),
    _form(rf"on {_WEEKDAY}(?: (?:morning|afternoon|evening|night))?", _of_weekday, *(f"on {d}" for d in _DAY_STARTS)),
)  # fmt: skip
_HABITUAL = (_DATED[-1], _DATED[-2], _OTHERS[-1])
_ANCHORS = {*_MONTH_STARTS, *(anchor for form in _OTHERS for anchor in form.anchors)}
_FEWEST = tuple(sorted(one for one in _ANCHORS if not any(other != one and other in one for other in _ANCHORS)))
"""The anchors that hold no other one: a text without any of them holds none at all."""
_YEARS = _form(r"(?:in|of|since|during|for|from|year|throughout) (?P<year>(?:19|20)\d\d)", _of_year)
_HABIT = re.compile(r"\b(?:every|each) $")  # "every July" names no day


def days_named(text: str, today: date, years: Sequence[int] = (), *, habits: bool = False) -> list[Days]:
    """
    Return the days that a text names, seen from a day; at most MOST_DAYS intervals, in no order.

    A date without a year is that of each of `years`; without them of the year in which it is nearest to that day. With
    `habits` a bare weekday or month names none: "the trash is collected on Thursday" tells of no day.
    """
    lowered = text[:MOST_CHARACTERS].lower()
    near = years or (today.year - 1, today.year, today.year + 1)
    ranges: list[Days] = []
    for form in _worth_reading(lowered):
        if habits and form in _HABITUAL:
            continue
        matches = list(islice(form.pattern.finditer(lowered), MOST_MATCHES))
        ranges += [days for match in matches for days in _of_match(form, match, lowered, today, years)]
        if matches:  # of "31 June", which there is not, the month is not read, either
            lowered = form.pattern.sub(lambda match: " " * len(match[0]), lowered)  # read once, by the longest form
    if not ranges and (" 19" in lowered or " 20" in lowered):
        ranges = [days for match in _YEARS.pattern.finditer(lowered) for days in _read(_YEARS, match, today, near)]
    now = today.toordinal()
    return [days for days in dict.fromkeys(ranges) if abs(days.first - now) < FAR_DAYS][:MOST_DAYS]


def _worth_reading(lowered: str) -> list[_Form]:
    """Return the forms that have an anchor in a text: none for most texts, in a few microseconds."""
    for anchor in _FEWEST:  # a plain loop: half the time of any(…), and this is read of every text of a scope
        if anchor in lowered:
            break
    else:
        return []
    forms = [form for form in _OTHERS if any(anchor in lowered for anchor in form.anchors)]
    return [*_DATED, *forms] if any(name in lowered for name in _MONTH_STARTS) else forms


def _of_match(form: _Form, match: re.Match[str], text: str, today: date, years: Sequence[int]) -> list[Days]:
    """Return the days of a match; of a date without a year, where no years are given, the nearest one."""
    if _HABIT.search(text, max(0, match.start() - 6), match.start()):
        return []
    read = _read(form, match, today, years or (today.year - 1, today.year, today.year + 1))
    if len(read) < 2 or years or form.read is _of_weekday:  # noqa: PLR2004  there is nothing to choose
        return read
    return [min(read, key=lambda days: abs(days.first + days.last - 2 * today.toordinal()))]


def _read(form: _Form, match: re.Match[str], today: date, years: Sequence[int]) -> list[Days]:
    """Return the days of a match; none that the calendar does not have."""
    try:
        return list(form.read(match, today, years))
    except (ValueError, OverflowError):
        return []
