"""A sentence that is kept stands alone: in its own words, and with a name for whom it points to."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from memoryd.knowledge.learning.alone import stands_alone
from memoryd.knowledge.learning.talk import sentences_after
from memoryd.knowledge.learning.worth import Said, fact_of, says_most_of
from memoryd.model.memory import Kind

FRIDAY = date(2026, 11, 27)

ALONE = [
    ("btw I'm vegan lol", "", "I'm vegan"),
    ("and from now on metric please", "", "From now on metric"),
    ("No letters of that sort are to go out before noon", "", "No letters of that sort are to go out before noon"),
    ("No, the boiler man comes on Fridays", "", "The boiler man comes on Fridays"),
    ("Since July tomatoes give me hives", "", "Since July tomatoes give me hives"),
    ("Well water is all we have here", "", "Well water is all we have here"),
    ("she's allergic to nuts", "My sister comes on Friday.", "My sister's allergic to nuts"),
    ("her knee hurts since May", "Lena fell.", "Lena's knee hurts since May"),
    ("Furby has no filters, it's the heads on the wall", "", "Furby has no filters, it's the heads on the wall"),
    ("I like it when you end with a joke", "", "I like it when you end with a joke"),
    ("I moved to the night shift because that pays better", "", "I moved to the night shift because that pays better"),
    ("I sold the van, because they wanted it", "", "I sold the van, because they wanted it"),
]
POINTING = [
    ("It's in column F.", ""),
    ("she's allergic to nuts", ""),
    ("he's mornings", "Luka starts on Monday, Jonas too."),
    ("That's the one with the red lid", "I found two jars."),
    ("I never eat that", "Do you like tripe?"),
    ("They come at eight", ""),
    ("ok", ""),
]


@pytest.mark.parametrize(("sentence", "before", "alone"), ALONE)
def test_a_sentence_stands_alone_in_its_own_words(sentence, before, alone):
    assert alone == stands_alone(sentence, before)


@pytest.mark.parametrize(("sentence", "before"), POINTING)
def test_what_points_to_what_nothing_names_is_not_kept(sentence, before):
    assert stands_alone(sentence, before) is None


def test_each_sentence_comes_with_what_was_said_before_it():
    said = sentences_after("Yes. I'm off nuts since May. What can I eat? My pin is 1234.", "Any allergies?")
    assert [("Any allergies? Yes.", "I'm off nuts since May.")] == said


def test_what_is_kept_has_its_kind_category_and_day():
    def kept(label: str, sentence: str, before: str = "", asked: str = ""):
        return fact_of(Said(sentence, label, 0.9), before, asked, FRIDAY)

    plan = kept("plan", "The viewing is on 3 December at ten")
    assert (Kind.EVENT, "date", date(2026, 12, 3), True) == (plan.kind, plan.category, plan.day, plan.is_certain_day)
    event = kept("event", "Broke my wrist on the ice on Tuesday")
    assert date(2026, 11, 24) == event.day
    rule = kept("instruction", "Always put the translation below each question")
    assert ("instruction", Kind.PREFERENCE) == (rule.category, rule.kind)
    while_away = kept("temporary", "I'm in Lyon till Sunday")
    assert timedelta(days=3) == while_away.lasts
    assert timedelta(days=7) == kept("temporary", "My voice is gone, so no calls").lasts
    assert "personal" == kept("fact", "I am allergic to penicillin").category
    assert (
        "The spare rollers are in locker 113"
        == kept("remember", "remember that the spare rollers are in locker 113").content
    )
    answer = kept("fact", "penicillin lol", before="Any allergies?", asked="Any allergies?")
    assert ("Any allergies? penicillin", True) == (answer.content, answer.needs_question)
    assert kept("fact", "It's in column F.") is None
    assert kept("fact", "Is the viewing on Friday?") is None


def test_what_was_learnt_of_a_sentence_says_most_of_it_or_not():
    assert says_most_of("I'm vegan", "I'm vegan since May")
    assert not says_most_of("My clients are old", "don't put emojis in my letters, my clients are old")
    assert not says_most_of("Tom is allergic to nuts", "Ann is allergic to eggs and milk")
