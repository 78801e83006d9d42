"""The values of claims in the form in which they are compared: stems, names, amounts, times of day."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.pattern import expanded
from memoryd.knowledge.grammar.words import DAYS, GRAMMAR, NUMBER_WORDS
from memoryd.knowledge.lexicon.load import table, words
from memoryd.knowledge.lexicon.stems import stem

__all__ = ["clock_of", "head_of", "measure_of", "names_of", "value_of", "words_in"]

_EMPTY = frozenset(words("grammar.values_empty"))
_UNITS = {unit: (dimension, size) for dimension, units in table("numbers.unit").items() for unit, size in units.items()}
"""Unit → its dimension and size in kilograms, metres or seconds."""
_MEASURE = re.compile(r"(\d+(?:[.,]\d+)?)[ -]?([a-z]+)", re.IGNORECASE)
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.](\d\d))? ?(am|pm|a\.m\.|p\.m\.)?\b", re.IGNORECASE)


def words_in(text: str) -> list[str]:
    """Return the words of a text in lower case, numbers as digits, without possessives."""
    found = re.findall(r"[\w.+-]+@[\w.-]+\w|\d+(?:[.:,]\d+)*|\w+(?:['-]\w+)*", text.lower())
    return [NUMBER_WORDS.get(word, word).removesuffix("'s") for word in found]


def value_of(text: str) -> frozenset[str]:
    """Return the stems of the words that carry meaning."""
    return frozenset(stem([word for word in words_in(text) if word not in GRAMMAR and word not in _EMPTY]))


_AFTER_HEAD = re.compile(expanded("{after_head}"))


def head_of(text: str) -> str:
    """Return the stem of the word that a phrase is about: of "a car seat for the baby" the seat."""
    cut = _AFTER_HEAD.search(text)
    return (stem(words_in(text[: cut.start()] if cut else text)) or [""])[-1]


def names_of(text: str) -> frozenset[str]:
    """Return the stems of the capitalised words; days are no names."""
    return value_of(" ".join(word for word in text.split() if any(map(str.isupper, word)) and word.lower() not in DAYS))


def measure_of(text: str) -> tuple[str, float] | None:
    """Return the dimension and the amount in its base unit, of all parts of it ("5 feet 11 inches")."""
    total, dimension = 0.0, ""
    for number, unit in _MEASURE.findall(text):
        known = _UNITS.get(unit.lower()) or _UNITS.get(unit.lower().rstrip("s"))
        if known is not None and dimension in {"", known[0]}:
            dimension = known[0]
            total += float(number.replace(",", ".")) * known[1]
    return (dimension, total) if dimension else None


def clock_of(text: str) -> frozenset[str]:
    """Return a time of day as one token, so that "7pm" and "19:00" are one."""
    match = _CLOCK.search(text)
    if match is None:
        return frozenset()
    hour, minute, half = int(match[1]), int(match[2] or 0), (match[3] or "").lower()
    if half.startswith("p") and hour < 12:  # noqa: PLR2004  noon
        hour += 12
    return frozenset({f"{hour}:{minute:02}"})
