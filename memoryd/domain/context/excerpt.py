"""The passages of a long text that answer: each begins a little before words of the prompt that stand together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from memoryd.index.analysis import analyse_query
from memoryd.model.conversation import CUT

__all__ = ["excerpt", "words_of_prompt"]

BEFORE = 80  # characters that are shown before the place
NEAR = 400  # characters within which words stand together
PASSAGE = 240  # characters; a budget has room for a passage in each so many
MOST_PASSAGES = 4
MARKS = MOST_PASSAGES * (len(CUT) + 2)  # characters between and around them
SEEN = 0.25  # of its weight a word keeps that an earlier passage shows
MOST_WORDS = 24  # of a prompt, that are looked for
MOST_PLACES = 200  # of one word
SHORT = 4  # letters of a stem below which a word must be just that: "a" begins too many


def words_of_prompt(sentences: Sequence[str]) -> re.Pattern[str] | None:
    """Return what finds the words of a prompt in a text, by their stems; None where it has none."""
    stems = list(dict.fromkeys(stem for sentence in sentences for stem in analyse_query(sentence)))[:MOST_WORDS]
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
    Return a text of at most `size` characters as it is, of a longer one the passages that answer, with "…" around them.

    A word of the prompt counts the more the fewer places it has. The first passage is where most of that stands within
    NEAR characters, and is twice as long as others; each further one is where most stands that was not shown yet. What
    they leave of `size` goes to the text that follows them.
    """
    if len(text) <= size:
        return text
    passages = _passages(text, words, max(1, size - MARKS))
    shown = [text[start:end].strip() for start, end in passages]
    before, after = CUT * (passages[0][0] > 0), CUT * (passages[-1][1] < len(text))
    return f"{before}{f' {CUT} '.join(shown)}{after}"


def _passages(text: str, words: re.Pattern[str] | None, size: int) -> list[tuple[int, int]]:
    """Return where passages begin and end, in order, with text between any two: at least one."""
    count = max(1, min(MOST_PASSAGES, size // PASSAGE))
    length = size // (count + 1)
    places, weights = _found(text, words)
    chosen: list[tuple[int, int]] = []
    while places and len(chosen) < count:
        start = _word_before(text, _densest(places, weights) - BEFORE)
        end = min(len(text), start + (length if chosen else 2 * length))
        for word in {word for at, word in places if start <= at < end}:
            weights[word] *= SEEN
        places = [(at, word) for at, word in places if not start <= at < end]
        chosen.append((start, end))
    return _grown(chosen or [(0, 0)], len(text), size)


def _found(text: str, words: re.Pattern[str] | None) -> tuple[list[tuple[int, int]], dict[int, float]]:
    """Return where which words stand, in order, and what each word weighs."""
    places: dict[int, list[int]] = {}
    for match in words.finditer(text) if words is not None else ():
        starts = places.setdefault(match.lastindex or 0, [])
        if len(starts) < MOST_PLACES:
            starts.append(match.start())
    matches = sorted((at, word) for word, held in places.items() for at in held)
    return matches, {word: 1 / len(held) for word, held in places.items()}


def _densest(places: Sequence[tuple[int, int]], weights: Mapping[int, float]) -> int:
    """Return the first of the places after which most stands within NEAR characters."""
    best, first = 0.0, places[0][0]
    last, total = 0, 0.0
    for at, word in places:
        while last < len(places) and places[last][0] < at + NEAR:
            total += weights[places[last][1]]
            last += 1
        if total > best + 1e-9:
            best, first = total, at
        total -= weights[word]
    return first


def _grown(chosen: Sequence[tuple[int, int]], length: int, size: int) -> list[tuple[int, int]]:
    """Return passages with as much of the text after them, then before them, as makes them `size` together."""
    passages = _joined(chosen)
    left = size - sum(end - start for start, end in passages)
    for n, (start, end) in enumerate(passages):
        until = passages[n + 1][0] if n + 1 < len(passages) else length
        more = min(left, until - end)
        passages[n], left = (start, end + more), left - more
    passages = _joined(passages)
    for n in reversed(range(len(passages))):
        start, end = passages[n]
        more = min(left, start - (passages[n - 1][1] if n else 0))
        passages[n], left = (start - more, end), left - more
    return _joined(passages)


def _joined(passages: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return passages in order; those that meet are one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(passages):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def _word_before(text: str, at: int) -> int:
    """Return where a word begins near a place, so that none is cut; 0 near the beginning."""
    if at <= 0:
        return 0
    space = text.find(" ", at, at + BEFORE)
    return at if space < 0 else space + 1
