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
TWO_BYTES, THREE_BYTES, FOUR_BYTES = 0x80, 0x800, 0x10000  # the first characters of so many bytes in UTF-8
MOST_CODE = 127

_SENTENCE = re.compile(r"[.!?…][\"')\]»”]{0,2}\s|[。！？؟।\n]")  # noqa: RUF001  of other scripts
_SPACE = re.compile(r"\s")


def later_windows(text: str) -> list[str]:
    """Return the later windows of a text, each once, some six a KB; none of one that is not long."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    ends = np.cumsum(1 + (codes >= TWO_BYTES) + (codes >= THREE_BYTES) + (codes >= FOUR_BYTES))
    if not len(ends) or ends[-1] <= LONG_BYTES:
        return []
    places = [match.end() for match in _SENTENCE.finditer(text)], [match.end() for match in _SPACE.finditer(text)]
    windows: list[str] = []
    start = 0
    while True:  # with whole numbers: numpy would make all of `ends` floating at each look-up
        begun = int(ends[start - 1]) if start else 0
        if ends[-1] - begun <= SIZE:
            break
        earliest, shortest, latest, end = (
            int(np.searchsorted(ends, int(begun + share * SIZE), side="right"))
            for share in (EARLIEST, SHORTEST, STEP, 1)
        )
        end = _cut(places, shortest, end)
        windows.append(text[start:end])
        start = _cut(places, earliest, min(end, latest))
    return [window for window in dict.fromkeys((*windows, text[start:])) if not window.isspace()]


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
