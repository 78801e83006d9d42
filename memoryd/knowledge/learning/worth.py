"""From a sentence that a reader finds worth keeping to a fact: in its own words, with its kind, category and day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from memoryd.knowledge.language.words import plain
from memoryd.knowledge.learning.alone import answer_alone, stands_alone
from memoryd.knowledge.learning.orders import names_secret, ordered
from memoryd.knowledge.learning.reading import Fact
from memoryd.knowledge.learning.when import due_day, is_yearly, lasting, past_day
from memoryd.knowledge.profile.topics import Topic, standing_of
from memoryd.model.memory import Kind

__all__ = ["Said", "fact_of", "says_most_of"]

A_WHILE = timedelta(days=7)  # for which holds what is so for now, where it does not say how long
OWN, MOST = 0.8, 0.5  # shares of its words that stand in a sentence, and of the sentence's that stand in it
SHORT = 4  # words of an answer that is kept with its question, and of a sentence that needs somebody to be of
SURE_OF_ANSWER = 0.9  # confidence from which on a short answer is kept: quizzes have such answers too
_CATEGORIES = {
    Topic.NAME: "personal", Topic.ADDRESS: "personal", Topic.HEALTH: "personal", Topic.DIET: "personal",
    Topic.LANGUAGE: "personal", Topic.HOME: "personal", Topic.HOUSEHOLD: "relationship", Topic.WORK: "work",
    Topic.DISLIKE: "preference",
}  # fmt: skip
_PAST = re.compile(r"\b(?:was|were|had|did|went|got|came|broke|fell|died|left|met|bought|\w{3,}ed)\b", re.IGNORECASE)
_OF_SOMEBODY = re.compile(r"\b(?:i|i['’]?m|i['’]ve|my|me|we|our|never|always|\w+['’]s)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence that is worth keeping, and as what: a label of `memoryd.embedding.readers.keeping`."""

    sentence: str
    label: str
    confidence: float


def fact_of(said: Said, before: str, asked: str, today: date) -> Fact | None:
    """
    Return what a sentence says, in its own words; None where it does not stand alone.

    `before` is what was said just before it, and `asked` the message of somebody else before its own, or empty.
    """
    is_answer = before.endswith("?") and asked.strip().endswith(before) and len(said.sentence.split()) <= SHORT
    pair = answer_alone(before, said.sentence) if is_answer else None
    content = pair or _content(said, before)
    if content is None or names_secret(content) or (pair and said.confidence < SURE_OF_ANSWER):
        return None
    category, kind = _sort_of(said.label, content)
    lasts = lasting(content, today)
    if said.label == "temporary":
        lasts = lasts or A_WHILE
    day = None if is_yearly(content) or said.label not in {"plan", "event", "temporary"} else _day_of(content, today)
    if day is not None and kind is Kind.EVENT:
        return Fact(content, category, kind, said.confidence, lasts, *day, needs_question=pair is not None)
    return Fact(content, category, kind, said.confidence, lasts, needs_question=pair is not None)


def _content(said: Said, before: str) -> str | None:
    order = ordered(said.sentence)
    told = said.sentence if order is None else order.content
    alone = None if told.endswith(("?", "\uff1f")) else stands_alone(told, before)
    if alone is not None and len(alone.split()) < SHORT and not _OF_SOMEBODY.search(alone):
        return None  # "One and a half" needs what it is said of
    return alone


def _sort_of(label: str, content: str) -> tuple[str, Kind]:
    """Return the category and the kind of what is kept as one of the reader's labels."""
    if label == "instruction":
        return "instruction", Kind.PREFERENCE
    if label == "preference":
        return "preference", Kind.PREFERENCE
    if label in {"plan", "event"}:
        return "date", Kind.EVENT
    standing = standing_of(content)
    return ("other" if standing is None else _CATEGORIES.get(standing.topic, "other")), Kind.FACT


def _day_of(content: str, today: date) -> tuple[date, bool] | None:
    written = plain(content)
    past = past_day(written, today) if _PAST.search(written) else None
    return past or due_day(written, today) or past_day(written, today)


def says_most_of(content: str, sentence: str) -> bool:
    """Whether what was learnt is of a sentence, and leaves little of it out."""
    words, of = _words(content), _words(sentence)
    both = len(words & of)
    return both >= OWN * len(words) and both >= MOST * len(of)


def _words(text: str) -> set[str]:
    return {bare for word in text.split() if (bare := word.strip(".,;:!?()'\"–—-").lower())}
