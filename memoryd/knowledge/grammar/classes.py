"""
The class of things that a question asks for: of "What foods does Audrey like?" the foods, and so a chicken pot pie.

The classes stand in `lexicon/classes.toml`: the words by which each is asked for, and its members. A question that
names none of them has no members, and is read as any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from memoryd.knowledge.grammar.pattern import any_of, expanded
from memoryd.knowledge.lexicon.load import split, table

__all__ = ["MOST_CHARACTERS", "members_asked"]

MOST_CHARACTERS = 400  # at the beginning of a question, in which a class is looked for


def members_asked(question: str) -> tuple[str, ...]:
    """Return the members of the class that a question asks for; empty where it names no class."""
    match = _ASKED.search(question[:MOST_CHARACTERS].lower())
    return _CLASSES[match["class"]] if match else ()


def _read() -> Mapping[str, tuple[str, ...]]:
    """Return by each word for a class its members; ValueError for a word of two classes, or a class of nothing."""
    found: dict[str, tuple[str, ...]] = {}
    for words, listed in table("classes").items():
        members = split(listed)
        for word in words.split():
            if word in found or not members or word != word.lower():
                raise ValueError(f'lexicon/classes.toml: "{words}": {word!r} asks for one class, in small letters')
            found[word] = members
    return {word.replace("_", " "): members for word, members in found.items()}


_CLASSES = _read()


def _pattern() -> re.Pattern[str]:
    some = any_of(_CLASSES)
    asked = rf"\b{{asked_directly}}(?P<class>{some})\b(?![-'’])(?! (?:{some}|{{heads_of_classes}})\b)"
    return re.compile(expanded(asked))  # of small letters: to ignore case takes other letters for them


_ASKED = _pattern()
