"""
What a question asks for, and what a text has that could answer it: by the look of the words alone.

The type of an answer in English, German, French, Dutch, Spanish, Portuguese and Italian; in English a class of things,
too: of "What foods does Audrey like?" the foods, and so a chicken pot pie. The classes stand in `lexicon/classes.toml`,
the words by which each is asked for, and its members. A question that names none has none, and is read as any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, IntFlag

from memoryd.knowledge.grammar.pattern import any_of, expanded, lazily
from memoryd.knowledge.lexicon.load import split, table

__all__ = ["Wanted", "asks_assistant", "clauses", "members_asked", "question_share", "signs_of", "wanted_of"]

MOST_CHARACTERS = 2000  # of a text that are read
LEAST_CLAUSES = 3


class Wanted(Enum):
    """The type of an answer."""

    TIME = "time"
    NUMBER = "number"
    NAME = "name"
    ANY = "any"


class Signs(IntFlag):
    """What stands in a text."""

    TIME = 1
    NUMBER = 2
    NAME = 4
    STATES_NOTHING = 8
    """Of a message: it only asks another, or greets. What was stored before this was read may lack it."""


SIGN_OF = {Wanted.TIME: Signs.TIME, Wanted.NUMBER: Signs.NUMBER, Wanted.NAME: Signs.NAME}

_ASKS_TIME = re.compile(expanded(r"\b{asks_time}\b"))
_ASKS_NUMBER = re.compile(expanded(r"\b(?:how {asks_number}|{asks_number_elsewhere})\b"))
_ASKS_NAME = re.compile(expanded(r"\b{asks_name}\b"))
_ASKS_ASSISTANT = re.compile(expanded(r"\b(?:you|assistant)\b.{0,25}{asks_assistant}"))
_CLAUSE = re.compile(r", and |, |; | and | or | before | after | between | as well as ")
_TIME_SIGN = re.compile(expanded(r"\b{time_sign}\b"))
_NUMBER_SIGN = re.compile(expanded("{number_sign}"))
_NAME_SIGN = re.compile(r"[a-z0-9,;:\"'’] (?:[\"'“‘])?[A-Z][a-z]|\"[A-Z]")
_MARKS = "?\uff1f\u061f"  # of a question: also the full-width and the Arabic one
_SENTENCE_END = re.compile(rf"[.!…\u3002\uff01{_MARKS}]+")


def wanted_of(question: str) -> Wanted:
    """Return the type of answer that a question wants."""
    lowered = question[:MOST_CHARACTERS].lower()
    if _ASKS_TIME.search(lowered):
        return Wanted.TIME
    if _ASKS_NUMBER.search(lowered):
        return Wanted.NUMBER
    return Wanted.NAME if _ASKS_NAME.search(lowered) else Wanted.ANY


def asks_assistant(question: str) -> bool:
    """Return whether a question is about what the assistant said."""
    return bool(_ASKS_ASSISTANT.search(question[:MOST_CHARACTERS].lower()))


def clauses(question: str) -> list[tuple[int, int]]:
    """Return the parts of a question as (start, end) of characters, if it has three or more; else nothing."""
    starts = [0]
    ends = []
    for match in _CLAUSE.finditer(question[:MOST_CHARACTERS]):
        ends.append(match.start())
        starts.append(match.end())
    parts = list(zip(starts, [*ends, len(question)], strict=True))
    return parts if len(parts) >= LEAST_CLAUSES else []


def question_share(text: str) -> float:
    """Return which share of the sentences of a text are questions, 0–1."""
    text = text[:MOST_CHARACTERS]
    if not any(mark in text for mark in _MARKS):
        return 0.0
    ends = _SENTENCE_END.findall(text)
    asked = sum(any(mark in end for mark in _MARKS) for end in ends)
    tail = _SENTENCE_END.split(text)[-1]
    return asked / (len(ends) + bool(tail.strip()))


def signs_of(text: str) -> Signs:
    """Return what stands in a text: a time, a number, a name within a sentence."""
    text = text[:MOST_CHARACTERS]
    lowered = text.lower()
    signs = Signs(0)
    if _TIME_SIGN.search(lowered):
        signs |= Signs.TIME
    if _NUMBER_SIGN.search(lowered):
        signs |= Signs.NUMBER
    if _NAME_SIGN.search(text):
        signs |= Signs.NAME
    return signs


MOST_OF_CLASS = 400  # characters at the beginning of a question, in which a class is looked for


def members_asked(question: str) -> tuple[str, ...]:
    """Return the members of the class that a question asks for; empty where it names no class."""
    match = _ASKED.search(question[:MOST_OF_CLASS].lower())
    return _CLASSES[match["class"]] if match else ()


def _classes() -> Mapping[str, tuple[str, ...]]:
    """Return by each word for a class its members; ValueError for a word of two classes, or a class of nothing."""
    found: dict[str, tuple[str, ...]] = {}
    for words, listed in table("classes").items():
        members = split(listed)
        for word in words.split():
            if word in found or not members or word != word.lower():
                raise ValueError(f'lexicon/classes.toml: "{words}": {word!r} asks for one class, in small letters')
            found[word] = members
    return {word.replace("_", " "): members for word, members in found.items()}


_CLASSES = _classes()


def _pattern() -> re.Pattern[str]:
    some = any_of(_CLASSES)
    asked = rf"\b{{asked_directly}}(?P<class>{some})\b(?![-'’])(?! (?:{some}|{{heads_of_classes}})\b)"
    return re.compile(expanded(asked))  # of small letters: to ignore case takes other letters for them


_ASKED = lazily(_pattern)
