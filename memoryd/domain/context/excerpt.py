"""The part of a long text that answers: it begins a little before the words of the prompt that stand there together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memoryd.index.analysis import analyse_query
from memoryd.model.conversation import CUT

__all__ = ["excerpt", "words_of_prompt"]

BEFORE = 80  # characters that are shown before the place
NEAR = 400  # characters within which words stand together
MOST_WORDS = 24  # of a prompt, that are looked for
MOST_PLACES = 200  # of one word
SHORT = 4  # letters of a stem below which a word must be just that: "a" begins too many


def words_of_prompt(sentences: Sequence[str]) -> re.Pattern[str] | None:
    """Return what finds the words of a prompt in a text, by their stems; None where it has none."""
    stems = list(dict.fromkeys(stem for one in sentences for stem in analyse_query(one)))[:MOST_WORDS]
    if not stems:
        return None
    return re.compile("|".join(f"({_begins(stem)})" for stem in stems), re.IGNORECASE)


def _begins(stem: str) -> str:
    """Return what finds words with a stem: those that begin with it; of a very short one that word and its plural."""
    if not stem.isascii():
        return re.escape(stem)
    if len(stem) < SHORT:
        return rf"\b{re.escape(stem)}(?:['’]?s|es)?\b"
    return rf"\b{re.escape(stem.removesuffix('i'))}"  # "berri" is the stem of "berry" and "berries"


def excerpt(text: str, words: re.Pattern[str] | None, size: int) -> str:
    """
    Return a text of at most `size` characters as it is, of a longer one what begins before the place that answers.

    What begins there has at least about `size` characters: near the end it begins earlier.
    A word counts the more the fewer places it has; the place is where most of that stands within NEAR characters.
    """
    if len(text) <= size or words is None:
        return text
    places: dict[int, list[int]] = {}
    for match in words.finditer(text):
        held = places.setdefault(match.lastindex or 0, [])
        if len(held) < MOST_PLACES:
            held.append(match.start())
    found = sorted((at, 1 / len(held)) for held in places.values() for at in held)
    best, first = 0.0, 0
    last, total = 0, 0.0
    for at, weight in found:
        while last < len(found) and found[last][0] < at + NEAR:
            total += found[last][1]
            last += 1
        if total > best + 1e-9:
            best, first = total, at
        total -= weight
    start = _word_before(text, min(first - BEFORE, len(text) - size + len(CUT)))
    return text if start <= 0 else f"{CUT}{text[start:]}"


def _word_before(text: str, at: int) -> int:
    """Return where a word begins near a place, so that none is cut; 0 near the beginning."""
    if at <= 0:
        return 0
    space = text.find(" ", at, at + BEFORE)
    return at if space < 0 else space + 1
