"""Words without accents, as they are typed on a keyboard that has none: "Łódź" as "Lodz"."""

from __future__ import annotations

import unicodedata

__all__ = ["unaccented"]

_STROKES = str.maketrans(
    {"ł": "l", "đ": "d", "ø": "o", "ß": "ss", "æ": "ae", "œ": "oe", "\u0131": "i", "ð": "d", "þ": "th", "ħ": "h"}
)
"""Letters that are no letter with a mark."""


def unaccented(word: str) -> str:
    """Return a word in lower case without its accents."""
    if word.isascii():
        return word
    return "".join(
        one for one in unicodedata.normalize("NFKD", word.translate(_STROKES)) if not unicodedata.combining(one)
    )
