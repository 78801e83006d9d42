"""
The windows of long texts, for the keyword leg: each stretch of a long text is found as if it were a text of its own.

By the length norm of the whole, one telling word of a long text counts next to nothing. So a text of more than LONG
words is also listed in windows of WINDOW words, which overlap; of a text and its windows the best counts.

A question may ask for words that stand apart, one in the title and one far below. So each term is also taken from the
window where it counts most, all of them times the share of the question that the text holds: a text that holds all of
it is found, one that holds some common words is not. Words stand in the order of the text, so nothing else is stored.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.index import postings
from memoryd.index.arrays import Growable
from memoryd.index.postings import CorpusStats, Postings

__all__ = ["Loading", "Windows"]

# Of LifeBench, whose records are long beside short ones, 1.0 costs .6 points of R@10 and this .1; BEAM and Cranfield
# are the same with it, LoCoMo has no long text (measured with words 64–200 and shares of .6–1)
SHARE = 0.75  # of what a short text with the same words counts

LONG = 96  # words, without those that are never searched; a paragraph or two
WINDOW, STRIDE = 64, 48  # words of a window, and from one to the next


def _windows(text: str) -> Iterator[str]:
    """Yield the windows of space-separated terms; none of a text that is not long."""
    if text.count(" ") < LONG:
        return
    words = text.split()
    for first in range(0, max(1, len(words) - WINDOW + STRIDE), STRIDE):
        yield " ".join(words[first : first + WINDOW])


class Loading:
    """What windows begin with: the terms of documents 0, 1, 2, …"""

    def __init__(self) -> None:
        self.postings = postings.Loading()
        self.of = array("i")
        """By window: whose it is."""
        self._count = 0

    def add(self, texts: Sequence[str]) -> None:
        """Take the terms of the next documents."""
        made: list[str] = []
        for document, text in enumerate(texts, self._count):
            some = list(_windows(text))
            made += some
            self.of.extend([document] * len(some))
        if made:
            self.postings.add(made)
        self._count += len(texts)


class Windows:
    """The windows of the long documents of a scope; one thread appends, others read."""

    def __init__(self, loading: Loading | None = None) -> None:
        """Begin with what is loaded."""
        loading = loading or Loading()
        self._postings = Postings(loading.postings, are_windows=True)
        self._of = Growable(np.int32, values=np.frombuffer(loading.of.tobytes(), dtype=np.int32).copy())

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated."""
        return self._postings.nbytes + self._of.nbytes

    def append(self, document: int, text: str) -> None:
        """Add the windows of the next document, by its space-separated terms."""
        for window in _windows(text):
            self._postings.append(window)
            self._of.append(document)

    def erase(self, documents: NDArray[np.int64]) -> None:
        """Forget which terms the windows of some documents held."""
        gone = np.flatnonzero(np.isin(self._of.view(), documents))
        if len(gone):
            self._postings.erase(gone)

    def best(self, terms: Sequence[str], stats: CorpusStats, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return scores of the first documents, each the best of its own, of a window, and of all windows together."""
        of = self._of.view(len(self._of))
        if not len(of):
            return scores
        most = max(len(scores), int(of[-1]) + 1)
        one, together, held = (np.zeros(most, dtype=np.float32) for _ in range(3))
        found = np.zeros(len(of), dtype=np.float32)
        for share, windows, values in self._postings.parts(terms, stats, len(of)):
            found[windows] += values
            documents, best = _greatest(of[windows], values)
            together[documents] += best
            held[documents] += share
        documents, one[documents] = _greatest(of, found)
        best = np.maximum(np.float32(SHARE) * one, together * held)
        np.maximum(scores, best[: len(scores)], out=scores)  # what was appended meanwhile is not seen
        return scores


def _greatest(
    documents: NDArray[np.int32], values: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return documents, which are in order, each once, with the greatest of its values."""
    firsts = np.flatnonzero(np.diff(documents, prepend=-1))
    return documents[firsts], np.maximum.reduceat(values, firsts) if len(firsts) else values
