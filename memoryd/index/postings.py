"""
The inverted index of one scope, and BM25 over it.

Base postings lie in three flat arrays, term after term; what came later lies in a small array a term.
Formula: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), without its factor
k1 + 1, so that a term's share stays below its idf. b is std/mean of the document lengths within 0.3–1: stores whose
texts differ much in length need more of the length norm (measured on six sets; a fixed b loses on one or another).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memoryd.index.analysis import length_of
from memoryd.index.arrays import Growable
from memoryd.index.lookup import Lookup, numbers_of

__all__ = ["CorpusStats", "Loading", "Postings"]

K1 = 1.2
MIN_B, MAX_B = 0.3, 1.0
NONE = np.empty(0, dtype=np.uint8)
FEW_TERMS = 100_000  # of a base, which are kept in a dictionary
DOCUMENT_BITS = 32
MAX_COUNT = 255  # a word's occurrences in one text fit a byte; BM25 has saturated long before


def _sorted(
    places: list[NDArray[np.int64]], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8]]:
    """Return where the documents of each of so many terms begin, the documents, and how often they hold it."""
    keys = np.concatenate(places)
    places.clear()
    keys.sort()  # by term, then by document
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.minimum(np.diff(firsts, append=len(keys)), MAX_COUNT).astype(np.uint8)
    keys = keys[firsts]
    starts = np.searchsorted(keys, np.arange(count + 1, dtype=np.int64) << DOCUMENT_BITS)
    return starts, (keys & ((1 << DOCUMENT_BITS) - 1)).astype(np.int32), counts


@dataclass(frozen=True, slots=True)
class CorpusStats:
    """What BM25 must know of all texts together; those of several scopes add up."""

    count: int
    length_sum: int
    length_square_sum: int
    frequencies: tuple[int, ...]
    """In how many texts each term of the query occurs."""
    unknown: float = 1.0
    """What a term counts that no text holds, in the mass of a query."""
    vouched: tuple[int, ...] = ()
    """In how many texts of higher trust than a sandbox's each term occurs; empty where `unknown` is 1."""

    def __add__(self, other: CorpusStats) -> CorpusStats:
        return CorpusStats(
            self.count + other.count,
            self.length_sum + other.length_sum,
            self.length_square_sum + other.length_square_sum,
            tuple(a + b for a, b in zip(self.frequencies, other.frequencies, strict=True)),
            self.unknown,
            tuple(a + b for a, b in zip(self.vouched, other.vouched, strict=True)),
        )

    @property
    def mean_length(self) -> float:
        """Mean number of words in a text."""
        return self.length_sum / self.count if self.count else 1.0

    @property
    def b(self) -> float:
        """How much the length of a text counts: the coefficient of variation of the lengths, within 0.3–1."""
        mean = self.mean_length
        if not self.count or not mean:
            return MIN_B
        variance = max(0.0, self.length_square_sum / self.count - mean * mean)
        return min(MAX_B, max(MIN_B, math.sqrt(variance) / mean))

    @property
    def idf(self) -> tuple[float, ...]:
        """Inverse document frequency of each term of the query; above zero also for a term in every text."""
        return tuple(math.log1p((self.count - df + 0.5) / (df + 0.5)) for df in self.frequencies)

    @property
    def mass(self) -> float:
        """What the terms of the query weigh together."""
        return self._mass(self.frequencies)

    @property
    def vouched_share(self) -> float:
        """By how much more a text of higher trust counts: the terms that sandboxes alone hold are unknown to it."""
        vouched = self._mass(self.vouched) if self.vouched else 0.0
        return self.mass / vouched if vouched else 1.0

    def _mass(self, frequencies: Sequence[int]) -> float:
        pairs = zip(self.idf, frequencies, strict=True)
        return sum(idf if often else self.unknown * idf for idf, often in pairs)


class _Numbers(dict[str, int]):
    """Numbers words as they come."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class Loading:
    """What postings begin with: the terms of documents 0, 1, 2, …"""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        """Begin with some texts of space-separated terms."""
        self.numbers = _Numbers()
        self.places: list[NDArray[np.int64]] = []
        """The number of each term that stands anywhere, times 2³², plus its document."""
        self.lengths: list[NDArray[np.int32]] = []
        self._count = 0
        self.add(texts)

    def add(self, texts: Sequence[str]) -> None:
        """Take the terms of the next documents."""
        words = [text.split() for text in texts]
        terms = np.fromiter(map(len, words), dtype=np.int32, count=len(words))
        numbers = map(self.numbers.__getitem__, chain.from_iterable(words))
        self.lengths.append(np.fromiter(map(length_of, texts, map(len, words)), dtype=np.int32, count=len(words)))
        places = np.fromiter(numbers, dtype=np.int64, count=int(terms.sum()))
        places <<= DOCUMENT_BITS
        places |= np.repeat(np.arange(self._count, self._count + len(texts)), terms)
        self.places.append(places)
        self._count += len(texts)


class Postings:
    """Which documents a term occurs in, and how often."""

    def __init__(self, loading: Loading | None = None, *, are_windows: bool = False) -> None:
        """Build the base. Windows count as no longer than a text is on average: they are cut, and not wordy."""
        self._are_windows = are_windows
        loading = loading or Loading()
        few = len(loading.numbers) <= FEW_TERMS
        self._terms: dict[str, int] = dict(loading.numbers) if few else {}
        """The number of a term. Numbers are not given again."""
        self._base = Lookup(numbers_of([] if few else list(loading.numbers)))
        """The numbers of the terms of a large base: a twelfth of the memory, and thirty times the time."""
        self._words = {number: word for word, number in self._terms.items()}
        self._next = len(loading.numbers)
        self._late: dict[int, tuple[array[int], array[int]]] = {}
        self._late_terms: dict[int, array[int]] = {}
        """By document that came late: the numbers of its terms."""
        self._late_postings = 0
        self._kept_norms: tuple[tuple[float, float, int], NDArray[np.float32]] | None = None
        lengths = np.concatenate(loading.lengths)
        self.lengths = Growable(np.int32, values=lengths)
        self._starts, self._documents, self._counts = _sorted(loading.places, self._next)

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated without counting."""
        base = self._documents.nbytes + self._counts.nbytes + self._starts.nbytes + self.lengths.nbytes
        late = self._late_postings * 14 + len(self._late) * 250 + len(self._late_terms) * 150
        return base + late + self._base.nbytes + len(self._terms) * 230

    def _number(self, term: str) -> int:
        """Return the number of a term, -1 where it was never met."""
        number = self._terms.get(term, -1)
        if number >= 0 or not len(self._base):
            return number
        known = self._base.of(hash(term))
        return known[0] if known else -1

    def append(self, text: str) -> int:
        """Add the next document by its space-separated terms; return its length in words."""
        words = text.split()
        document = len(self.lengths)
        counts: dict[str, int] = {}
        for word in words:
            counts[word] = counts.get(word, 0) + 1
        numbers = self._late_terms[document] = array("i")
        for word, count in counts.items():
            number = self._number(word)
            if number < 0:
                number = self._terms[word] = self._next
                self._words[number] = word
                self._next += 1
            numbers.append(number)
            late = self._late.get(number)
            if late is None:
                late = self._late[number] = (array("i"), array("B"))  # appends twenty times as fast as numpy
            late[1].append(min(count, MAX_COUNT))
            late[0].append(document)
        self._late_postings += len(counts)
        length = length_of(text, len(words))
        self.lengths.append(length)
        return length

    def erase(self, documents: NDArray[np.int64]) -> None:
        """Forget which terms some documents held, and the terms that no other document holds."""
        is_gone = np.zeros(len(self.lengths), dtype=np.bool_)
        is_gone[documents] = True
        early = np.flatnonzero(is_gone[self._documents])
        self._counts[early] = 0  # the places stay, as others may be reading
        touched = set((np.searchsorted(self._starts, early, side="right") - 1).tolist())
        late = {number for document in documents.tolist() for number in self._late_terms.pop(document, ())}
        for number in late:
            held, counts = self._late[number]
            kept = ~is_gone[np.array(held)]
            self._late_postings -= len(held) - int(kept.sum())
            if kept.any():
                left = array("i", np.array(held)[kept].tobytes()), array("B", np.array(counts)[kept].tobytes())
                self._late[number] = left
            else:
                del self._late[number]
        for number in touched | late:
            if number not in self._late and not self._early_counts(number).any():
                self._terms.pop(self._words.pop(number, ""), None)
        self.lengths.view()[documents] = 1  # not 0: a search under way may divide by it
        self._kept_norms = None

    def _early_counts(self, number: int) -> NDArray[np.uint8]:
        return self._counts[slice(*self._starts[number : number + 2])] if number + 1 < len(self._starts) else NONE

    def pieces(self, term: str, count: int) -> Iterable[tuple[NDArray[np.int32], NDArray[np.uint8]]]:
        """Yield (documents, occurrences) of a term among the first count documents."""
        number = self._number(term)
        if number < 0:
            return
        if number + 1 < len(self._starts):
            start, end = self._starts[number], self._starts[number + 1]
            if end > start:
                yield self._documents[start:end], self._counts[start:end]
        late = self._late.get(number)
        if late is not None:
            # copies, as an array that lends its memory out cannot grow
            documents = np.frombuffer(late[0].tobytes(), dtype=np.int32)
            documents = documents[: np.searchsorted(documents, count)]  # what was appended meanwhile is not seen
            yield documents, np.frombuffer(late[1].tobytes(), dtype=np.uint8)[: len(documents)]

    def holding(self, terms: Sequence[str], count: int) -> NDArray[np.int64]:
        """Return those of the first count documents in which all of some terms occur; none where there are no terms."""
        found: NDArray[np.int64] | None = None
        for term in terms:
            pieces = [documents.astype(np.int64) for documents, _ in self.pieces(term, count)]
            holders = np.concatenate([np.empty(0, dtype=np.int64), *pieces])
            found = holders if found is None else np.intersect1d(found, holders)
        return np.empty(0, dtype=np.int64) if found is None else found

    def holders(self, terms: Sequence[str], documents: Collection[int]) -> list[set[int]]:
        """Return for each term those of some documents in which it occurs."""
        wanted = np.array(sorted(documents), dtype=np.int32)
        count = int(wanted[-1]) + 1 if len(wanted) else 0
        held: list[set[int]] = []
        for term in terms:
            rows: set[int] = set()
            for found, _ in self.pieces(term, count):
                places = np.searchsorted(found, wanted)  # both are in order
                places[places == len(found)] = 0
                rows.update(wanted[found[places] == wanted].tolist() if len(found) else ())
            held.append(rows)
        return held

    def frequencies(self, terms: Sequence[str], count: int, alive: NDArray[np.bool_] | None) -> tuple[int, ...]:
        """Return in how many of the first count documents each term occurs; only those alive, where that is given."""
        return tuple(
            sum(
                len(documents) if alive is None else int(np.count_nonzero(alive[documents]))
                for documents, _ in self.pieces(term, count)
            )
            for term in terms
        )

    def norms(self, stats: CorpusStats, count: int) -> NDArray[np.float32]:
        """Return what the counts of the first count documents are weighed by: see `score`."""
        return self._norms(stats.b, stats.mean_length, count)

    def _norms(self, b: float, mean_length: float, count: int) -> NDArray[np.float32]:
        """Return K1 · (1 − b + b · length / mean) of the first count documents; kept until one of them changes."""
        key = (b, mean_length, count)
        known = self._kept_norms
        if known is None or known[0] != key:
            lengths = self.lengths.view(count).astype(np.float32)
            if self._are_windows:
                lengths = np.minimum(lengths, np.float32(mean_length))
            known = self._kept_norms = (key, lengths * np.float32(K1 * b / mean_length) + np.float32(K1 * (1 - b)))
        return known[1]

    def score(
        self, terms: Sequence[str], stats: CorpusStats, count: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """
        Return BM25 of the first count documents, and the share of the query that each holds: shapes (count,), in 0–1.

        Both over the idf mass of the query. A text that holds every term of it has a share of 1, and often a score near
        1; one that holds none has 0.
        """
        scores, held = np.zeros(count, dtype=np.float32), np.zeros(count, dtype=np.float32)
        mass = stats.mass
        if not mass:
            return scores, held
        norms = self.norms(stats, count)
        for term, weight in zip(terms, stats.idf, strict=True):
            share = np.float32(weight / mass)
            for documents, occurrences in self.pieces(term, count):
                often = occurrences.astype(np.float32)
                scores[documents] += share * often / (often + norms[documents])
                held[documents] += share
        return scores, held
