"""Whether a statement says when in words that mean something only on the day they were said: "next week"."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.pattern import expanded

__all__ = ["has_relative_time"]

MOST_CHARACTERS = 1000  # that are read: half a millisecond
_OTHER_LANGUAGES = re.compile(expanded("{other_languages}"))
_RELATIVE = re.compile(expanded(r"\b{relative}\b"))


def has_relative_time(text: str) -> bool:
    """Return whether a text needs the day on which it was said to be understood; of a long one it is taken for sure."""
    if len(text) > MOST_CHARACTERS:
        return True
    lower = text.lower()  # a quarter of the time of patterns that ignore case (measured)
    return bool(_RELATIVE.search(lower) or _OTHER_LANGUAGES.search(lower))
