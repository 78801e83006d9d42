"""
Texts as they are read: what a statement claims, and its words.

Reading a long text takes milliseconds, so what was read lately is kept, and of many more texts the stems, by which most
pairs are told apart: for one owner each, as a cache that owners share would tell one of them, by the time it takes,
what another has said.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import cached_property, lru_cache, partial

from cachetools import FIFOCache

from memoryd.knowledge.claims.statement import Statement, statement_of
from memoryd.knowledge.language.words import Words, words_of

__all__ = ["Reader", "Reading"]

MOST_KEPT = 1024  # texts of one owner; a statement is compared with some twenty others
MOST_STEMS_KEPT = 16_384  # texts of one owner whose stems are kept
BYTES_A_READING = 3000  # of a text of a hundred characters, measured
BYTES_OF_STEMS = 600  # of such a text, with the text itself


class Reading:
    """A text, read as far as it is needed."""

    def __init__(self, text: str, stems: MutableMapping[str, tuple[str, ...]] | None = None) -> None:
        """`stems` keeps those of every text that is read."""
        self.text = text
        self._stems = {} if stems is None else stems

    @cached_property
    def statement(self) -> Statement:
        """What it claims."""
        return statement_of(self.text)

    @cached_property
    def words(self) -> Words:
        """Its words."""
        words = words_of(self.text)
        self._stems[self.text] = tuple(words.stems)
        return words

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """The different stems of its words, in no order."""
        known = self._stems.get(self.text)
        return tuple(self.words.stems) if known is None else known


class Reader:
    """Reads the texts of one owner."""

    def __init__(self) -> None:
        self._stems: FIFOCache[str, tuple[str, ...]] = FIFOCache(MOST_STEMS_KEPT)
        # of this reader alone; an LRU in C, as a text is read for each pair
        self._read = lru_cache(MOST_KEPT)(partial(Reading, stems=self._stems))

    def __len__(self) -> int:
        """How many texts are kept."""
        return self._read.cache_info().currsize

    @property
    def nbytes(self) -> int:
        """Bytes that what is kept occupies, estimated."""
        return len(self) * BYTES_A_READING + len(self._stems) * BYTES_OF_STEMS

    def read(self, text: str) -> Reading:
        """Return a text as it is read; one of the last thousand without reading it again."""
        return self._read(text)

    def forget(self) -> None:
        """Keep nothing of what was read."""
        self._read.cache_clear()
        self._stems.clear()
