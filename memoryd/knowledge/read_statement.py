"""
Texts as they are read: what a statement claims, and its words.

Reading a long text takes milliseconds, so what was read lately is kept, and of many more texts the stems, by which most
pairs are told apart: for one owner each, as a cache that owners share would tell one of them, by the time it takes,
what another has said.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from functools import cached_property, lru_cache, partial

from cachetools import FIFOCache

from memoryd.knowledge.grammar.words import Words, words_of
from memoryd.knowledge.statement.reader import Statement, statement_of

__all__ = ["Reader", "Reading"]

MOST_KEPT = 1024  # texts of one owner; a statement is compared with some twenty others
BYTES_A_READING, BYTES_A_NAME, BYTES_A_WORD = 900, 330, 110
"""Measured: 3,000 of a text of a hundred characters, 9,500 of one of 24 names."""
MOST_BYTES_OF_STEMS = 10 << 20  # of the texts of one owner


def _bytes_of(stems: Sequence[str]) -> int:
    """Return about how many bytes the stems of a text occupy, with the text itself; rather too many."""
    return 200 + 70 * len(stems) + 2 * sum(map(len, stems))


class Reading:
    """A text, read as far as it is needed."""

    def __init__(
        self,
        text: str,
        stems: MutableMapping[str, tuple[str, ...]] | None = None,
        when_read: Callable[[Words], None] = lambda _: None,
    ) -> None:
        """`stems` keeps those of every text that is read; `when_read` is told its words once."""
        self.text = text
        self._stems = {} if stems is None else stems
        self._when_read = when_read

    @cached_property
    def statement(self) -> Statement:
        """What it claims."""
        return statement_of(self.text)

    @cached_property
    def words(self) -> Words:
        """Its words."""
        words = words_of(self.text)
        self._stems[self.text] = tuple(words.stems)
        self._when_read(words)
        return words

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """The different stems of its words, in no order."""
        known = self._stems.get(self.text)
        return tuple(self.words.stems) if known is None else known


class _Maker:
    """
    Makes the readings of one owner, and counts their bytes.

    It does not know the cache of readings, so that none of this is a circle: an index that is evicted is gone at once.
    """

    def __init__(self) -> None:
        self.stems: FIFOCache[str, tuple[str, ...]] = FIFOCache(MOST_BYTES_OF_STEMS, getsizeof=_bytes_of)
        self.nbytes = 0  # of the readings, without their stems
        self._number = 0
        self._sizes: dict[int, int] = {}
        """By number: bytes of the readings that were made last, as many as are kept."""

    def make(self, text: str) -> Reading:
        self._number += 1
        self.nbytes -= self._sizes.pop(self._number - MOST_KEPT, 0)
        self._sizes[self._number] = 0
        self._grow(self._number, BYTES_A_READING)
        return Reading(text, self.stems, partial(self._take, self._number))

    def _take(self, number: int, words: Words) -> None:
        """Count the words of a reading."""
        self._grow(number, len(words.names) * BYTES_A_NAME + len(words.content) * BYTES_A_WORD)

    def _grow(self, number: int, size: int) -> None:
        if number in self._sizes:
            self._sizes[number] += size
            self.nbytes += size

    def forget(self) -> None:
        self._sizes.clear()
        self.nbytes = 0
        self.stems.clear()


class Reader:
    """Reads the texts of one owner."""

    def __init__(self) -> None:
        self._maker = _Maker()
        # of this reader alone; an LRU in C, as a text is read for each pair
        self._read = lru_cache(MOST_KEPT)(self._maker.make)

    def __len__(self) -> int:
        """How many texts are kept."""
        return self._read.cache_info().currsize

    @property
    def nbytes(self) -> int:
        """Bytes that what is kept occupies, estimated."""
        return self._maker.nbytes + int(self._maker.stems.currsize)

    def read(self, text: str) -> Reading:
        """Return a text as it is read; one of the last thousand without reading it again."""
        return self._read(text)

    def forget(self) -> None:
        """Keep nothing of what was read."""
        self._read.cache_clear()
        self._maker.forget()
