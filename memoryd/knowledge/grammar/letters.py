"""Letters as they are typed on a keyboard that has no accents, and one apostrophe for all of them."""

from __future__ import annotations

import unicodedata

__all__ = ["APOSTROPHES", "UPPER", "unaccented"]

UPPER = "A-Z" + "".join(letter for letter in map(chr, range(0xC0, 0x530)) if letter.isupper())
"""For a class in a pattern: the capitals of the Latin, Greek and Cyrillic alphabets."""

APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u2018\u00b4\u02bc\uff07\u2032", "'"))
"""What people type for an apostrophe."""
_STROKES = str.maketrans(
    {"ł": "l", "đ": "d", "ø": "o", "ß": "ss", "æ": "ae", "œ": "oe", "\u0131": "i", "ð": "d", "þ": "th", "ħ": "h"}
)
"""Letters that are no letter with a mark."""


def unaccented(word: str) -> str:
    """Return a word in lower case without its accents, "łódź" as "lodz"; one in other letters than Latin as it is."""
    if word.isascii():
        return word
    bare = "".join(
        one for one in unicodedata.normalize("NFKD", word.translate(_STROKES)) if not unicodedata.combining(one)
    )
    return bare if bare.isascii() else word
