"""
Texts as they are read: what a statement claims, and its words.

Reading a long text takes milliseconds, so what was read lately is kept: for one owner each, as a cache that owners
share would tell one of them, by the time it takes, what another has said.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

from memoryd.knowledge.claims.statement import Statement, statement_of
from memoryd.knowledge.language.words import Words, words_of

__all__ = ["BYTES_A_READING", "Reader", "Reading"]

MOST_KEPT = 1024  # texts of one owner; a statement is compared with some twenty others
BYTES_A_READING = 3000  # of a text of a hundred characters, measured


class Reading:
    """A text, read as far as it is needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def statement(self) -> Statement:
        """What it claims."""
        return statement_of(self.text)

    @cached_property
    def words(self) -> Words:
        """Its words."""
        return words_of(self.text)


class Reader:
    """Reads the texts of one owner."""

    def __init__(self) -> None:
        self._read = lru_cache(MOST_KEPT)(Reading)  # of this reader alone; an LRU in C, as a text is read for each pair

    def __len__(self) -> int:
        """How many texts are kept."""
        return self._read.cache_info().currsize

    def read(self, text: str) -> Reading:
        """Return a text as it is read; one of the last thousand without reading it again."""
        return self._read(text)

    def forget(self) -> None:
        """Keep nothing of what was read."""
        self._read.cache_clear()
