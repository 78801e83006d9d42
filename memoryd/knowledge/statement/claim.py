"""A claim: one value of one attribute of one subject."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Cardinality", "Claim"]


class Cardinality(Enum):
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
