"""
The later windows of a long text: what a model does not see of it at once gets vectors of its own.

What a model reads of it, its first window, is the text's vector. The later ones are short, as a vector of many
sentences tells little of each, and begin with the text again; they overlap, begin and end where sentences do, if any
are near. They are counted in bytes: a letter of another script takes two or three bytes and as many more word pieces.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["LONG_BYTES", "SIZE", "codes_of", "later_windows"]

# Tried on development data: docs/decisions/0029-vectors-of-windows.md
LONG_BYTES = 1000  # of a text from which on it has later windows: about 254 word pieces of English
SIZE = 250  # bytes of a window: two or three sentences
STEP = 0.75  # of a window, from one to the next
SHORTEST = 0.6  # of a window that ends with a sentence
EARLIEST = 0.4  # of a window behind which the next one may begin
MOST_CODE = 127

_SENTENCE = re.compile(r"[.!?…][\"')\]»”]{0,2}\s|[。！？؟।\n]")  # noqa: RUF001  of other scripts
_SPACE = re.compile(r"\s")


def later_windows(text: str) -> list[str]:
    """Return the later windows of a text, some six a KB; none of one that is not long."""
    size = len(text.encode(errors="replace"))
    if size <= LONG_BYTES:
        return []
    sentences = [found.end() for found in _SENTENCE.finditer(text)]
    spaces = [found.end() for found in _SPACE.finditer(text)]
    length = max(4, int(SIZE * len(text) / size))  # so that each begins later than the one before
    windows: list[str] = []
    start = 0
    while start + length < len(text):
        end = _cut((sentences, spaces), start + int(SHORTEST * length), start + length)
        windows.append(text[start:end])
        start = _cut((sentences, spaces), start + int(EARLIEST * length), min(end, start + int(STEP * length)))
    return [*windows, text[start:]]


def _cut(places: Sequence[list[int]], first: int, last: int) -> int:
    """Return the last place past `first`, up to `last`: of the first sort that has one, or `last` itself."""
    for some in places:
        n = bisect_right(some, last)
        if n > bisect_left(some, first + 1):
            return some[n - 1]
    return last


def codes_of(vectors: NDArray[np.float32]) -> bytes:
    """Return vectors of later windows, shape (n, dimensions), as `Embedded.windows` has them."""
    most = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-12)
    return bytes(np.rint(vectors / most * MOST_CODE).astype(np.int8).tobytes())
