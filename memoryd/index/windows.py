"""
The windows of long texts, for the keyword leg: each stretch of a long text is found as if it were a text of its own.

By the length norm of the whole, one telling word of a long text counts next to nothing. So a text of more than LONG
words is also listed in windows of WINDOW words, which overlap; of a text and its windows the best counts.

A question may ask for words that stand apart, one in the title and one far below. So two windows of a text also count
together, times the share of the question that they hold: what holds all of it is found, what holds some common words
is not. A window that holds it all by itself is such a pair too. With more than two, a text of all the words of a
language would answer everything. Words stand in the order of the text, so nothing else is stored.
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

# Of LifeBench, whose records are long next to short ones, 1.0 costs .6 points of R@10 and this .1; BEAM and Cranfield
# are the same with it, LoCoMo has no long text (measured with words 64–200 and shares of .6–1)
SHARE = 0.75  # of what a short text with the same words counts

LONG = 96  # words, without those that are never searched; a paragraph or two
WINDOW, STRIDE = 64, 48  # words of a window, and from one to the next
MOST_TERMS = 24  # of a question, the rarest: a sentence holds fewer
MOST_WINDOWS = 8192  # of those texts that hold most of the question: ten of 250 KB, 320 of 8 KB (about 5 ms)

Rows = NDArray[np.int64]


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

    def __len__(self) -> int:
        """Return how many windows there are."""
        return len(self._of)

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

    def best(
        self,
        terms: Sequence[str],
        stats: CorpusStats,
        scores: NDArray[np.float32],
        held: NDArray[np.float32],
        mask: NDArray[np.bool_],
        trusted: NDArray[np.bool_],
    ) -> NDArray[np.float32]:
        """
        Return scores of the first documents, each the best of its own, of a window, and of two windows together.

        The arrays are of one length; `held` is the share of the question that each document holds. Only windows of what
        passes the mask are read, at most MOST_WINDOWS, and `trusted` documents apart from others, so that nothing else
        changes what a document gets.
        """
        owners = self._of.view(len(self._of))
        owners = owners[: np.searchsorted(owners, len(scores))]  # what was appended meanwhile is not seen
        starts, documents = _runs(owners)
        sizes = np.diff(starts, append=len(owners))
        most = held + scores  # of those that hold the same the best by itself
        for some, vouched_share in ((mask & trusted, stats.vouched_share), (mask & ~trusted, 1.0)):
            among = np.flatnonzero(some[documents] & (held[documents] > 0))
            among = among[np.argsort(-most[documents[among]], kind="stable")]
            is_read = np.zeros(len(documents), dtype=np.bool_)
            is_read[among[np.cumsum(sizes[among]) <= MOST_WINDOWS]] = True
            if not is_read.any():
                continue
            idf, by_term = self._by_term(terms, stats, np.flatnonzero(np.repeat(is_read, sizes)), len(owners))
            firsts = np.cumsum(sizes[is_read]) - sizes[is_read]
            both, shares = _of_two(by_term, idf, firsts)
            both *= np.minimum(np.float32(1), np.float32(vouched_share) * shares)
            one = np.float32(SHARE) * np.maximum.reduceat(by_term.sum(axis=1), firsts)
            read = documents[is_read]
            scores[read] = np.maximum(scores[read], np.maximum(one, both))
        return scores

    def _by_term(
        self, terms: Sequence[str], stats: CorpusStats, windows: Rows, count: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the shares of the rarest terms that windows hold, and what each gives: of shape (windows, terms)."""
        places = np.full(count, -1)
        places[windows] = np.arange(len(windows))
        norms = self._postings.norms(stats, count)
        idf, mass = stats.idf, stats.mass
        shares: list[float] = []
        by_term = np.zeros((len(windows), min(MOST_TERMS, len(terms))), dtype=np.float32)
        for n in sorted(range(len(terms)), key=lambda n: -idf[n]):
            share = idf[n] / mass
            is_held = False
            for held, occurrences in self._postings.pieces(terms[n], count):
                some = (places[held] >= 0) & (occurrences > 0)
                often = occurrences[some].astype(np.float32)
                by_term[places[held[some]], len(shares)] = np.float32(share) * often / (often + norms[held[some]])
                is_held |= bool(some.any())
            if is_held:
                shares.append(share)
            if len(shares) == MOST_TERMS:
                break
        return np.array(shares, dtype=np.float32), by_term[:, : len(shares)]


def _runs(documents: NDArray[np.int32]) -> tuple[Rows, NDArray[np.int32]]:
    """Return where each of some documents begins, which are in order, and each once."""
    starts = np.flatnonzero(np.diff(documents, prepend=-1))
    return starts, documents[starts]


def _of_two(
    by_term: NDArray[np.float32], idf: NDArray[np.float32], starts: Rows
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """
    Return what two windows of each document say together, and the share of the question that they hold.

    The second adds most to the best one, and the first is then what adds most to the second. The share is 0 where they
    hold a single word: that is found by one window.
    """
    runs = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(by_term)))
    first = by_term[_greatest(by_term.sum(axis=1), starts, runs)]
    second = by_term[_greatest(np.maximum(by_term - first[runs], 0).sum(axis=1), starts, runs)]
    first = by_term[_greatest(np.maximum(by_term - second[runs], 0).sum(axis=1), starts, runs)]
    both = np.maximum(first, second)
    is_held = both > 0
    return both.sum(axis=1), np.where(is_held.sum(axis=1) > 1, is_held @ idf, np.float32(0))


def _greatest(values: NDArray[np.float32], starts: Rows, runs: Rows) -> Rows:
    """Return the place of the first greatest value of each run."""
    places = np.flatnonzero(values == np.maximum.reduceat(values, starts)[runs])
    return places[np.flatnonzero(np.diff(runs[places], prepend=-1))]
