"""
What is told in idioms rather than in plain words: that something is over, or that a taste has turned.

"Exported everything out of Evernote and deleted the account", "cats? I've gone soft". The idioms stand in
`lexicon/idioms.toml`. They say nothing of who or what is meant but by the words near them, so they never retire
anything: what stands near one is in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import NamedTuple

from memoryd.knowledge.grammar.names import is_first_name
from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.grammar.values import value_of, words_in
from memoryd.knowledge.grammar.words import DAYS, GRAMMAR, NO_NAMES
from memoryd.knowledge.lexicon.load import stems, table, words
from memoryd.knowledge.lexicon.stems import stem, word_set
from memoryd.knowledge.statement.moods import FOR_NOW, HEDGED, NOT_DONE, OF_PAST

__all__ = ["EMPTY", "LED", "Told", "Turn", "another_in", "told_in"]


class Turn(Enum):
    """What an idiom tells."""

    OVER = "over"
    AGAINST = "against"
    FOR = "for"
    GOT = "got"


@dataclass(frozen=True, slots=True)
class Told:
    """An idiom, and the words near it."""

    turn: Turn
    near: frozenset[str]
    """Stems of the words around it in its clause."""
    things: frozenset[str]
    """Those of them that stand alone: of "my VS Code theme" not the Code."""
    object: frozenset[str]
    """Stems of what it is said of, up to where another thought begins: of "quit the choir for good" the choir."""
    ends_it: bool
    """Whether it tells that a thing is gone or done with: sold, handed in, healed."""


def _one_of(turn: Turn) -> str:
    idioms = table(f"idioms.{turn.value}").strip("\n").split("\n")
    empty = [line for line in idioms if not line.strip() or line.startswith("#") or line.endswith("|")]
    if empty:
        raise ValueError(f"lexicon/idioms.toml, {turn.value}: {empty[0]!r}: one idiom a line, and nothing else")
    return rf"\b(?:{'|'.join(idioms)})\b"


_IDIOMS = {turn: compiled(_one_of(turn)) for turn in Turn}
_STOP = compiled("{clause_stop}")
_OF_HABIT = compiled("{end.abandon}|{end.stop}|{end.tire}|{end.part_with}|{end.cancel}")
"""What is given up so by somebody else says nothing of them: "Grandad gave up sugar"."""
_DEATH = compiled("died|passed away|dumped me|left me")
_TIMES = stems("time.when")
"""What is over of these is a time, and no thing: "no more nights"."""
EMPTY = stems("frames.word.empty")
"""What says nothing of which thing is meant."""
LED = compiled("^{led}+")
_SENTENCE = re.compile(r"(?<=[a-z0-9)\"'][.!?;:])\s+|; ", re.IGNORECASE)
_WORD = re.compile(r"[\w'-]+")
_CLAUSE_ENDS = re.compile(
    r"[,;()]|:(?= )|--| - | (?:but|so|because|since|until|when|while|although|though) ", re.IGNORECASE
)
MOST_TOLD = 24  # of a text
MOST_OF_OBJECT = 60  # characters
_AFTER, _BEFORE = 7, 6  # words of a clause that stand near
_OF_ANOTHER = compiled("{of_another}")
"""A sentence that begins so tells of what somebody else does: of all others it says nothing."""
_NOT_MEANT = (HEDGED, FOR_NOW, OF_PAST)
_LIMITED = compiled(r"\b{told_limited}\b")
_ENDS_IT = compiled(r"{ends_it}\w*")
_OF_ONE = compiled("{of_one}")
""""I sold a Tesla to Bob" is of one among others."""
_OF_THEIRS = re.compile(r" (?:their|his|her|its) ", re.IGNORECASE)
_BAD = compiled(r"\b{bad}\w*")
"""To be rid of this is to come round."""
_HAS_NOT = re.compile(r"ha(?:ve|s) not\b", re.IGNORECASE)
"""Of such an idiom the last word says what is no longer done."""
_BESIDE = word_set("beside besides near alongside unlike outside far alone")
"""What stands after these is not what is spoken of."""
_FOLLOWS = GRAMMAR | DAYS | frozenset(words("frames.word.follows"))
"""A word before one of these stands alone: "the rowing club membership", "gin gives me a headache"."""


def told_in(text: str) -> tuple[Told, ...]:
    """Return the idioms in which a speaker tells of an end or a turn of their own; `text` is plain."""
    found = (idiom for sentence in _SENTENCE.split(text) for idiom in _idioms_of(sentence))
    return tuple(islice(found, MOST_TOLD))


def _idioms_of(sentence: str) -> Iterator[Told]:
    if any(pattern.search(sentence) for pattern in _NOT_MEANT):
        return
    found = [(turn, match) for turn, pattern in _IDIOMS.items() for match in pattern.finditer(sentence)]
    if found:
        yield from _Sentence(sentence, found).idioms()


def another_in(sentence: str) -> re.Match[str] | None:
    """Return how a sentence begins that tells of what somebody else does; its group `who` is that one."""
    lead = LED.match(sentence)
    another = _OF_ANOTHER.match(sentence, lead.end() if lead else 0)
    name = "" if another is None else (another["name"] or "").lower()
    if another is None or not name or is_first_name(name):
        return another
    return another if another["does"] is not None and name not in NO_NAMES else None


class _Word(NamedTuple):
    text: str
    start: int
    end: int


class _Sentence:
    """A sentence in which idioms were found, its words and its clauses."""

    def __init__(self, text: str, found: Sequence[tuple[Turn, re.Match[str]]]) -> None:
        self.text, self._found = text, found
        self._words = [_Word(match[0].lower(), *match.span()) for match in _WORD.finditer(text)]
        self._stems = stem((words_in(word.text) or [""])[0] for word in self._words)
        self._ends = [match.start() for match in _CLAUSE_ENDS.finditer(text)]
        self._starts = {match.start() for _, match in found}
        another = another_in(text)
        self._is_of_another = another is not None
        self._subject = another.span("who") if another else (0, len(text))
        self._first_end = min((end for end in self._ends if end > self._subject[0]), default=len(text))

    def idioms(self) -> Iterator[Told]:
        """Yield its idioms, but for those that are limited to a time or a part, or are not so."""
        for turn, match in self._found:
            low = max((end for end in self._ends if end <= match.start()), default=0)
            high = min((end for end in self._ends if end >= match.end()), default=len(self.text))
            if self._counts(match, self.text[low:high]):
                is_relief = turn is Turn.OVER and bool(_BAD.search(self.text[low:high]))
                near = self._near(match, low, high)
                things = (n for n in near if self._stands_alone(n, high))
                yield Told(
                    Turn.FOR if is_relief else turn,
                    frozenset(self._stems[n] for n in near),
                    frozenset(self._stems[n] for n in things),
                    frozenset() if is_relief else self._object(match, low, high),
                    bool(_ENDS_IT.match(match[0])),
                )

    def _counts(self, match: re.Match[str], clause: str) -> bool:
        if _OF_ONE.match(self.text, match.start()) or _OF_THEIRS.match(self.text, match.end()):
            return False
        is_past = match[0].lower().startswith("used")
        return not NOT_DONE.search(clause) and (is_past or not _LIMITED.search(self.text, match.end()))

    def _near(self, match: re.Match[str], low: int, high: int) -> list[int]:
        """Return which words stand near an idiom."""
        if self._is_by_another(match) and _OF_HABIT.fullmatch(match[0]) and self._has_object(match, high):
            return []
        words = list(enumerate(self._words))
        before = [n for n, word in words if low <= word.start and word.end <= match.start()][-_BEFORE:]
        inside = [
            n
            for n, word in words
            if match.start() < word.start and word.end <= match.end() - (not _HAS_NOT.match(match[0]))
        ]
        after = [n for n, word in words if match.end() <= word.start < high][:_AFTER]
        begin, end = self._within(match)
        around = (n for n in (*before, *inside, *after) if begin <= self._words[n].start < end)
        return [n for n in around if not any(word.text in _BESIDE for word in self._words[max(0, n - 2) : n])]

    def _has_object(self, match: re.Match[str], high: int) -> bool:
        """Whether something is said to be given up: "Grandad gave up sugar" is of sugar, and not of Grandad."""
        return bool(value_of(self.text[slice(*self._behind(match, high))]) - EMPTY)

    def _behind(self, match: re.Match[str], high: int) -> tuple[int, int]:
        """Return where what stands behind an idiom begins, and where another thought begins."""
        stop = _STOP.search(self.text, match.end(), high)
        return match.end(), stop.start() if stop else high

    def _object(self, match: re.Match[str], low: int, high: int) -> frozenset[str]:
        """Return what stands behind an idiom, or where that is nothing, before it or in it."""
        if self._is_by_another(match):
            who = value_of(self.text[slice(*self._subject)]) - EMPTY
            return who if _DEATH.fullmatch(match[0]) else frozenset()
        for first, last in (self._behind(match, high), (low, match.start()), match.span()):
            words = value_of(self.text[first:last]) - EMPTY
            if words and last - first <= MOST_OF_OBJECT:
                return words if words - _TIMES else frozenset()
        return frozenset()

    def _within(self, match: re.Match[str]) -> tuple[int, int]:
        """Return where the words stand that an idiom is of; of what somebody else does only who that is."""
        return self._subject if self._is_by_another(match) else (0, len(self.text))

    def _is_by_another(self, match: re.Match[str]) -> bool:
        """Whether an idiom stands where the sentence tells of what somebody else does."""
        return self._is_of_another and match.start() < self._first_end

    def _stands_alone(self, n: int, clause_end: int) -> bool:
        """Whether a word is no part of a longer name of a thing."""
        if n + 1 == len(self._words):
            return True
        word, following = self._words[n], self._words[n + 1]
        if self.text[word.end : following.start] != " " or word.end <= clause_end <= following.start:
            return True
        return following.text in _FOLLOWS or following.text.endswith("ly") or following.start in self._starts
