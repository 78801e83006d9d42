"""Lookup of documents: by text, by key, and by claim."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoryd.index.lookup import Lookup
from memoryd.model.memory import Memory
from memoryd.model.validation import text_digest

__all__ = ["Listings"]

K = TypeVar("K", bound=Hashable)
NO_DIGESTS: NDArray[np.uint64] = np.zeros((0, 2), dtype=np.uint64)
BYTES_A_TEXT = 260  # a digest, a tuple and a number, and their places
BYTES_A_KEY = 280


class Listings:
    """Documents by text digest, by key, and by claim, dead ones too; each list in the order of the documents."""

    def __init__(self, digests: NDArray[np.uint64] = NO_DIGESTS) -> None:
        """Take the digests of the documents that are loaded: shape (n, 2); their keys and claims come one by one."""
        self._texts = Lookup(digests[:, 0].view(np.int64))
        self._rests = digests[:, 1].copy()
        """Of the documents that were loaded: the second half of the digest."""
        self._late_texts: dict[bytes, tuple[int, ...]] = {}
        self.keys: dict[str, tuple[int, ...]] = {}
        """Those of messages, which are their ids, are not listed."""
        self.claims: dict[tuple[str, str], list[int]] = {}
        """By attribute and the entity that it is said of ("": of no one)."""

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated."""
        late = len(self._late_texts) * BYTES_A_TEXT + len(self.keys) * BYTES_A_KEY
        return self._texts.nbytes + self._rests.nbytes + late

    def add(self, document: int, memory: Memory) -> None:
        """List the next document."""
        digest = text_digest(memory.content)
        self._late_texts[digest] = (*self._late_texts.get(digest, ()), document)
        if memory.key != memory.id:
            self.add_key(document, memory.key)
        self.add_claims(document, memory)

    def add_key(self, document: int, key: str) -> None:
        """List a document under its key, if it has one."""
        if key:
            self.keys[key] = (*self.keys.get(key, ()), document)

    def add_claims(self, document: int, memory: Memory) -> None:
        """List a document under what it claims."""
        for claim in _claims_of(memory):
            self.claims.setdefault(claim, []).append(document)

    def of_text(self, digest: bytes) -> tuple[int, ...]:
        """Return the documents whose text has a digest."""
        first, rest = _halves(digest)
        loaded = (document for document in self._texts.of(first) if self._rests[document] == rest)
        return (*loaded, *self._late_texts.get(digest, ()))

    def remove(self, document: int, memory: Memory) -> None:
        """Take a document out of every list."""
        digest = text_digest(memory.content)
        if document < len(self._rests):
            self._texts.remove(_halves(digest)[0], document)
            self._rests[document] = 0
        else:
            _drop(self._late_texts, digest, document)
        _drop(self.keys, memory.key, document)
        for claim in _claims_of(memory):
            _drop(self.claims, claim, document)


def _halves(digest: bytes) -> tuple[int, int]:
    """Return a digest as two numbers, the first of them signed."""
    return int.from_bytes(digest[:8], "little", signed=True), int.from_bytes(digest[8:], "little")


def _claims_of(memory: Memory) -> Iterator[tuple[str, str]]:
    entities = {mention.entity_id for mention in memory.mentions if mention.about} or {""}
    return ((claim, entity_id) for claim in memory.claims for entity_id in entities)


def _drop(lists: dict[K, Any], key: K, gone: int) -> None:
    """Take a document out of the list of a key, and the key with the last one."""
    known = lists.get(key, ())
    if isinstance(known, list):  # in order, and long where many memories claim something
        at = bisect_left(known, gone)
        if at < len(known) and known[at] == gone:
            del known[at]
        left = known
    else:
        left = type(known)(row for row in known if row != gone)
    if left:
        lists[key] = left
    else:
        lists.pop(key, None)
