"""
What is told in idioms rather than in plain words: that something is over, or that a taste has turned.

"Exported everything out of Evernote and deleted the account", "cats? I've gone soft". The idioms stand in `idioms.txt`.
They say nothing of who or what is meant but by the words near them, so they never retire anything: what stands near one
is in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from importlib import resources
from itertools import islice

from memoryd.knowledge.claims.giving_up import FOR_NOW, LED, NOT_DONE
from memoryd.knowledge.claims.moods import HEDGED
from memoryd.knowledge.language.names import is_first_name
from memoryd.knowledge.language.relations import RELATION_PATTERN
from memoryd.knowledge.language.stems import stem, word_set
from memoryd.knowledge.language.values import words_in
from memoryd.knowledge.language.words import DAYS, GRAMMAR, NO_NAMES

__all__ = ["OF_PAST", "Idiom", "Turn", "another_in", "idioms_in"]


class Turn(Enum):
    """What an idiom tells."""

    OVER = "over"
    AGAINST = "against"
    FOR = "for"


@dataclass(frozen=True, slots=True)
class Idiom:
    """An idiom, and the words near it."""

    turn: Turn
    near: frozenset[str]
    """Stems of the words around it in its clause."""
    things: frozenset[str]
    """Those of them that stand alone: of "my VS Code theme" not the Code."""


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
    rf" (?!(?:and i|or|says?|said|thinks?|(?:told|made|got|talked|convinced) me)\b)(?:(?P<does>{_DOES})|\w+)",
    re.IGNORECASE,
)
"""A sentence that begins so tells of what somebody else does: of all others it says nothing."""
_LIMITED = re.compile(
    r"\b(?:when(?:ever)?|if|unless|except|at night|on (?:week(?:days?|ends?)|\w+days?)|in (?:the )?(?:winter|summer"
    r"|spring|autumn|fall|mornings?|evenings?|afternoons?)|for (?:my|our|his|her) \w+)\b",
    re.IGNORECASE,
)
_OF_ONE = re.compile(
    r"(?:sold|quit|cancel\w*|dropped|left|donated|returned|closed|finished|completed) (?:an?|some|one of|two|three"
    r"|\d+) ",
    re.IGNORECASE,
)
""""I sold a Tesla to Bob" is of one among others."""
_BAD = re.compile(
    r"\b(?:hat|dislik|distrust|avoid|disagree|detest|despis|mind|loath|fear|worr|afraid|scared|hurt)\w*",
    re.IGNORECASE,
)
"""To be rid of this is to come round."""
_BESIDE = word_set("beside besides near alongside unlike outside far alone")
"""What stands after these is not what is spoken of."""
_FOLLOWS = (
    GRAMMAR
    | DAYS
    | word_set("""
    account subscription membership habit phase course class classes lesson lessons contract app club role post position
    diet plan job team group project department practice band choir gives makes bores got gets goes went comes came took
    takes now anymore again instead just already finally altogether not never no has have had is are was were do does
    did can days stuff thing things last this next years months weeks ages
""")
)
"""A word before one of these stands alone: "the rowing club membership", "gin gives me a headache"."""


def idioms_in(text: str) -> tuple[Idiom, ...]:
    """Return the idioms in which a speaker tells of an end or a turn of their own; `text` is plain."""
    found = (idiom for sentence in _SENTENCE.split(text) for idiom in _of_sentence(sentence))
    return tuple(islice(found, MOST_IDIOMS))


def _of_sentence(sentence: str) -> Iterator[Idiom]:
    if any(pattern.search(sentence) for pattern in (HEDGED, NOT_DONE, FOR_NOW, OF_PAST)):
        return
    lead = LED.match(sentence)
    another = another_in(sentence)
    subject = another.span("who") if another else (0, len(sentence))
    words = [(match.group().lower(), match.start(), match.end()) for match in _WORD.finditer(sentence)]
    stems = stem((words_in(word) or [""])[0] for word, _, _ in words)
    ends = [match.start() for match in _CLAUSE_ENDS.finditer(sentence)]
    said = lead.end() if lead else 0
    first = min(
        (end for end in ends if end > said), default=len(sentence)
    )  # where the subject of the sentence has done what it does
    starts = {match.start() for pattern in _IDIOMS.values() for match in pattern.finditer(sentence)}
    for turn, pattern in _IDIOMS.items():
        for match in pattern.finditer(sentence):
            is_limited = not match[0].lower().startswith("used") and _LIMITED.search(sentence, match.end())
            if is_limited or _OF_ONE.match(sentence, match.start()):
                continue
            low = max((end for end in ends if end <= match.start()), default=0)
            high = min((end for end in ends if end >= match.end()), default=len(sentence))
            after = [n for n, word in enumerate(words) if match.end() <= word[1] < high][:_AFTER]
            before = [n for n, word in enumerate(words) if low <= word[1] and word[2] <= match.start()][-_BEFORE:]
            inside = [n for n, word in enumerate(words) if match.start() < word[1] and word[2] < match.end()]
            around = (*before, *(inside if len(inside) > 1 else ()), *after)
            near = [n for n in around if match.start() >= first or subject[0] <= words[n][1] < subject[1]]
            near = [n for n in near if not _stands_beside(words, n)]
            things = [n for n in near if _stands_alone(sentence, words, n, starts)]
            is_relief = turn is Turn.OVER and bool(_BAD.search(sentence[low:high]))
            meant = Turn.FOR if is_relief else turn
            yield Idiom(meant, frozenset(stems[n] for n in near), frozenset(stems[n] for n in things))


def another_in(sentence: str) -> re.Match[str] | None:
    """Return how a sentence begins that tells of what somebody else does; its group `who` is that one."""
    lead = LED.match(sentence)
    another = _OF_ANOTHER.match(sentence, lead.end() if lead else 0)
    name = "" if another is None else (another["name"] or "").lower()
    if another is None or not name or is_first_name(name):
        return another
    return another if another["does"] is not None and name not in NO_NAMES else None


def _stands_beside(words: list[tuple[str, int, int]], n: int) -> bool:
    return any(word in _BESIDE for word, _, _ in words[max(0, n - 2) : n])


def _stands_alone(sentence: str, words: list[tuple[str, int, int]], n: int, idioms: set[int]) -> bool:
    """Whether a word is no part of a longer name of a thing."""
    if n + 1 == len(words):
        return True
    following, start, _ = words[n + 1]
    return sentence[words[n][2] : start] != " " or following in _FOLLOWS or following.endswith("ly") or start in idioms
