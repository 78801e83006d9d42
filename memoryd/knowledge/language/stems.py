"""Words reduced to their stem by Snowball's English algorithm."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import Stemmer

__all__ = ["forget_stems", "stem", "word_set"]

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


def stem(words: Iterable[str]) -> list[str]:
    """Return the stems of lower-case words."""
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:  # a stemmer keeps a buffer, so each thread has its own
        stemmer = _local.stemmer = Stemmer.Stemmer("english", KEPT_WORDS)
        _stemmers.append(stemmer)
    return list(stemmer.stemWords([_AMERICAN.get(word, word) for word in words]))


def forget_stems() -> None:
    """Drop the words whose stems are kept."""
    for stemmer in _stemmers:
        stemmer.maxCacheSize = 0
        stemmer.maxCacheSize = KEPT_WORDS


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, which stand between spaces."""
    return frozenset(text.split())
