"""How words are spelled: in letters without accents, with one apostrophe, and as their stems (by Snowball)."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterable, Sequence

import Stemmer

__all__ = ["APOSTROPHES", "UPPER", "forget_stems", "stem", "stem_by_script", "stem_of", "unaccented", "word_set"]

_local = threading.local()
_stemmers: list[Stemmer.Stemmer] = []  # of every thread
KEPT_WORDS = 10_000
_SPELLINGS = """
    colour color, colours colors, coloured colored, favourite favorite, favourites favorites, flavour flavor,
    flavours flavors, grey gray, centre center, centres centers, theatre theater, theatres theaters, neighbour neighbor,
    neighbours neighbors, behaviour behavior, honour honor, labour labor, rumour rumor, humour humor, organise organize,
    organises organizes, organised organized, realise realize, realised realized, recognise recognize, analyse analyze,
    programme program, catalogue catalog, dialogue dialog, licence license, defence defense, jewellery jewelry,
    travelling traveling, travelled traveled, cancelled canceled, cancelling canceling, metre meter, metres meters,
    kilometre kilometer, kilometres kilometers, litre liter, litres liters, tyre tire, tyres tires, pyjamas pajamas,
    aluminium aluminum, mum mom, mums moms, yoghurt yogurt, whisky whiskey, doughnut donut, storey story, cosy cozy
"""
_AMERICAN = dict(pair.split() for pair in _SPELLINGS.split(","))
"""Two spellings of one word."""


_BY_SCRIPT = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
"""The first and last letter of scripts with one large language for which there is an algorithm."""


def stem(words: Iterable[str]) -> list[str]:
    """Return the stems of lower-case words, as of English."""
    return list(_stemmer("english").stemWords([_AMERICAN.get(word, word) for word in words]))


def stem_of(language: str, word: str) -> str:
    """Return the stem of a lower-case word of a language, by Snowball's name for it."""
    return str(_stemmer(language).stemWord(word))


def stem_by_script(words: Sequence[str]) -> list[str]:
    """Return the stems of lower-case words: of English, or of the language that their script is most used for."""
    stems = stem(words)
    for n, word in enumerate(words):
        if not word.isascii():
            language = next((name for first, last, name in _BY_SCRIPT if first <= word[0] <= last), "")
            if language:
                stems[n] = _stemmer(language).stemWord(word)
    return stems


def _stemmer(language: str) -> Stemmer.Stemmer:
    """Return this thread's stemmer of a language: each keeps a buffer of its own."""
    held: dict[str, Stemmer.Stemmer] | None = getattr(_local, "stemmers", None)
    if held is None:
        held = _local.stemmers = {}
    if language not in held:
        held[language] = Stemmer.Stemmer(language, KEPT_WORDS)
        _stemmers.append(held[language])
    return held[language]


def forget_stems() -> None:
    """Drop the words whose stems are kept."""
    for stemmer in _stemmers:
        stemmer.maxCacheSize = 0
        stemmer.maxCacheSize = KEPT_WORDS


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, which stand between spaces."""
    return frozenset(text.split())


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
