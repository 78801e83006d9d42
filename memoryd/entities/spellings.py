"""Names as they may be typed: "conceicao" for Conceição, "osullivan" for Dr O'Sullivan."""

from __future__ import annotations

from collections import Counter

from memoryd.entities.known_entity import drop_within
from memoryd.knowledge.language.names import spelling

__all__ = ["Spellings"]


class Spellings:
    """Some folded names by their spelling; of most names that is the name itself, and nothing is kept."""

    def __init__(self) -> None:
        """Know no names yet."""
        self._names: dict[str, Counter[str]] = {}

    def add(self, folded: str) -> None:
        """Take in a name, once more if it is there."""
        typed = spelling(folded)
        if typed != folded:
            self._names.setdefault(typed, Counter())[folded] += 1

    def drop(self, folded: str) -> None:
        """Forget a name that was added, once."""
        typed = spelling(folded)
        if typed != folded:
            drop_within(self._names, typed, folded)

    def of(self, name: str) -> set[str]:
        """Return the folded names that are spelt as a name is, and what it would be itself."""
        typed = spelling(name)
        return {typed, *self._names.get(typed, ())} - {""}
