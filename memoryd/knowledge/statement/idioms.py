"""
What is told in idioms rather than in plain words: that something is over, or that a taste has turned.

"Exported everything out of Evernote and deleted the account", "cats? I've gone soft". The idioms stand in `idioms.txt`.
They say nothing of who or what is meant but by the words near them, so they never retire anything: what stands near one
is in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import resources
from itertools import islice
from typing import NamedTuple

from memoryd.knowledge.grammar.names import is_first_name
from memoryd.knowledge.grammar.relations import RELATION_PATTERN
from memoryd.knowledge.grammar.values import words_in
from memoryd.knowledge.grammar.words import DAYS, GRAMMAR, NO_NAMES
from memoryd.knowledge.lexicon.stems import stem, word_set
from memoryd.knowledge.statement.giving_up import FOR_NOW, LED, NOT_DONE
from memoryd.knowledge.statement.moods import HEDGED

__all__ = ["OF_PAST", "Idiom", "Turn", "another_in", "idioms_in"]


class Turn(Enum):
    """What an idiom tells."""

    OVER = "over"
    AGAINST = "against"
    FOR = "for"
    GOT = "got"


@dataclass(frozen=True, slots=True)
class Idiom:
    """An idiom, and the words near it."""

    turn: Turn
    near: frozenset[str]
    """Stems of the words around it in its clause."""
    things: frozenset[str]
    """Those of them that stand alone: of "my VS Code theme" not the Code."""
    ends_it: bool = False
    """Whether it tells that a thing is gone or done with: sold, handed in, healed."""


def _read() -> Iterator[tuple[Turn, re.Pattern[str]]]:
    text = resources.files(__package__).joinpath("idioms.txt").read_text(encoding="utf-8")
    parts: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            idioms = parts.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            idioms.append(line)
    for name, listed in parts.items():
        yield Turn(name), re.compile(rf"\b(?:{'|'.join(listed)})\b", re.IGNORECASE)


_IDIOMS = dict(_read())
_SENTENCE = re.compile(r"(?<=[a-z0-9)\"'][.!?;:])\s+|; ", re.IGNORECASE)
_WORD = re.compile(r"[\w'-]+")
_CLAUSE_ENDS = re.compile(
    r"[,;()]|:(?= )|--| - | (?:but|so|because|since|until|when|while|although|though) ", re.IGNORECASE
)
MOST_IDIOMS = 24  # of a text
_AFTER, _BEFORE = 7, 6  # words of a clause that stand near
OF_PAST = re.compile(
    r"\b(?:as a (?:child|kid|boy|girl|teen\w*|student)|when i was|years ago|decades ago|back (?:in|then)|in my (?:youth"
    r"|childhood|twenties|teens)|before (?:coming|moving|that|i)|at first|in (?:19|20)\d\d)\b",
    re.IGNORECASE,
)
"""What tells of long ago."""
_DOES = (
    r"(?:has |have |had |just |finally )*(?:left|moved|quit|stopped|gave|given|sold|switched|broke|got|lost|kicked"
    r"|dropped|ditched|cancelled|resigned|retired|traded|swapped|hates?|dislikes?|loves?)\b"
)
_OF_ANOTHER = re.compile(
    r"(?P<who>(?:my|our|his|her|their|the|an?|one of \w+) (?:[\w-]+ ){0,2}?"
    rf"(?:{RELATION_PATTERN}|neighbou?rs?|colleagues?|coach|conductor|company|firm|clients?|pupils?|students?|kids?"
    r"|mates?|classmates?|housemates?|people|guys?|couple)s?\b"
    r"|(?:he|she|they|you)\b|(?P<name>(?-i:[A-Z])[\w-]+)(?: and (?-i:[A-Z])[\w-]+)?)(?:'s)?"
    r" (?!(?:and i|or|(?:says?|said|thinks?) (?:that )?i|(?:told|made|got|talked|convinced|took|put|moved|signed"
    r"|switched) me)\b)"
    rf"(?:(?P<does>{_DOES})|\w+)",
    re.IGNORECASE,
)
"""A sentence that begins so tells of what somebody else does: of all others it says nothing."""
_NOT_MEANT = (HEDGED, FOR_NOW, OF_PAST)
_LIMITED = re.compile(
    r"\b(?:when(?:ever)?|if|unless|except|at night|at the (?:festival|party|concert|show|game|vet)"
    r"|on (?:week(?:days?|ends?)|\w+days?)|in (?:the )?(?:winter|summer"
    r"|spring|autumn|fall|mornings?|evenings?|afternoons?)|for (?:my|our|his|her) \w+)\b",
    re.IGNORECASE,
)
_ENDS_IT = re.compile(
    r"(?:replac|sold|hand(?:ed)? in|finish|complet|submit|heal|recover|end|cancel|terminat|g[oe]t\w* rid|total|clos"
    r"|gave (?:\w+ ){0,3}(?:up|away|back)|retired|scrapped|traded|swapped)\w*",
    re.IGNORECASE,
)
_OF_ONE = re.compile(
    r"(?:sold|quit|cancel\w*|dropped|left|donated|returned|closed|finished|completed) (?:an?|some|one of|two|three"
    r"|\d+) ",
    re.IGNORECASE,
)
""""I sold a Tesla to Bob" is of one among others."""
_OF_THEIRS = re.compile(r" (?:their|his|her|its) ", re.IGNORECASE)
_BAD = re.compile(
    r"\b(?:hat|dislik|distrust|avoid|disagree|detest|despis|mind|loath|fear|worr|afraid|scared|hurt)\w*",
    re.IGNORECASE,
)
"""To be rid of this is to come round."""
_HAS_NOT = re.compile(r"ha(?:ve|s) not\b", re.IGNORECASE)
"""Of such an idiom the last word says what is no longer done."""
_BESIDE = word_set("beside besides near alongside unlike outside far alone")
"""What stands after these is not what is spoken of."""
_FOLLOWS = (
    GRAMMAR
    | DAYS
    | word_set("""
    another account version subscription membership habit phase course class classes lesson lessons contract app
    club role post position diet plan job team group project department practice band choir gives makes bores got
    gets goes went comes came took takes now anymore again instead just already finally altogether not never no has
    have had is are was were do does did can days stuff thing things last this next years months weeks ages
""")
)
"""A word before one of these stands alone: "the rowing club membership", "gin gives me a headache"."""


def idioms_in(text: str) -> tuple[Idiom, ...]:
    """Return the idioms in which a speaker tells of an end or a turn of their own; `text` is plain."""
    found = (idiom for sentence in _SENTENCE.split(text) for idiom in _idioms_of(sentence))
    return tuple(islice(found, MOST_IDIOMS))


def _idioms_of(sentence: str) -> Iterator[Idiom]:
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
        self._subject = another.span("who") if another else (0, len(text))
        self._first_end = min((end for end in self._ends if end > self._subject[0]), default=len(text))

    def idioms(self) -> Iterator[Idiom]:
        """Yield its idioms, but for those that are limited to a time or a part, or are not so."""
        for turn, match in self._found:
            low = max((end for end in self._ends if end <= match.start()), default=0)
            high = min((end for end in self._ends if end >= match.end()), default=len(self.text))
            if self._counts(match, self.text[low:high]):
                is_relief = turn is Turn.OVER and bool(_BAD.search(self.text[low:high]))
                near = self._near(match, low, high)
                things = (n for n in near if self._stands_alone(n, high))
                yield Idiom(
                    Turn.FOR if is_relief else turn,
                    frozenset(self._stems[n] for n in near),
                    frozenset(self._stems[n] for n in things),
                    bool(_ENDS_IT.match(match[0])),
                )

    def _counts(self, match: re.Match[str], clause: str) -> bool:
        if _OF_ONE.match(self.text, match.start()) or _OF_THEIRS.match(self.text, match.end()):
            return False
        is_past = match[0].lower().startswith("used")
        return not NOT_DONE.search(clause) and (is_past or not _LIMITED.search(self.text, match.end()))

    def _near(self, match: re.Match[str], low: int, high: int) -> list[int]:
        """Return which words stand near an idiom; of what somebody else does only who that is."""
        words = list(enumerate(self._words))
        before = [n for n, word in words if low <= word.start and word.end <= match.start()][-_BEFORE:]
        inside = [
            n
            for n, word in words
            if match.start() < word.start and word.end <= match.end() - (not _HAS_NOT.match(match[0]))
        ]
        after = [n for n, word in words if match.end() <= word.start < high][:_AFTER]
        begin, end = self._subject if match.start() < self._first_end else (0, len(self.text))
        around = (n for n in (*before, *inside, *after) if begin <= self._words[n].start < end)
        return [n for n in around if not any(word.text in _BESIDE for word in self._words[max(0, n - 2) : n])]

    def _stands_alone(self, n: int, clause_end: int) -> bool:
        """Whether a word is no part of a longer name of a thing."""
        if n + 1 == len(self._words):
            return True
        word, following = self._words[n], self._words[n + 1]
        if self.text[word.end : following.start] != " " or word.end <= clause_end <= following.start:
            return True
        return following.text in _FOLLOWS or following.text.endswith("ly") or following.start in self._starts
