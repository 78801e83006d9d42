"""The words of profiles, which stand in `lexicon.txt`, as patterns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from importlib import resources

__all__ = ["PATTERNS", "Lines", "beginnings"]

_HEADING = re.compile(r"\[([A-Z]+)\]")
_CASED = "(?-i:"
_SYNTAX = re.compile(r"\(\?[-a-z]*[:=!]|\(\?<[=!]|\\[a-zA-Z]|~[a-z]+|\[[^\]]*\]")
_TORN = re.compile(r"(?<![a-zA-Zß-ÿ])(?<!\\)[a-zß-ÿ]{1,2}(?:[\[?]|\(\?:)[^ ]")  # whose first letters are not known
_WORD = re.compile(r"[^\W\d_]+")
BEGINNING = 3  # letters of a word by which it is looked up
FIRST_OF_CJK = "\u3041"  # writing without spaces: its words are not looked up
COMMON = frozenset({"and", "are", "for", "has", "her", "his", "its", "our", "she", "the", "was", "wit", "you"})


def beginnings(text: str) -> frozenset[str]:
    """Return the first letters of the words of a text."""
    return frozenset(word[:BEGINNING] for word in _WORD.findall(text.lower()))


class Lines:
    """Any of some patterns; those that ask for no capitals read small letters, in a third of the time (measured)."""

    def __init__(self, lines: Iterable[tuple[str, str]]) -> None:
        """Compile them, each with what it was before its parts were written out."""
        plain: list[str] = []
        cased: list[str] = []
        bare: list[str] = []
        wanted: set[str] = set()
        for raw, line in lines:
            words = {one for one in beginnings(_SYNTAX.sub(" ", raw)) if len(one) == BEGINNING} - COMMON
            wanted |= words
            is_bare = not words or _TORN.search(raw) is not None
            (bare if is_bare else cased if _CASED in line else plain).append(line)
        self._wanted = frozenset(wanted)
        self._plain = re.compile("|".join(plain)) if plain else None
        self._cased = re.compile("|".join(cased), re.IGNORECASE) if cased else None
        self._bare = re.compile("|".join(bare), re.IGNORECASE) if bare else None

    def search(self, text: str, words: Collection[str] | None = None) -> re.Match[str] | None:
        """Return the first place of any of them in a text, which has words with these beginnings; None: any."""
        tried = [(self._bare, text)]
        if words is None or not self._wanted.isdisjoint(words) or any(word[0] >= FIRST_OF_CJK for word in words):
            tried += [(self._plain, text.lower()), (self._cased, text)]
        found = [
            match for pattern, said in tried if pattern is not None and (match := pattern.search(said)) is not None
        ]
        return min(found, key=lambda match: match.start()) if found else None


def _read() -> Mapping[str, list[tuple[str, str]]]:
    """Return the lines of the file by their heading, as they stand and written out."""
    text = resources.files(__package__).joinpath("lexicon.txt").read_text(encoding="utf-8")
    parts: dict[str, str] = {}
    lines: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith("# "):
            continue
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            name = heading[1]
        elif line.startswith("~") and " = " in line and not name:
            part, _, pattern = line[1:].partition(" = ")
            parts[part] = _written(pattern, parts)
        else:
            lines.setdefault(name, []).append((line, _written(line, parts)))
    return lines


def _written(line: str, parts: Mapping[str, str]) -> str:
    """Return a line with its parts written out."""
    named = "|".join(sorted(parts, key=len, reverse=True))
    return re.sub(f"~({named})", lambda match: parts[match[1]], line) if parts else line


_LINES = _read()
PATTERNS: Mapping[str, Lines] = {name: Lines(some) for name, some in _LINES.items()}
"""By heading what finds any of its lines."""
