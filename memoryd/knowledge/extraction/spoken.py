"""How people write when they chat, in the words of the table: "im", "me and my wife", "self employed"."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.grammar.words import plain
from memoryd.knowledge.lexicon.load import table

__all__ = ["written_out"]

_INFORMAL = tuple((compiled(rf"(?<!\w)(?:{short})(?!\B\w)"), long) for short, long in table("spoken.as_spoken"))
_ANY = re.compile("|".join(pattern.pattern for pattern, _ in _INFORMAL), re.IGNORECASE)
_RELATIVE = re.compile(r", who (?:is|has|was|works|lives|loves|comes) [^,]{2,60}, (?=\w)", re.IGNORECASE)


def written_out(text: str) -> str:
    """Return a text on one line with its contractions written out, also those without an apostrophe."""
    written = _RELATIVE.sub(" ", plain(text))
    if not _ANY.search(written):
        return written
    for pattern, long in _INFORMAL:
        written = pattern.sub(long, written)
    return written
