"""Countries and other lands, in which a town may lie."""

from __future__ import annotations

import re

import pycountry

from memoryd.knowledge.lexicon.load import words
from memoryd.knowledge.lexicon.stems import stem

__all__ = ["LANDS"]


def _countries() -> set[str]:
    """Return the names of countries that are one word, in lower case: of ISO 3166 and in common use."""
    names = {name for one in pycountry.countries for name in (one.name, getattr(one, "common_name", one.name))}
    short = {re.split(r"[,(]", name)[0].strip() for name in names}
    return {name.casefold() for name in short if " " not in name}


LANDS = frozenset(stem({*_countries(), *words("nouns.other_lands")} - {*words("nouns.lands_and_towns")}))
"""Stems, each of one word."""
