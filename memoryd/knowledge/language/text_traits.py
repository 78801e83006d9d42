"""What ranking looks at in a text besides its words, and that as a short text for the store."""

from __future__ import annotations

import math
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from memoryd.knowledge.language.dates import Days, days_named
from memoryd.knowledge.language.questions import question_share, signs_of

__all__ = ["SHARES", "TextTraits", "as_text", "forget_texts", "from_text", "read_once", "read_text"]

VERSION = "1"  # of how texts are read: what was read in another way is read again
SHARES = 255  # a share as a byte
MOST_KEPT = 512  # texts: those of a commit, which the store and the index read


class TextTraits(NamedTuple):
    """What is read of one text."""

    asking: int
    """Which share of its sentences are questions, in SHARES; 0 of a statement."""
    signs: int
    """What stands in it, as `questions.Signs`."""
    days: tuple[Days, ...]
    """The days that it names."""


def read_text(content: str, day: date, *, is_said: bool, is_dated: bool) -> TextTraits:
    """Read a text; its relative dates are seen from a day. What is not dated may tell of habits."""
    asking = math.ceil(question_share(content) * SHARES) if is_said else 0
    return TextTraits(asking, int(signs_of(content)), tuple(days_named(content, day, habits=not is_dated)))


read_once = lru_cache(MOST_KEPT)(read_text)
"""The same for what is written now, which store and index read. A load reads older texts, and keeps none of them."""


def forget_texts() -> None:
    """Drop the texts that are kept."""
    read_once.cache_clear()


def as_text(traits: TextTraits, *, is_said: bool, is_dated: bool) -> str:
    """Return what was read as text, with how it was read."""
    days = (f"{first}-{last}" for first, last in traits.days)
    return " ".join([f"{VERSION}{is_said:d}{is_dated:d}", str(traits.asking), str(traits.signs), *days])


def from_text(text: str, *, is_said: bool, is_dated: bool) -> TextTraits | None:
    """Return what such a text says; None where it was not read, or in another way."""
    way, *values = text.split() or [""]
    if way != f"{VERSION}{is_said:d}{is_dated:d}":
        return None
    asking, signs, *days = values
    return TextTraits(int(asking), int(signs), tuple(Days(*map(int, one.split("-"))) for one in days))
