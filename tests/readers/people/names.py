"""
Which words of the voices' texts name people: by voice, from names.tsv, written by hand from what each voice says.

A line is the voice's id, the words that are a person's or a part of it, those of which some are and some are not, and
of how many later statements and turns of talk the names were written down: what was added since is not read.
hard.txt has sentences with names that are once a person's and once something else's, and with plain names and other
things in the same places; in [brackets] is each word of a person's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memoryd.embedding.readers.texts import WORD
from tests.readers.voices import Voice

__all__ = ["Named", "common_words", "hard_names", "named_of"]

TABLE, HARD = Path(__file__).parent / "names.tsv", Path(__file__).parent / "hard.txt"
_MARKED = re.compile(r"\[([^\]]+)\]")
UNSURE_VOICES = 12  # a word that so many voices write in lower case is no name where it stands so


@dataclass(frozen=True, slots=True)
class Named:
    """A text, and of the places of words that are known: whether a word names a person."""

    text: str
    words: dict[tuple[int, int], bool]


@dataclass(frozen=True, slots=True)
class _Row:
    people: frozenset[str]
    both: frozenset[str]
    later_count: int
    turn_count: int


@cache
def _table() -> dict[str, _Row]:
    rows = (line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines())
    return {
        name: _Row(_parts(people), _parts(both), int(later_count), int(turn_count))
        for name, people, both, later_count, turn_count in rows
    }


def _parts(words: str) -> frozenset[str]:
    return frozenset(part for word in words.split() for part in WORD.findall(word))


def _texts(voice: Voice) -> Iterator[str]:
    row = _table()[voice.id]
    yield from (one.text for one in voice.store)
    yield from (one.text for one in voice.questions)
    yield from (one.text for one in voice.later[: row.later_count])
    yield from (line for turn in voice.dialogue[: row.turn_count] for line in turn.text.splitlines() if line.strip())


def named_of(some: Iterable[Voice], common: frozenset[str]) -> Iterator[Named]:
    """Yield the texts of voices; of a word in `common` nobody can tell what it is where it stands in lower case."""
    for voice in some:
        row = _table()[voice.id]
        for text in _texts(voice):
            words = {}
            for match in WORD.finditer(text):
                lower = match.group().lower()
                is_doubtful = lower in row.both or (lower in row.people and lower in common and match.group() == lower)
                if not is_doubtful:
                    words[match.span()] = lower in row.people
            yield Named(text, words)


def hard_names() -> Iterator[Named]:
    """Yield the sentences of hard.txt."""
    for line in HARD.read_text(encoding="utf-8").splitlines():
        text, marked, end = "", set[int](), 0
        for match in _MARKED.finditer(line):
            text += line[end : match.start()]
            marked |= set(range(len(text), len(text) + len(match[1])))
            text, end = text + match[1], match.end()
        text += line[end:]
        yield Named(text, {word.span(): word.start() in marked for word in WORD.finditer(text)})


def common_words(some: Iterable[Voice]) -> frozenset[str]:
    """Return the words that many voices write in lower case."""
    counts: dict[str, int] = {}
    for voice in some:
        for word in {match.group() for text in _texts(voice) for match in WORD.finditer(text)}:
            if word == word.lower():
                counts[word] = counts.get(word, 0) + 1
    return frozenset(word for word, count in counts.items() if count >= UNSURE_VOICES)
