"""
The windows of long texts, for the keyword leg: each stretch of a long text is found as if it were a text of its own.

By the length norm of the whole, one telling word of a long text counts next to nothing. So a text of more than LONG
words is also listed in windows of WINDOW words, which overlap; of a text and its windows the best counts.

A question may ask for words that stand apart, one in the title and one far below. So two windows of a text also count
together, times the share of the question that they hold: what holds all of it is found, what holds some common words
is not. With more than two, a text of all the words of a language would answer everything. Words stand in the order of
the text, so nothing else is stored.
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
MOST_TERMS = 24  # of a question, the rarest, for which two windows count together …
MOST_PAIRED = 200  # … of so many texts, those whose windows all together hold most

Rows = NDArray[np.int64]
Part = tuple[float, NDArray[np.int32], NDArray[np.float32]]
"""Of a term: its share of the question, windows in order, and what it gives them."""


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
        """Return scores of the first documents, each the best of its own, of a window, and of two windows together."""
        of = self._of.view(len(self._of))
        parts = list(self._postings.parts(terms, stats, len(of)))
        if not parts:
            return scores
        most = max(len(scores), int(of[-1]) + 1)
        found, one, all_of = (np.zeros(count, dtype=np.float32) for count in (len(of), most, most))
        for _, windows, values in parts:
            found[windows] += values
            starts, documents = _runs(of[windows])
            all_of[documents] += np.maximum.reduceat(values, starts)
        starts, documents = _runs(of)
        one[documents] = np.float32(SHARE) * np.maximum.reduceat(found, starts)
        likely = np.ones(most, dtype=np.bool_)
        if most > MOST_PAIRED:
            likely[np.argpartition(-all_of, MOST_PAIRED)[MOST_PAIRED:]] = False
        documents, both = _of_two(parts, np.flatnonzero(likely[of] & (found > 0)), of)
        one[documents] = np.maximum(one[documents], both)
        np.maximum(scores, one[: len(scores)], out=scores)  # what was appended meanwhile is not seen
        return scores


def _runs(documents: NDArray[np.int32]) -> tuple[Rows, NDArray[np.int32]]:
    """Return where each of some documents begins, which are in order, and each once."""
    starts = np.flatnonzero(np.diff(documents, prepend=-1))
    return starts, documents[starts]


def _of_two(parts: Sequence[Part], held: Rows, of: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return documents, and what the terms of two of their windows say together, times the share that they hold."""
    telling = sorted(parts, key=lambda part: -part[0])[:MOST_TERMS]
    shares = np.array([share for share, _, _ in telling], dtype=np.float32)
    places = np.full(len(of), -1)
    places[held] = np.arange(len(held))
    by_term = np.zeros((len(held), len(telling)), dtype=np.float32)
    for n, (_, windows, values) in enumerate(telling):
        some = places[windows] >= 0
        by_term[places[windows[some]], n] = values[some]
    starts, documents = _runs(of[held])
    if not len(starts):
        return documents, np.empty(0, dtype=np.float32)
    runs = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(held)))
    first = by_term[_greatest(by_term.sum(axis=1), starts, runs)]
    second = by_term[_greatest(np.maximum(by_term - first[runs], 0).sum(axis=1), starts, runs)]
    both = np.maximum(first, second)
    return documents, both.sum(axis=1) * ((both > 0) @ shares)


def _greatest(values: NDArray[np.float32], starts: Rows, runs: Rows) -> Rows:
    """Return the place of the first greatest value of each run."""
    places = np.flatnonzero(values == np.maximum.reduceat(values, starts)[runs])
    return places[np.flatnonzero(np.diff(runs[places], prepend=-1))]
