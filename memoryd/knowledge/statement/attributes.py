"""What a subject does or is, by the attribute that it tells of; the rows stand in `predicates.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import resources

from memoryd.knowledge.grammar.pattern import compiled, expanded
from memoryd.knowledge.statement.claim import Cardinality

__all__ = ["EVENTS", "PLACES", "PREDICATES", "SINGULAR", "VALUED"]

PLACES = frozenset(["home", "birthplace", "origin"])
"""Attributes whose value is a place."""


def _rows() -> Iterator[tuple[re.Pattern[str], str, Cardinality]]:
    text = resources.files(__package__).joinpath("predicates.toml").read_text(encoding="utf-8")
    for attribute, holds, pattern in tomllib.loads(text)["predicates"]:
        yield compiled(f"{{adverbs}}(?:{pattern})$"), attribute, Cardinality(holds)


PREDICATES = tuple(_rows())
"""What a subject does or is: the text after it, its attribute, and how many values that has."""

_NAMED = r"^(?:[\w.-]+ ){0,3}"
SINGULAR = re.compile(expanded(rf"{_NAMED}(?:{{had_once}}|default \w+)$"))
"""Things of which one has one, so that another value of them is a change."""
VALUED = re.compile(expanded(rf"{_NAMED}(?:{{valued}}|default \w+)$"))
"""Things whose bare word is their value ("my role is lead"), not a remark on them ("my car is fast")."""
EVENTS = re.compile(expanded(rf"{_NAMED}{{event}}$"))
"""Things of which there are several in time: when one is, is a plan of its own; what else is said may be of another."""
