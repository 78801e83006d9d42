"""Which days words name: mean ones, by phrases that were written with the days that people mean by them."""

from __future__ import annotations

from datetime import date

import pytest

from memoryd.knowledge.grammar.dates import Days, days_named
from tests.knowledge.date_phrases import NO_DAYS, PHRASES, TODAY

LONGER = 1.0  # an interval may be twice as long as what is meant, and a vague one reaches to both sides
VAGUE_DAYS = {"week": 4, "month": 16, "year": 184, "couple": 8, "few": 3, "weekend": 1, "next": 7}
MISREAD = {"my May is a cat", "June called", "30 Feb"}  # a name like a month is taken for one


def fits(phrase: str, found: list[Days], first: date, last: date) -> bool:
    """Whether an interval holds what is meant, and not much more."""
    slack = max([1, *(days for word, days in VAGUE_DAYS.items() if word in phrase)])
    return any(
        days.first <= first.toordinal()
        and last.toordinal() <= days.last
        and days.last - days.first <= (last - first).days + 2 * slack
        for days in found
    )


def test_there_are_phrases_enough():
    assert 200 <= len({phrase for phrase, _ in PHRASES})


@pytest.mark.parametrize(("phrase", "meant"), PHRASES, ids=[phrase for phrase, _ in PHRASES])
def test_words_name_the_days_that_people_mean(phrase, meant):
    assert fits(phrase, days_named(phrase, TODAY), *meant)


@pytest.mark.parametrize("phrase", [phrase for phrase in NO_DAYS if phrase not in MISREAD])
def test_what_names_no_day_is_left_alone(phrase):
    assert [] == days_named(phrase, TODAY)


def test_a_date_without_a_year_is_that_of_each_year_of_a_store():
    assert [2022, 2023] == [date.fromordinal(one.first).year for one in days_named("on 3 May", TODAY, (2022, 2023))]


@pytest.mark.parametrize("text", ["on February 30", "on June 31st", "31 June 2027", "30 February 2027"])
def test_a_day_that_the_calendar_does_not_have_is_none(text):
    assert [] == days_named(text, TODAY)


def test_no_text_however_strange_raises():
    for text in ("in 99 years ago", "31 June 2024 to 99 May", "9999-99-99", "999 years ago", "0 January", "a" * 9000):
        days_named(text, TODAY)
        days_named(text, date(1, 1, 1))
        days_named(text, date(9999, 12, 31))


@pytest.mark.parametrize(
    "said", ["18.11.2023", "met on 18/11/2023", "18-11-2023", "11/18/2023", "11-18-2023", "2023-11-18"]
)
def test_days_in_figures(said):
    assert [date(2023, 11, 18)] == [date.fromordinal(one.first) for one in days_named(said, TODAY)]


def test_what_may_be_day_or_month_is_either_where_years_are_known():
    found = {date.fromordinal(one.first) for one in days_named("on 3/4/2023", TODAY, (2023,))}
    assert {date(2023, 4, 3), date(2023, 3, 4)} == found
    assert [date(2023, 4, 3)] == [date.fromordinal(one.first) for one in days_named("3.4.2023", TODAY, (2023,))]
    assert [] == days_named("version 1.2.20199 or 99/99/2023", TODAY)


def test_the_nth_is_a_day_of_a_month_near_and_no_floor_or_century():
    assert [date(2024, 5, 18)] == [date.fromordinal(one.first) for one in days_named("on the 18th", TODAY)]
    assert [date(2024, 4, 30)] == [
        date.fromordinal(one.first) for one in days_named("the 30th at noon", date(2024, 5, 2))
    ]
    assert [] == [*days_named("the 18th century", TODAY), *days_named("the 5th floor", TODAY)]
