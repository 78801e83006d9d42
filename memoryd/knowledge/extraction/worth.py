"""From a sentence that a reader finds worth keeping to a fact: in its own words, with its kind, category and day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from memoryd.knowledge.extraction.alone import Alone, alone, answer_alone
from memoryd.knowledge.extraction.facts import Fact
from memoryd.knowledge.extraction.orders import names_secret, ordered
from memoryd.knowledge.extraction.talk import Sentence
from memoryd.knowledge.grammar.dates import days_named
from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.grammar.times import due_day, is_yearly, lasting, past_day
from memoryd.knowledge.grammar.words import plain
from memoryd.knowledge.profile import Topic, standing_of
from memoryd.model.memory import Kind

__all__ = ["RatedSentence", "bare_words", "facts_of", "is_answer", "says_most_of"]

CONFIDENCE = 0.75  # in what a reader finds: less than in what a rule reads
MOST_DAYS = 366  # for which is so what is so for a while
A_WHILE = timedelta(days=7)  # for which holds what is so for now, where it does not say how long
OWN, MOST = 0.8, 0.5  # shares of its words that stand in a sentence, and of the sentence's that stand in it
SHORT = 4  # words of an answer that is kept with its question
LONGER = 8  # words of an answer that says nothing of anybody
SURE_OF_ANSWER = 0.9  # sureness from which on a short answer is kept: quizzes have such answers too
_CATEGORIES = {
    Topic.NAME: "personal", Topic.ADDRESS: "personal", Topic.HEALTH: "personal", Topic.DIET: "personal",
    Topic.LANGUAGE: "personal", Topic.HOME: "personal", Topic.HOUSEHOLD: "relationship", Topic.WORK: "work",
    Topic.DISLIKE: "preference",
}  # fmt: skip
_PAST = compiled(r"\b{worth_past}\b")
_IN_DOUBT = compiled("{in_doubt}")
"""What keeps a day from being the one that is meant: another one, "the 9th" of a month that was named before."""
_STANDING = compiled(r"\b{standing}\b")
"""What tells a standing instruction from a request of the moment."""
_OF_SOMEBODY = re.compile(r"\b(?:i|i['’]?m|i['’]ve|my|me|we|our|never|always|\w+['’]s)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RatedSentence:
    """A sentence that is worth keeping, as what (a label of the keeping reader), and how sure that is, 0–1."""

    sentence: Sentence
    label: str
    sureness: float


def facts_of(rated: RatedSentence, today: date) -> list[Fact]:
    """Return what a sentence may say by itself, in its own words, the fullest first."""
    ways = _answer(rated) if is_answer(rated.sentence) else _statement(rated.sentence)
    return [_fact(way, rated.label, today) for way in ways if _may_be_kept(way.content, rated.label)]


def is_answer(sentence: Sentence) -> bool:
    """Whether the first sentence of a message is a short answer to a question, and none of its own."""
    words = len(sentence.text.split())
    asked = not sentence.own and sentence.asked.endswith("?")
    return asked and (words <= SHORT or (words <= LONGER and not _OF_SOMEBODY.search(sentence.text)))


def _may_be_kept(content: str, label: str) -> bool:
    if names_secret(content):
        return False
    return label != "instruction" or bool(_STANDING.search(content))  # else a request of the moment


def _fact(way: Alone, label: str, today: date) -> Fact:
    category, kind = _sort_of(label, way.content)
    lasts = _lasting(way.content, today) if label == "temporary" else None
    day, is_certain_day = (kind is Kind.EVENT and _day_of(label, way.content, today)) or (None, False)
    return Fact(way.content, category, kind, CONFIDENCE, lasts, day, is_certain_day, way.needs_asked)


def _answer(rated: RatedSentence) -> list[Alone]:
    """Return a short answer with its question."""
    content = answer_alone(rated.sentence.asked, rated.sentence.text) if rated.sureness >= SURE_OF_ANSWER else None
    return [] if content is None else [Alone(content, needs_asked=True)]


def _statement(sentence: Sentence) -> list[Alone]:
    order = ordered(sentence.text)
    text = sentence.text if order is None else order.content
    return [] if text.endswith(("?", "\uff1f")) else alone(text, sentence.own, sentence.asked)


def _lasting(content: str, today: date) -> timedelta:
    """Return for how long is so what is so for days: till the last day that is named, else for a while."""
    named = [days.last - today.toordinal() for days in days_named(plain(content), today)]
    ends = [timedelta(days=days + 1) for days in named if 0 < days < MOST_DAYS]
    said = lasting(content, today)
    return max([*ends, *([] if said is None else [said])], default=A_WHILE)


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


def _day_of(label: str, content: str, today: date) -> tuple[date, bool] | None:
    """Return the day of a plan or an event where it names one and no other; None where that is in doubt."""
    written = plain(content)
    if is_yearly(content) or _IN_DOUBT.search(written):
        return None
    due, past = due_day(written, today), past_day(written, today)
    if label == "event" and due is not None and past is not None:
        return (past[0] if _PAST.search(written) else due[0]), False
    found = due or (past if label == "event" else None)
    return found if found is not None and found[1] else None


def says_most_of(content: str, sentence: str) -> bool:
    """Whether what was learnt is of a sentence, and leaves little of it out, or only its end: the reason."""
    words, of = bare_words(content), bare_words(sentence)
    if len(words & of) < OWN * len(words):
        return False
    return len(words & of) >= MOST * len(of) or sentence.lower().startswith(content.lower())


def bare_words(text: str) -> set[str]:
    """Return the words of a text in lower case, without the marks around them."""
    return {bare for word in text.split() if (bare := word.strip(".,;:!?()'\"–—-").lower())}
