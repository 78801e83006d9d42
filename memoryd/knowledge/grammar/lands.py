"""Countries and other lands, in which a town may lie."""

from __future__ import annotations

import re

import pycountry

from memoryd.knowledge.lexicon.stems import stem, word_set

__all__ = ["LANDS"]

_OTHERS = """
    usa uk america russia turkey bosnia england scotland wales europe asia africa scandinavia
    zealand states kingdom rica lanka arabia emirates rico
    california texas florida ohio michigan oregon nevada utah colorado arizona georgia illinois massachusetts
    bavaria tuscany catalonia brittany queensland ontario quebec
"""
"""What pycountry does not have, or not in one word: everyday names, parts of names, continents, states, regions."""

_TOWNS = "monaco macao gibraltar djibouti jersey cocos"
"""Names in pycountry that are towns as well, or parts of their names: Jersey City, Cocos Beach."""


def _countries() -> set[str]:
    """Return the names of countries that are one word, in lower case: of ISO 3166 and in common use."""
    names = {name for one in pycountry.countries for name in (one.name, getattr(one, "common_name", one.name))}
    short = {re.split(r"[,(]", name)[0].strip() for name in names}
    return {name.casefold() for name in short if " " not in name}


LANDS = frozenset(stem({*_countries(), *word_set(_OTHERS)} - word_set(_TOWNS)))
"""Stems, each of one word."""
