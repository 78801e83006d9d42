"""Places: countries, in which a town may lie, and districts and suburbs: who names one after the city has not moved."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

from memoryd.knowledge.grammar.words import value_of
from memoryd.knowledge.lexicon.load import words
from memoryd.knowledge.lexicon.spelling import stem

__all__ = ["LANDS", "is_district_of"]


def is_district_of(district: frozenset[str], city: frozenset[str]) -> bool:
    """Whether one place, by the stems of its name, is a part or a suburb of the other."""
    return city in _cities_of().get(district, ())


@cache
def _cities_of() -> Mapping[frozenset[str], set[frozenset[str]]]:
    """Return the cities that each district may be of."""
    found: dict[frozenset[str], set[frozenset[str]]] = {}
    text = resources.files("memoryd.knowledge.lexicon").joinpath("districts.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        city, _, districts = line.partition(": ")
        names = {value_of(city), value_of(city.removesuffix(" City"))}
        for district in districts.split(", "):
            found.setdefault(value_of(district), set()).update(names)
    return found


LANDS = frozenset(stem(words("nouns.lands") + words("nouns.other_lands")))
"""Stems, each of one word."""
