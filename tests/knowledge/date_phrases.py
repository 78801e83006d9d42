"""Phrases of time with the days that people mean by them, said on a Wednesday; and phrases that name no day."""

from __future__ import annotations

from datetime import date, timedelta

__all__ = ["NO_DAYS", "PHRASES", "TODAY"]

TODAY = date(2024, 5, 15)
Span = tuple[date, date]


def d(year: int, month: int, day: int) -> date:
    return date(year, month, day)


def _on(day: date) -> Span:
    return day, day


def _ago(days: int) -> Span:
    return _on(TODAY - timedelta(days=days))


def _explicit() -> list[tuple[str, Span]]:
    found = []
    for day in (d(2023, 5, 8), d(2024, 1, 1), d(2022, 12, 31), d(2024, 2, 29), d(2023, 9, 3), d(2025, 7, 21)):
        month, short = day.strftime("%B"), day.strftime("%b")
        ending = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}.get(day.day, "th")
        for form in (
            f"We met on {day.day} {month} {day.year}.",
            f"on {month} {day.day}, {day.year} it rained",
            f"the {day.day}{ending} of {month}, {day.year}",
            f"{month} {day.day}{ending}, {day.year}",
            f"it was {day.day} {short} {day.year}",
            f"{short} {day.day}, {day.year}: lunch",
            f"due {day.isoformat()}",
            f"{day.year}/{day.month:02}/{day.day:02} meeting",
            f"started at {day.isoformat()}T10:15:00",
        ):
            found.append((form, _on(day)))
    return found


def _last(year: int, month: int) -> date:
    return d(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def _months() -> list[tuple[str, Span]]:
    found = []
    for number, name in enumerate(("January", "March", "May", "August", "November"), 0):
        month = (1, 3, 5, 8, 11)[number]
        for year in (2022, 2023):
            whole = d(year, month, 1), _last(year, month)
            found += [
                (f"in {name} {year}", whole),
                (f"What did I do in {name} of {year}?", whole),
                (f"during {name}, {year}", whole),
                (f"early {name} {year}", (d(year, month, 1), d(year, month, 11))),
                (f"mid-{name} {year}", (d(year, month, 9), d(year, month, 21))),
                (f"at the end of {name} {year}", (_last(year, month) - timedelta(days=11), _last(year, month))),
                (f"the first week of {name} {year}", (d(year, month, 1), d(year, month, 7))),
                (f"the last week of {name} {year}", (_last(year, month) - timedelta(days=6), _last(year, month))),
                (f"the second half of {name} {year}", (d(year, month, 16), _last(year, month))),
                (f"from {name} 3 to {name} 9, {year}", (d(year, month, 3), d(year, month, 9))),
                (f"{name} 5th to 7th, {year}", (d(year, month, 5), d(year, month, 7))),
            ]
    return found


RELATIVE: list[tuple[str, Span]] = [
    ("I saw him yesterday", _ago(1)),
    ("today was long", _ago(0)),
    ("see you tomorrow", _ago(-1)),
    ("the day before yesterday we moved", _ago(2)),
    ("the day after tomorrow", _ago(-2)),
    ("last night I slept badly", (TODAY - timedelta(days=1), TODAY)),
    ("tonight we eat out", _ago(0)),
    ("this morning", _ago(0)),
    ("last week was busy", (d(2024, 5, 6), d(2024, 5, 12))),
    ("next week I fly", (d(2024, 5, 20), d(2024, 5, 26))),
    ("this week", (d(2024, 5, 13), d(2024, 5, 19))),
    ("last weekend we hiked", (d(2024, 5, 11), d(2024, 5, 12))),
    ("this weekend", (d(2024, 5, 18), d(2024, 5, 19))),
    ("next weekend", (d(2024, 5, 25), d(2024, 5, 26))),
    ("last month I started", (d(2024, 4, 1), d(2024, 4, 30))),
    ("this month", (d(2024, 5, 1), d(2024, 5, 31))),
    ("next month we marry", (d(2024, 6, 1), d(2024, 6, 30))),
    ("last year in Rome", (d(2023, 1, 1), d(2023, 12, 31))),
    ("this year", (d(2024, 1, 1), d(2024, 12, 31))),
    ("next year", (d(2025, 1, 1), d(2025, 12, 31))),
    ("last Friday", _on(d(2024, 5, 10))),
    ("last Monday he called", _on(d(2024, 5, 13))),
    ("last Wednesday", _on(d(2024, 5, 8))),
    ("next Friday", _on(d(2024, 5, 17))),
    ("this Thursday", _on(d(2024, 5, 16))),
    ("last Sunday", _on(d(2024, 5, 12))),
    ("next Tuesday", _on(d(2024, 5, 21))),
    ("last summer", (d(2023, 6, 1), d(2023, 8, 31))),
    ("next winter", (d(2024, 12, 1), d(2025, 2, 28))),
    ("the summer of 2022", (d(2022, 6, 1), d(2022, 8, 31))),
    ("spring 2023", (d(2023, 3, 1), d(2023, 5, 31))),
    ("in 2021 I graduated", (d(2021, 1, 1), d(2021, 12, 31))),
    ("since 2019", (d(2019, 1, 1), d(2019, 12, 31))),
    ("Q3 2023 numbers", (d(2023, 7, 1), d(2023, 9, 30))),
    ("the past two weeks", (TODAY - timedelta(days=14), TODAY)),
    ("over the last three days", (TODAY - timedelta(days=3), TODAY)),
    ("in the next ten days", (TODAY, TODAY + timedelta(days=10))),
    *((f"{word} days ago", _ago(n)) for word, n in (("two", 2), ("3", 3), ("five", 5), ("10", 10), ("twelve", 12))),
    *((f"{word} weeks ago", _ago(7 * n)) for word, n in (("two", 2), ("3", 3), ("four", 4), ("six", 6))),
    ("a week ago", _ago(7)),
    ("a month ago", _on(d(2024, 4, 15))),
    ("two months ago", _on(d(2024, 3, 15))),
    ("six months ago", _on(d(2023, 11, 15))),
    ("a year ago", _on(d(2023, 5, 15))),
    ("three years ago", _on(d(2021, 5, 15))),
    ("10 years ago", _on(d(2014, 5, 15))),
    ("two weeks from now", _ago(-14)),
    ("three days earlier", _ago(3)),
    ("a couple of weeks ago", _ago(14)),
    ("a few days ago", _ago(3)),
    ("in March", (d(2024, 3, 1), d(2024, 3, 31))),
    ("in December we were in Oslo", (d(2023, 12, 1), d(2023, 12, 31))),
    ("on June 3rd", _on(d(2024, 6, 3))),
    ("on 20 April", _on(d(2024, 4, 20))),
    ("since February", (d(2024, 2, 1), d(2024, 2, 29))),
]

PHRASES: list[tuple[str, Span]] = [*_explicit(), *_months(), *RELATIVE]

NO_DAYS = (
    "I may go if you like", "he will march on", "two eggs and 3 apples", "room 2024 is locked", "I have 5 cats",
    "call 555-2024", "call 020 7946 0018", "version 3.11.7", "it costs 1999 dollars", "the top 10 songs", "chapter 7",
    "we sat in the back", "at last we won", "next to the door", "this is fine", "the coming of age", "he is past it",
    "second to none", "the first half of the match", "Mark 5", "my May is a cat", "every July we go there",
    "each Monday I swim", "1 in 4 people", "30 Feb", "at 5 pm", "a decade of fun", "sun and moon", "I sat down",
    "a fri-end", "he won 12 to 3", "May I ask?", "June called", "port 8080", "it took 20 minutes", "11/12",
    "over the past", "for the last time", "the next one", "she is 26", "a 1990s song", "COVID-19", "route 66",
)  # fmt: skip
