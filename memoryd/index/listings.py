"""Lookup of documents: by text, by key, and by claim."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator
from typing import Any, TypeVar

from memoryd.model.memory import Memory
from memoryd.model.validation import text_digest

__all__ = ["Listings"]

K = TypeVar("K", bound=Hashable)


class Listings:
    """Documents by text digest, by key, and by claim, dead ones too; each list in the order of the documents."""

    def __init__(self) -> None:
        self.texts: dict[bytes, tuple[int, ...]] = {}
        self.keys: dict[str, tuple[int, ...]] = {}
        self.claims: dict[tuple[str, str], list[int]] = {}
        """By attribute and the entity of which it is said ("": of nobody)."""

    def add(self, document: int, memory: Memory) -> None:
        """List a document."""
        digest = text_digest(memory.content)
        self.texts[digest] = (*self.texts.get(digest, ()), document)
        if memory.key:
            self.keys[memory.key] = (*self.keys.get(memory.key, ()), document)
        for claim in _claims_of(memory):
            self.claims.setdefault(claim, []).append(document)

    def remove(self, document: int, memory: Memory) -> None:
        """Take a document out of every list."""
        _drop(self.texts, text_digest(memory.content), document)
        _drop(self.keys, memory.key, document)
        for claim in _claims_of(memory):
            _drop(self.claims, claim, document)


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
