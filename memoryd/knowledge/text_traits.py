"""What ranking looks at in a text besides its words, and that as a short text for the store."""

from __future__ import annotations

import math
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from memoryd.knowledge.grammar.dates import Days, days_named
from memoryd.knowledge.grammar.questions import Signs, question_share, signs_of
from memoryd.knowledge.grammar.sentences import states_nothing
from memoryd.knowledge.profile import Standing, Topic, is_over, standing_of
from memoryd.model.memory import HAPPENED, Kind, Memory

__all__ = [
    "OVER",
    "SHARES",
    "TextTraits",
    "as_text",
    "forget_texts",
    "from_text",
    "read_once",
    "read_text",
    "standing_in",
    "stored_traits",
]

VERSION_OF_SAID, VERSION = "1", "6"  # of how messages and statements are read: what was read otherwise is read again
SHARES = 255  # a share as a byte
MIXED, OF_USER = 64, 128  # with the number of a topic: it is of others too, and said of the user
OVER = MIXED  # of no topic: it only says what is over
MOST_KEPT = 512  # texts: those of a commit, which the store and the index read


class TextTraits(NamedTuple):
    """What is read of one text."""

    asking: int
    """Which share of its sentences are questions, in SHARES; 0 of a statement."""
    signs: int
    """What stands in it, as `questions.Signs`."""
    days: tuple[Days, ...]
    """The days that it names."""
    standing: int = 0
    """What it says that is always true: the number of a topic, and OF_USER with it; OVER; 0 of most and of messages."""


def read_text(content: str, day: date, *, is_said: bool, is_dated: bool) -> TextTraits:
    """Read a text; its relative dates are seen from a day. What is not dated may tell of habits."""
    asking = math.ceil(question_share(content) * SHARES) if is_said else 0
    signs = signs_of(content)
    if is_said and states_nothing(content):
        signs |= Signs.STATES_NOTHING
    days = tuple(days_named(content, day, habits=not is_dated))
    standing = 0 if is_said else _number_of(standing_of(content)) or (OVER if is_over(content) else 0)
    return TextTraits(asking, int(signs), days, standing)


def standing_in(number: int) -> Standing:
    """Return what a TextTraits.standing says that is neither 0 nor OVER."""
    return Standing(Topic(number % MIXED), bool(number & OF_USER), bool(number & MIXED))


def _number_of(standing: Standing | None) -> int:
    if standing is None:
        return 0
    return standing.topic | (OF_USER if standing.of_user else 0) | (MIXED if standing.is_mixed else 0)


read_once = lru_cache(MOST_KEPT)(read_text)
"""The same for what is written now, which store and index read. A load reads older texts, and keeps none of them."""


def forget_texts() -> None:
    """Drop the texts that are kept."""
    read_once.cache_clear()


def stored_traits(memory: Memory) -> str:
    """Return what ranking reads of a memory's text, as a store keeps it."""
    said, dated = memory.kind is Kind.EPISODE, memory.kind in HAPPENED
    read = read_once(memory.content, memory.event_time.date(), is_said=said, is_dated=dated)
    return as_text(read, is_said=said, is_dated=dated)


def as_text(traits: TextTraits, *, is_said: bool, is_dated: bool) -> str:
    """Return what was read as text, with how it was read."""
    days = (f"{first}-{last}" for first, last in traits.days)
    first = traits.asking if is_said else traits.standing  # a statement never asks
    return " ".join([_way(is_said=is_said, is_dated=is_dated), str(first), str(traits.signs), *days])


def _way(*, is_said: bool, is_dated: bool) -> str:
    return f"{VERSION_OF_SAID if is_said else VERSION}{is_said:d}{is_dated:d}"


def from_text(text: str, *, is_said: bool, is_dated: bool) -> TextTraits | None:
    """Return what such a text says; None where it was not read, or in another way."""
    way, *values = text.split() or [""]
    if way != _way(is_said=is_said, is_dated=is_dated):
        return None
    first, signs, *named = values
    days = tuple(Days(*map(int, one.split("-"))) for one in named)
    asking, standing = (int(first), 0) if is_said else (0, int(first))
    return TextTraits(asking, int(signs), days, standing)
