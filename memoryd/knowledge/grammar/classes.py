"""
The class of things that a question asks for: of "What foods does Audrey like?" the foods, and so a chicken pot pie.

The classes stand in `lexicon/classes.toml`: the words by which each is asked for, and its members. A question that
names none of them has no members, and is read as any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from memoryd.knowledge.grammar.pattern import any_of, expanded
from memoryd.knowledge.lexicon.load import split, table

__all__ = ["MOST_CHARACTERS", "members_asked"]

MOST_CHARACTERS = 400  # at the beginning of a question, in which a class is looked for


def members_asked(question: str) -> tuple[str, ...]:
    """Return the members of the class that a question asks for; empty where it names no class."""
    match = _asked().search(question[:MOST_CHARACTERS].lower())
    return _classes()[match["class"]] if match else ()


@cache
def _classes() -> Mapping[str, tuple[str, ...]]:
    """By each word for a class its members."""
    return {
        word.replace("_", " "): members
        for words, listed in table("classes").items()
        for members in (split(listed),)
        for word in words.split()
    }


@cache
def _asked() -> re.Pattern[str]:
    some = any_of(_classes())
    asked = rf"\b{{asked_directly}}(?P<class>{some})\b(?![-'’])(?! (?:{some}|{{heads_of_classes}})\b)"
    return re.compile(expanded(asked))  # of small letters: to ignore case takes other letters for them
