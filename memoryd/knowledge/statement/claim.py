"""A claim: one value of one attribute of one subject; and the words that tell of an attribute (`predicates.toml`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources

from memoryd.knowledge.grammar.pattern import compiled, expanded

__all__ = ["EVENTS", "PLACES", "PREDICATES", "SINGULAR", "VALUED", "Cardinality", "Claim"]


class Cardinality(StrEnum):
    """How many values an attribute has at a time."""

    ONE = "one"
    MAYBE_ONE = "maybe_one"
    """Mostly one: another value is a change if the words say so, else a doubt."""
    MANY = "many"


@dataclass(frozen=True, slots=True)
class Claim:
    """One value of one attribute of one subject."""

    subject: str
    """"i", "we", a relation ("wife"), a name in lower case, or "" for things."""
    attribute: str
    value: frozenset[str]
    """Stems of its words; numbers as digits."""
    holds: Cardinality
    affirmed: bool = True
    ended: bool = False
    """It was so, and is no longer."""
    named: bool = False
    """Whether the value is a name, so that it cannot be the same as a description."""
    measure: tuple[str, float] | None = None
    """Dimension and amount in its base unit."""
    left: frozenset[str] = frozenset()
    """The value that it says it was before: "moved from A to B"."""
    names: frozenset[str] = frozenset()
    """Stems of the capitalised words of the value."""
    head: str = ""
    """The stem of the last word of the value: of "window seats" the seats."""
    relation: str = ""
    """Of a subject with a name: how it is related to the speaker, where that is said."""
    aspect: str = ""
    """Which question the value answers: "where", "which", "amount" …; two aspects are both true. "": any of them."""
    since: int = 0
    """The year from which on it is said to be so; 0 where none is said."""
    sense: str = ""
    """Of a claim that ends another: the sense of its verb (`lexicon/verbs.toml`); empty where no verb says it."""
    is_plural: bool = False
    """Whether the value is told of as of several: "my cars"."""

    def covers(self, other: Claim) -> bool:
        """Whether its value names what the other's is about: "tea" does "green tea", and not "tea cups"."""
        return self.value <= other.value and other.head in {"", *self.value}


FIELDS = 3  # of a row
_ATTRIBUTE = re.compile(r"[-!]?(?:\*|[a-z][a-z ]*(?:\{of\})?)")
PLACES = frozenset(["home", "birthplace", "origin"])
"""Attributes whose value is a place."""


def _read(rows: Iterable[Sequence[str]]) -> Iterator[tuple[re.Pattern[str], str, Cardinality]]:
    for row in rows:
        where = f"statement/predicates.toml: {row}"
        if len(row) != FIELDS or row[1] not in set(Cardinality) or not _ATTRIBUTE.fullmatch(row[0]):
            raise ValueError(f"{where}: an attribute, {' or '.join(Cardinality)}, and a pattern")
        attribute, holds, pattern = row
        read = compiled(f"{{adverbs}}(?:{pattern})$", where)
        if not {"v", *(["of"] if "{of}" in attribute else [])} <= read.groupindex.keys():
            raise ValueError(f"{where}: a group (?P<v>…), and (?P<of>…) for {{of}}")
        yield read, attribute, Cardinality(holds)


PREDICATES = tuple(
    _read(tomllib.loads(resources.files(__package__).joinpath("predicates.toml").read_text("utf-8"))["predicates"])
)
"""What a subject does or is: the text after it, its attribute, and how many values that has."""

_NAMED = r"^(?:[\w.-]+ ){0,3}"
SINGULAR = re.compile(expanded(rf"{_NAMED}(?:{{had_once}}|default \w+)$"))
"""Things that one has one of, so that another value of them is a change."""
VALUED = re.compile(expanded(rf"{_NAMED}(?:{{valued}}|default \w+)$"))
"""Things whose bare word is their value ("my role is lead"), not a remark on them ("my car is fast")."""
EVENTS = re.compile(expanded(rf"{_NAMED}{{event}}$"))
"""Things that come several times: when one is, is a plan of its own; what else is said may be of another."""
