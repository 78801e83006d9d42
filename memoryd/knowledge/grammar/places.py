"""Places: countries, in which a town may lie, and districts and suburbs: who names one after the city has not moved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

import pycountry

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


def _countries() -> set[str]:
    """Return the names of countries that are one word, in lower case: of ISO 3166 and in common use."""
    names = {
        name
        for country in pycountry.countries
        for name in (country.name, getattr(country, "common_name", country.name))
    }
    short = {re.split(r"[,(]", name)[0].strip() for name in names}
    return {name.casefold() for name in short if " " not in name}


LANDS = frozenset(stem({*_countries(), *words("nouns.other_lands")} - {*words("nouns.lands_and_towns")}))
"""Stems, each of one word."""
