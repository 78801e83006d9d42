"""
What is always true of someone: how they are called, what they cannot eat, how they want to be answered.

Statements about one person that matter whatever is asked: told by words alone, in the languages of
`lexicon/profile.toml`, as a topic, and whether it is said of the user or of someone else. A text that is long, asks,
or tells how it used to be is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from functools import partial
from typing import NamedTuple

from memoryd.knowledge.extraction.sentences import not_stated, own_part, tidy
from memoryd.knowledge.grammar.pattern import compiled, expanded, lazily
from memoryd.knowledge.lexicon.load import table

__all__ = [
    "CATEGORIES",
    "MOST_CHARACTERS",
    "ONE_AT_A_TIME",
    "PATTERNS",
    "Lines",
    "Standing",
    "Topic",
    "beginnings",
    "is_over",
    "standing_of",
    "topic_of_category",
]

_CASED = "(?-i:"
_SYNTAX = re.compile(r"\(\?[-a-z]*[:=!]|\(\?<[=!]|\\[a-zA-Z]|\{[a-z_]+\}|\[[^\]]*\]")
_ENDING = re.compile(r"\\w[+*][^ ()|\[\]?+*\\]")  # letters that stand at the end of a word
_TORN = re.compile(r"(?<![^\W\d_])[^\W\d_]{1,2}(?:[\[?]|\(\?:)[^ ]")  # a word with too few letters known
_ESCAPE = re.compile(r"\\[a-zA-Z]")
_WORD = re.compile(r"[^\W\d_]+")
BEGINNING = 3  # letters of a word by which it is looked up
FIRST_OF_CJK = "\u3041"  # writing without spaces: its words are not looked up


def beginnings(text: str) -> frozenset[str]:
    """Return the first letters of the words of a text."""
    return frozenset(word[:BEGINNING] for word in _WORD.findall(text.lower()))


class Lines:
    """Any of some patterns; each is tried where a text has a word that it wants, which is far fewer."""

    def __init__(self, lines: Iterable[tuple[str, str]]) -> None:
        """Compile them, each with what it was before its parts were written out."""
        self._lines: list[_Line] = []
        self._of: dict[str, list[int]] = {}
        """By the beginning of a word the numbers of the lines that want it."""
        self._bare: list[int] = []
        for number, (raw, line) in enumerate(lines):
            cased = _CASED in line
            self._lines.append(_Line(lazily(partial(re.compile, line, re.IGNORECASE if cased else 0)), cased))
            words = {beginning for beginning in beginnings(_SYNTAX.sub(" ", raw)) if len(beginning) == BEGINNING}
            if not words and any(letter >= FIRST_OF_CJK for letter in raw):
                continue  # a text without such letters has nothing for it
            if not words or _ENDING.search(raw) or _TORN.search(_ESCAPE.sub(" ", raw)):
                self._bare.append(number)
                continue
            for word in words:
                self._of.setdefault(word, []).append(number)

    def search(self, text: str, words: Collection[str] | None = None) -> re.Match[str] | None:
        """Return the first place of any of them in a text, which has words with these beginnings; None: any."""
        numbers: Iterable[int]
        if words is None or any(word[0] >= FIRST_OF_CJK for word in words):
            numbers = range(len(self._lines))
        else:
            numbers = {*self._bare, *(n for word in words if word in self._of for n in self._of[word])}
        lowered = text.lower()
        matches = [
            match
            for n in numbers
            if (match := self._lines[n].pattern.search(text if self._lines[n].is_cased else lowered)) is not None
        ]
        return min(matches, key=lambda match: match.start()) if matches else None


class _Line(NamedTuple):
    pattern: re.Pattern[str]
    is_cased: bool
    """Whether it asks for capitals: the others read small letters, which is faster."""


PATTERNS: Mapping[str, Lines] = {
    name: Lines((line, expanded(line)) for line in lines) for name, lines in table("profile.topic").items()
}
"""By heading what finds any of its lines."""


MOST_CHARACTERS = 400  # of a text that is read: a profile is no place for notes

MOST_ENDED = 8  # things that a sentence says to be over
LEAD = 9  # characters of a pattern's own words in which the user may be named: "the user's …"
_OF_A_THING = re.compile(r"^(?!(?:has|have|had|got|is|am|on|with)\b).*\b(?:the|this|that|an?)\b", re.IGNORECASE)
MOST_BEFORE = 4  # words before a topic in a note that names no one


class Topic(IntEnum):
    """What a statement of a profile is about; the most important first."""

    NAME = 1
    """The user's name."""
    ADDRESS = 2
    """How to address the user: a nickname, pronouns."""
    HEALTH = 3
    """Allergies, illnesses, disabilities."""
    INSTRUCTION = 4
    """What the assistant shall always or never do."""
    DIET = 5
    LANGUAGE = 6
    HOME = 7
    HOUSEHOLD = 8
    WORK = 9
    DISLIKE = 10
    PERSONAL = 11
    """What only its category says to be of the user."""


ONE_AT_A_TIME = frozenset({Topic.NAME, Topic.HOME})
"""Topics whose newest statement counts alone, of those that speak of nothing else."""


class Standing(NamedTuple):
    """What a text says that is always true."""

    topic: Topic
    of_user: bool
    """Whether it is said of the user, and not of someone that it names."""
    is_mixed: bool = False
    """Whether it is of other topics too."""


_CATEGORIES = {Topic[name]: some for name, some in table("profile.category").items()}
CATEGORIES = frozenset(
    spelled
    for names in _CATEGORIES.values()
    for name in names.split()
    for way in (name, name.replace("_", " "), name.replace("_", "-"))
    for spelled in (way, way.capitalize(), way.title(), way.upper())
)
"""Categories that say by themselves that a statement is of a profile, as people spell them."""
_TOPIC_OF = {name: topic for topic, names in _CATEGORIES.items() for name in names.split()}
_READ = [topic for topic in Topic if topic is not Topic.PERSONAL]
_TO_ASSISTANT = frozenset({Topic.INSTRUCTION, Topic.ADDRESS})
# the words are another's: "the waiter said please …", "… is the title of her book", "my boss wants me to always …"
_REPORTED = compiled("{topics_reported}")
_OF_SELF = compiled("{of_self}")
_REPORTED_AFTER = compiled("{reported_after}")
# who is told of stands right before: "… told me she's", "… and he is severely"; or it is not so: "she thinks I'm"
_OF_ANOTHER = compiled("{topics_of_another}")
_OPENING = "\"'\N{LEFT SINGLE QUOTATION MARK}\N{LEFT DOUBLE QUOTATION MARK}„«»\u2039\u203a「『〈《([{`*\uff02|>"
_SENTENCE = re.compile(r"(?<=[.!;。！])\s+|\n+|(?<=[。！])")
_ASKED_FOR = compiled("{asked_for}")
_NEXT = compiled("{next}")
_ASKS = compiled(r"{asks}\b")
"""A wish for the assistant: what it names is of no one."""
_INVENTED = compiled(r"\b{invented}\b")
_IN_JEST = re.compile(
    r"\b(?:just|only|totally) (?:kidding|joking)\b|\bj/?k\b(?=[\s.!)]*$)|\bsaid no one\b", re.IGNORECASE
)


def topic_of_category(category: str) -> Topic | None:
    """Return the topic that a category names, in any spelling of CATEGORIES; None where it is of no profile."""
    return _TOPIC_OF.get(re.sub(r"[\s-]+", "_", category.strip().lower()))


def standing_of(text: str) -> Standing | None:
    """Return the most important thing that a text says of someone for good; None where there is nothing."""
    if len(text) > MOST_CHARACTERS:
        return None
    text = own_part(tidy(text))
    standings = [standing for sentence in _SENTENCE.split(text) for standing in _standings(sentence.strip())]
    if not standings or _IN_JEST.search(text) or _INVENTED.search(text) or not_stated(text):
        return None
    first = min(standings, key=lambda standing: (not standing.of_user, standing.topic))
    return first._replace(is_mixed=len({standing.topic for standing in standings}) > 1)


def _standings(sentence: str) -> list[Standing]:
    """Return the topics of one sentence."""
    if not sentence:
        return []
    if sentence[-1] in "?\uff1f":
        return [Standing(Topic.INSTRUCTION, of_user=True)] if _ASKED_FOR.match(sentence) else []
    sentence = _without_what_ended(sentence)
    words = beginnings(sentence)
    standings = []
    for topic in _TO_ASSISTANT if _ASKS.match(sentence) else _READ:
        match = PATTERNS[topic.name].search(sentence, words)
        if match is None or (topic in _TO_ASSISTANT and not _is_to_assistant(sentence, match)):
            continue
        standings.append(Standing(topic, topic is Topic.INSTRUCTION or _is_of_user(sentence, match)))
    return standings if standings and not PATTERNS["FORMER"].search(sentence) else []


def _is_to_assistant(sentence: str, match: re.Match[str]) -> bool:
    """Whether something in a sentence is told to the assistant for good: not once, and not by another who is quoted."""
    before = sentence[: match.start()]
    if PATTERNS["ONCE"].search(sentence) or _REPORTED_AFTER.search(sentence[match.end() :]):
        return False
    if _OF_SELF.search(before):
        return True
    words = before.rstrip()
    return not (_REPORTED.search(before) or (words[:-1].strip(_OPENING) and words[-1] in _OPENING))


def _without_what_ended(sentence: str) -> str:
    """Return a sentence without what it says to be over; what stands behind the next comma or conjunction stays."""
    for _ in range(MOST_ENDED):
        ended = PATTERNS["ENDED"].search(sentence)
        if ended is None:
            break
        rest = _NEXT.search(sentence, ended.end())
        sentence = sentence[: ended.start()] + (sentence[rest.start() :] if rest is not None else "")
    return sentence


def is_over(text: str) -> bool:
    """Whether a text only says what is over, so that no category makes it a part of a profile."""
    return len(text) <= MOST_CHARACTERS and PATTERNS["ENDED"].search(text) is not None and standing_of(text) is None


def _is_of_user(sentence: str, match: re.Match[str]) -> bool:
    """Whether what stands in a sentence is said of the user: no one else is named before it."""

    def stands(name: str, text: str) -> bool:
        return PATTERNS[name].search(text) is not None

    before = sentence[: match.start()]
    if _OF_ANOTHER.search(before):
        return False
    if stands("USER", match.group()[:LEAD]):
        return not stands("RELATIVE", before)
    if stands("USER", before):
        return not stands("RELATIVE", before)
    if stands("OTHERS", before) or stands("RELATIVE", before):
        return False
    if stands("NAMED", sentence) or (before and stands("THINGS", before)):
        return False
    # "vegetarian", "Diet: vegan", "severe nut allergy": a note, which has no verb that has another subject
    if _OF_A_THING.search(before):
        return False
    return len(before.split()) <= MOST_BEFORE and not stands("VERB", sentence[match.end() :])
