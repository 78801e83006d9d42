"""The words of profiles, which stand in `lexicon/profile.toml`, as patterns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from memoryd.knowledge.grammar.pattern import expanded
from memoryd.knowledge.lexicon.load import table

__all__ = ["PATTERNS", "Lines", "beginnings"]

_CASED = "(?-i:"
_SYNTAX = re.compile(r"\(\?[-a-z]*[:=!]|\(\?<[=!]|\\[a-zA-Z]|\{[a-z_]+\}|\[[^\]]*\]")
_ENDING = re.compile(r"\\w[+*][^ ()|\[\]?+*\\]")  # letters that stand at the end of a word
_TORN = re.compile(r"(?<![^\W\d_])[^\W\d_]{1,2}(?:[\[?]|\(\?:)[^ ]")  # a word of which too few letters are known
_ESCAPE = re.compile(r"\\[a-zA-Z]")
_WORD = re.compile(r"[^\W\d_]+")
BEGINNING = 3  # letters of a word by which it is looked up
FIRST_OF_CJK = "\u3041"  # writing without spaces: its words are not looked up


def beginnings(text: str) -> frozenset[str]:
    """Return the first letters of the words of a text."""
    return frozenset(word[:BEGINNING] for word in _WORD.findall(text.lower()))


class Lines:
    """Any of some patterns; each is tried where a text has a word that it wants, which is far fewer."""

    def __init__(self, lines: Iterable[tuple[str, str]]) -> None:
        """Compile them, each with what it was before its parts were written out."""
        self._lines: list[_Line] = []
        self._of: dict[str, list[int]] = {}
        """By the beginning of a word the numbers of the lines that want it."""
        self._bare: list[int] = []
        for number, (raw, line) in enumerate(lines):
            cased = _CASED in line
            self._lines.append(_Line(re.compile(line, re.IGNORECASE if cased else 0), cased))
            words = {one for one in beginnings(_SYNTAX.sub(" ", raw)) if len(one) == BEGINNING}
            if not words and any(letter >= FIRST_OF_CJK for letter in raw):
                continue  # a text without such letters has nothing for it
            if not words or _ENDING.search(raw) or _TORN.search(_ESCAPE.sub(" ", raw)):
                self._bare.append(number)
                continue
            for word in words:
                self._of.setdefault(word, []).append(number)

    def search(self, text: str, words: Collection[str] | None = None) -> re.Match[str] | None:
        """Return the first place of any of them in a text, which has words with these beginnings; None: any."""
        numbers: Iterable[int]
        if words is None or any(word[0] >= FIRST_OF_CJK for word in words):
            numbers = range(len(self._lines))
        else:
            numbers = {*self._bare, *(n for word in words if word in self._of for n in self._of[word])}
        lowered = text.lower()
        found = [
            match
            for n in numbers
            if (match := self._lines[n].pattern.search(text if self._lines[n].is_cased else lowered)) is not None
        ]
        return min(found, key=lambda match: match.start()) if found else None


class _Line(NamedTuple):
    pattern: re.Pattern[str]
    is_cased: bool
    """Whether it asks for capitals: the others read small letters, which is faster."""


PATTERNS: Mapping[str, Lines] = {
    name: Lines((line, expanded(line)) for line in lines) for name, lines in table("profile.topic").items()
}
"""By heading what finds any of its lines."""
