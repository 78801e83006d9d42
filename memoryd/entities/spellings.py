"""Names as they may be typed: "conceicao" for Conceição, "osullivan" for Dr O'Sullivan."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from heapq import nlargest

from memoryd.entities.known_entity import drop_within
from memoryd.knowledge.grammar.names import TITLES, spelling, straight

__all__ = ["Spellings"]

_AS_TYPED = re.compile(r"[a-z0-9 ]*")
MOST = 32  # names of one spelling that are looked at: a sandbox may store thousands


class Spellings:
    """Names by how they may be typed, with their title and without; of one that is typed as written nothing is kept."""

    def __init__(self) -> None:
        """Know no names yet."""
        self._names: dict[tuple[str, bool], Counter[tuple[int, str]]] = {}
        """What is typed, and whether with the title → how much the trust weighs that gave a name, and the name."""

    def __len__(self) -> int:
        """How many ways to type a name are kept."""
        return len(self._names)

    def weights(self) -> dict[str, int]:
        """Return the ways to type a name, with the weight of the highest trust that gave one."""
        return {typed: max(weight for weight, _ in names) for (typed, _), names in self._names.items()}

    def add(self, name: str, weight: int) -> None:
        """Take in a name, and how much the trust weighs that gave it; once more if it is there."""
        for way in _ways(name):
            self._names.setdefault(way, Counter())[weight, straight(name)] += 1

    def drop(self, name: str, weight: int) -> None:
        """Forget a name that was added, once."""
        for way in _ways(name):
            drop_within(self._names, way, (weight, straight(name)))

    def of(self, name: str, *, titles: bool) -> set[str]:
        """Return names that may be typed so, with their title or without; at most MOST, of the highest trust."""
        typed = spelling(name)
        return {typed, *(one for _, one in nlargest(MOST, self._names.get((typed, titles), ())))} - {""}


def _ways(name: str) -> Iterator[tuple[str, bool]]:
    """Yield the ways to type a name but the one in which it is written."""
    written = straight(name)
    if _AS_TYPED.fullmatch(written) and TITLES.isdisjoint(written.split()):
        return  # most names
    whole, bare = spelling(name), spelling(name, titles=False)
    if whole not in {written, ""}:
        yield whole, True
    if bare not in {whole, written, ""}:
        yield bare, False
