"""
The table of what people say of themselves that is worth knowing for long.

A row is a category, a kind, a confidence and a pattern, matched from the beginning of a clause whose contractions are
written out, in the notation of `grammar.pattern`; `{said}` is what is said, which must mean something by itself: "I
love that" says nothing. The first row that matches decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources

from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.lexicon.load import split, table
from memoryd.model.memory import Kind

__all__ = ["CATEGORIES", "CLAIMED", "Row", "rows_of"]

CATEGORIES = ("personal", "preference", "relationship", "work", "habit", "goal", "decision", "date", "other")
SURE, LIKELY = 0.9, 0.8
"""Confidence in what is read: of a form that hardly ever means anything else, and of one that mostly does not."""

_BEGINS = re.compile(r"(?:\(\?:(?:(?:i|we|my|our)(?: am| are| will be)?\|?)+\)|(?:i|we|my|our)) ")


class Row:
    """What a clause of one form says."""

    __slots__ = ("category", "confidence", "first", "kind", "pattern")

    def __init__(self, category: str, kind: Kind, confidence: float, pattern: str) -> None:
        """Read the pattern with its vocabularies written out."""
        self.category, self.kind, self.confidence = category, kind, confidence
        self.pattern = compiled(pattern)
        begins = _BEGINS.match(pattern)
        self.first = frozenset(re.findall(r"\b(?:i|we|my|our)\b", begins[0])) if begins else frozenset()


def _rows() -> tuple[Row, ...]:
    text = resources.files(__package__).joinpath("statements.txt").read_text(encoding="utf-8")
    lines = (line.split(" ", 3) for line in text.splitlines() if line and not line.startswith("#"))
    return tuple(Row(category, Kind(kind), float(confidence), pattern) for category, kind, confidence, pattern in lines)


_ROWS = _rows()
_ROWS_OF = {
    word: tuple(row for row in _ROWS if not row.first or word in row.first) for word in ("", "i", "we", "my", "our")
}


def rows_of(word: str) -> tuple[Row, ...]:
    """Return the rows that a clause may match whose first word this is, in lower case, in their order."""
    return _ROWS_OF.get(word, _ROWS_OF[""])


CLAIMED: Mapping[str, str] = {
    attribute: category for category, some in table("categories").items() for attribute in split(some)
}
"""Attributes that the reader of statements reads where no row does, and their categories."""
