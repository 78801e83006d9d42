"""Given names of some fifty countries, in Latin letters; `generate_given_names.py` says from where."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from memoryd.knowledge.grammar.names import is_first_name

__all__ = ["is_doubtful_name", "is_given_name"]


@cache
def _names() -> dict[str, bool]:
    """Return every name in lower case, and whether it is also a place, a word or a thing."""
    text = files("memoryd.knowledge.lexicon").joinpath("given_names.txt").read_text("utf-8")
    listed = (name for line in text.splitlines() if not line.startswith("#") for name in line.split())
    return {name.removesuffix("*"): name.endswith("*") for name in listed}


def is_given_name(word: str) -> bool:
    """Whether a word is somebody's given name, whatever its case; of two with a hyphen the first decides."""
    names = _names()
    lower = word.lower()
    return lower in names or is_first_name(lower) or ("-" in lower and lower.partition("-")[0] in names)


def is_doubtful_name(word: str) -> bool:
    """Whether a given name is also a place, a word or a thing, so that what stands around it has to decide."""
    return _names().get(word.lower(), False)
