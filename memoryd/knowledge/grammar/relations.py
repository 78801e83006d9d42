"""
How people are related to the speaker: the words, and how many of them a person has at a time.

Each relation is in one table: of how many there are, and whether they are kin, which never changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial

from memoryd.knowledge.grammar.pattern import any_of, expanded, lazily
from memoryd.knowledge.lexicon.load import split, table

__all__ = [
    "FOREIGN_RELATIONS",
    "KIN",
    "MOSTLY_ONE",
    "ONE_AT_A_TIME",
    "RELATIONS",
    "RELATION_PATTERN",
    "SEVERAL",
    "introduced",
    "relation_of",
]

_TABLES: Mapping[str, Mapping[str, str]] = table("nouns.relation")
_HOW_MANY = ("one", "mostly_one", "many", "one_of_kin", "many_of_kin")
if {*_TABLES} != {*_HOW_MANY}:
    raise ValueError(f"lexicon/nouns.toml: the tables of [relation] are {', '.join(_HOW_MANY)}")
_ONE, _MOSTLY_ONE, _MANY = _TABLES["one"], _TABLES["mostly_one"], _TABLES["many"]
_ONE_OF_KIN, _MANY_OF_KIN = _TABLES["one_of_kin"], _TABLES["many_of_kin"]


def _by_word(tables: Iterable[Mapping[str, str]], *, with_names: bool = True) -> dict[str, str]:
    """Return the relation that each word names, its own name too; ValueError for a word that stands twice."""
    found: dict[str, str] = {}
    for relation, others in (row for some in tables for row in some.items()):
        if not isinstance(others, str):
            raise ValueError(f"lexicon/nouns.toml, [relation]: {relation} = {others!r}: words in quotes")  # noqa: TRY004
        for word in (*([relation] if with_names else []), *split(others)):
            if word in found:
                raise ValueError(f"lexicon/nouns.toml, [relation]: {word!r} names {found[word]!r} and {relation!r}")
            found[word] = relation
    return found


RELATIONS = _by_word(_TABLES.values())
"""A word → the relation that it names."""
ONE_AT_A_TIME = frozenset({*_ONE, *_ONE_OF_KIN})
"""Relations that a person has one of: the last one stated counts."""
MOSTLY_ONE = frozenset(_MOSTLY_ONE)
"""Relations that a person mostly has one of."""
SEVERAL = frozenset({*_MOSTLY_ONE, *_MANY, *_MANY_OF_KIN})
"""Relations that a person may have several of at a time."""
KIN = frozenset({*_ONE_OF_KIN, *_MANY_OF_KIN})
"""Relations that never change: a sister is no wife."""
FOREIGN_RELATIONS = _by_word([table("nouns.foreign_relation")], with_names=False)
"""A word of Dutch, German, French, Spanish, Italian, Portuguese or Polish → the relation that it names."""
RELATION_PATTERN = expanded("{relation}")
_EVERY = any_of({*RELATIONS, *FOREIGN_RELATIONS})
_IS = expanded("{relations_is}")
_MY = expanded("{my_in_any_language}")
_INTRODUCED = (
    rf"(?i:\b(?P<first>{_EVERY})(?:['’]s name)?(?: now)? (?:{_IS})) (?:(?i:now|called|named|dr\.?) )*[^\W\d_a-zà-öø-ÿ]"
    rf"|(?i:\b(?:{_IS}|isn['’]t|wasn['’]t) (?:not |no longer |now |still )*{_MY} (?:[\w-]+ ){{0,2}}"
    rf"(?P<last>{_EVERY})\b)"
)
_INTRODUCTION = lazily(partial(re.compile, _INTRODUCED))
MOST_CHARACTERS = 400  # of a text that says who someone is


def introduced(text: str) -> frozenset[str]:
    """Return the relations that a text gives a name to: "My boss is Jane", not "My boss Jane lives in Oslo"."""
    if len(text) > MOST_CHARACTERS:
        return frozenset()
    words = ((match["first"] or match["last"]).lower() for match in _INTRODUCTION.finditer(text))
    return frozenset(FOREIGN_RELATIONS.get(word, relation_of(word)) for word in words)


def relation_of(word: str) -> str:
    """Return the relation that a word names, in lower case; the word itself if it is none."""
    return RELATIONS.get(word.lower(), word.lower())
