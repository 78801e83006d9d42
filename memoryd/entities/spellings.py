"""Names as they may be typed: "conceicao" for Conceição, "osullivan" for Dr O'Sullivan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import nlargest

from memoryd.entities.known_entity import drop_within
from memoryd.knowledge.language.names import spelling, straight

__all__ = ["Spellings"]

MOST = 32  # names of one spelling that are looked at: a sandbox may store thousands


class Spellings:
    """Names by how they may be typed; of a name that is typed as it is written nothing is kept."""

    def __init__(self) -> None:
        """Know no names yet."""
        self._names: dict[str, Counter[tuple[int, str]]] = {}

    def __len__(self) -> int:
        """How many ways to type a name are kept."""
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        """Yield the ways to type a name."""
        return iter(self._names)

    def add(self, name: str, weight: int) -> None:
        """Take in a name, and how much the trust weighs that gave it; once more if it is there."""
        for typed in _ways(name):
            self._names.setdefault(typed, Counter())[weight, straight(name)] += 1

    def drop(self, name: str, weight: int) -> None:
        """Forget a name that was added, once."""
        for typed in _ways(name):
            drop_within(self._names, typed, (weight, straight(name)))

    def of(self, name: str) -> set[str]:
        """Return names that may be typed so, at most MOST, of the highest trust; a title that is typed is theirs."""
        typed = spelling(name)
        return {typed, *(one for _, one in nlargest(MOST, self._names.get(typed, ())))} - {""}


def _ways(name: str) -> Iterator[str]:
    """Yield the ways to type a name but the one in which it is written: with its title and without."""
    ways = {spelling(name), spelling(name, titles=False)}
    yield from ways - {straight(name), ""}
