"""
The words in which people tell that something has changed, put as plain statements that `attributes` reads.

"I used to hate jazz, but now I like it" is "i now like jazz"; "my salary went from A to B" is "my income moved to B".
The rows stand in `rewrites.txt`; each has an example, which is tested (`tests/knowledge/test_rewrites.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from memoryd.knowledge.statement.attributes import PROFESSION_PATTERN

__all__ = ["REWRITES", "Rewrite", "rewritten"]

_AMOUNT = r"[$€£¥]? ?\d[\d.,]*(?: ?(?:k|thousand|million|dollars|euros|pounds|usd|eur|gbp))?\b"
_PER = r"(?: (?:a|per) (?:year|month|week|hour))?"
_VOCABULARY = {
    "i": r"(?:i|we)(?: have| had)?(?: (?:just|recently|finally|really|actually|totally|completely|officially|now"
    r"|also))*",
    "end": (
        r"(?=$|[,.;!]| (?:now|anymore|these days|nowadays|lately|recently|because|since|after|for good|and i|but i|so i"
        r"|completely|entirely|altogether|last|this|back in|in the (?:spring|summer|autumn|fall|winter)|over the"
        r"|a (?:while|month|week|year)|months|weeks"
        r"|years|on my|for (?:health|my|good))\b)"
    ),
    "amount": _AMOUNT,
    "per": _PER,
    "money": _AMOUNT + _PER,
    "clock": r"(?:\d{1,2}(?:[:.]\d\d)?(?: ?(?:am|pm|a\.m\.|p\.m\.|o'clock))?|noon|midnight)",
    "income": r"(?:income|salary|pay|wages?|earnings|paycheck|take-home pay|base pay)",
    "role": r"(?:an? |the |our )?(?P<v>[\w' -]+?)",
    "like": (
        r"(?:like|love|enjoy|adore|prefer|am into|am a (?:big |huge )?fan of|can not get enough of|am fond of"
        r"|look forward to)"
    ),
    "hate": (
        r"(?:dislike|hate|detest|despise|avoid|can not stand|do not (?:like|enjoy|care for)|not (?:like|enjoy|care for)"
        r"|could not stand|am not (?:into|a fan of))"
    ),
    "language": (
        r"(?:english|german|french|spanish|italian|portuguese|dutch|polish|russian|turkish|japanese|chinese|mandarin"
        r"|korean|arabic|hindi|swedish|danish|norwegian|finnish|greek|czech|hebrew|ukrainian|romanian|hungarian)"
    ),
    "profession_pattern": PROFESSION_PATTERN,
}
_REST_OF_CLAUSE = "[^,.;!?]*"
_NAMES = re.compile(rf"~({'|'.join(sorted(_VOCABULARY, key=len, reverse=True))})")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One way of putting it, and the plain one."""

    pattern: re.Pattern[str]
    plain: str
    example: tuple[str, str]
    """A sentence and what it becomes."""
    is_sure: bool = True
    """Whether what it reads may retire an older statement; else it only contests."""


def _read() -> Iterator[Rewrite]:
    text = resources.files(__package__).joinpath("rewrites.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    for pattern, plain, example in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        written = _NAMES.sub(lambda match: _VOCABULARY[match[1]], pattern)
        said, _, becomes = example.removeprefix("> ").partition(" > ")
        sure, kept = plain.startswith("= "), plain[2:]
        if kept.endswith("."):  # the rest of the clause tells of when, where and why, and goes
            written = f"(?:{written}){_REST_OF_CLAUSE}"
        yield Rewrite(re.compile(written, re.IGNORECASE), kept.removesuffix("."), (said, becomes), sure)


REWRITES: tuple[Rewrite, ...] = tuple(_read())


def rewritten(sentence: str) -> tuple[str, bool]:
    """
    Return a sentence with its contractions written out, put plainly, and whether that is sure.

    It is the same where no row has anything to say.
    """
    done: set[str] = set()
    is_sure = True
    for row in REWRITES:
        match = row.pattern.search(sentence) if row.plain not in done else None
        if match is not None:  # what one row has written is not written again by another
            sentence = f"{sentence[: match.start()]}{match.expand(row.plain)}{sentence[match.end() :]}"
            done.add(row.plain)
            is_sure = is_sure and row.is_sure
    return sentence, is_sure
