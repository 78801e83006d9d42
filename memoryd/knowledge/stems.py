"""Words reduced to their stem by Snowball's English algorithm."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import Stemmer

__all__ = ["stem", "word_set"]

_local = threading.local()


def stem(words: Iterable[str]) -> list[str]:
    """Return the stems of lower-case words."""
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:  # a stemmer keeps a buffer, so each thread has its own
        stemmer = _local.stemmer = Stemmer.Stemmer("english", 10_000)
    return list(stemmer.stemWords(words))


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, which stand between spaces."""
    return frozenset(text.split())
