"""
Names of people: which words are given names, and whether two names may be one person's.

They are the same, a nickname, or the first name of a full one. Nicknames are those of the `nicknames` package (a
hand-made table of English names, Apache-2.0); given names are those of some fifty countries, in Latin letters
(`lexicon/given_names.txt` says from where).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files

from nicknames import NickNamer

from memoryd.knowledge.lexicon.load import words
from memoryd.knowledge.lexicon.spelling import APOSTROPHES, unaccented
from memoryd.model.validation import fold, stream_safe

__all__ = [
    "MOST_NAME_CHARACTERS",
    "MOST_NAME_WORDS",
    "TITLES",
    "any_stands_in",
    "forget_names",
    "fullest",
    "is_doubtful_name",
    "is_first_name",
    "is_formal",
    "is_given_name",
    "is_plain",
    "longest_word",
    "may_be_one",
    "name_key",
    "name_keys",
    "name_pieces",
    "short_forms",
    "spelling",
    "straight",
]

MOST_NAME_CHARACTERS = 64
MOST_NAME_WORDS = 6
_PLAIN = re.compile(r"@?[^\W_](?:[\w '’&+#@/.-]|, (?=(?i:jr|sr|inc|ltd|md|phd)\b))*")
_SENTENCE = re.compile(r"(?<!\b\w)(?<!\b(?i:dr|mr|ms|st|jr|sr|co))(?<!\b(?i:mrs|rev|inc|ltd))(?<!\b(?i:prof))\. ")
"""A full stop that ends a sentence: not one after an initial or a title."""

TITLES = frozenset(words("grammar.titles"))
"""What stands before a name."""
_TITLES = frozenset(words("grammar.names_titles"))
"""What tells no two names apart: before one or behind it."""


def any_stands_in(names: Sequence[str], text: str) -> bool:
    """
    Whether a text holds one of some names, whatever its case, as words of their own; in scripts without case, anywhere.

    A part of a longer name or word is none: not "max" in Math.max, nor "Li" in Li-ion or "Anna" in Anna-Lena. The text
    is folded once for all names.
    """
    line = straight(text)
    return any(_stands_in(name, line, text) for name in names)


def _stands_in(name: str, line: str, text: str) -> bool:
    wanted = straight(name)
    if wanted not in line:
        return False
    letters = re.escape(wanted)  # first, as `re` looks for a fixed beginning alone much faster
    begin = rf"(?<!\w{letters})(?<!\w-{letters})" if _has_case(wanted[0]) else ""
    end = r"(?!\w)(?!-\w)" if _has_case(wanted[-1]) else ""
    pattern = f"{letters}{begin}{end}"
    return bool(re.search(pattern, line)) and not _is_member(name, text, pattern)


def _is_member(name: str, text: str, pattern: str) -> bool:
    """Whether a name stands in a text only as a part of code is called: "Math.max", not "Dr.Max"."""
    if not name[:1].isupper() or "." not in text:
        return False
    plain = " ".join(unicodedata.normalize("NFKC", stream_safe(text)).translate(APOSTROPHES).split())
    matches = list(re.finditer(pattern, plain, re.IGNORECASE))
    return bool(matches) and all(
        match.group()[0].islower() and _MEMBER.search(plain, 0, match.start()) for match in matches
    )


_MEMBER = re.compile(r"\w\.$")


def straight(name: str) -> str:
    """Return a name as it is compared, with the apostrophe of a keyboard, whichever it was typed with."""
    return fold(name.translate(APOSTROPHES)).translate(APOSTROPHES)  # folding takes an acute apart


_RUN = re.compile(r"[^\W_]+")
_MOST_PIECES = 24


def name_pieces(text: str) -> list[str]:
    """Return the words of a text, compared as names; in scripts that have no case and so no words, its letters."""
    return [piece for run in _RUN.findall(straight(text)) for piece in ([run] if all(map(_has_case, run)) else run)]


def longest_word(name: str) -> str:
    """Return the longest run of letters of a name, in lower case: what stands in every spelling of it."""
    return max(_RUN.findall(name.lower()), key=len, default=name.lower())


def name_key(pieces: Sequence[str]) -> str:
    """Return what stands for a name, of its pieces: in every text in which `any_stands_in` finds it they are a run."""
    return " ".join(pieces[:_MOST_PIECES])


def name_keys(pieces: Sequence[str], begin: int) -> Iterator[str]:
    """Yield the keys of all names that may begin at a place of some pieces."""
    for end in range(begin + 1, min(begin + _MOST_PIECES, len(pieces)) + 1):
        yield name_key(pieces[begin:end])


def _has_case(letter: str) -> bool:
    return letter.upper() != letter.lower() or letter.isdigit()


@cache
def _table() -> NickNamer:
    return NickNamer()


def _parts(name: str) -> tuple[str, ...]:
    words = [word for word in fold(name).replace(".", " ").split() if word not in _TITLES]
    return tuple(words) or tuple(fold(name).split())


def spelling(name: str, *, titles: bool = True) -> str:
    """Return a name as it may be typed: folded, without accents, apostrophes, hyphens and full stops, and titles."""
    words = straight(name).replace("'", "").replace("-", " ").replace(".", " ").split()
    named = words if titles else [word for word in words if word not in TITLES]
    return " ".join(map(unaccented, named or words))


@lru_cache(maxsize=8192)
def short_forms(first: str) -> frozenset[str]:
    """Return all that a first name may be written as: itself, its nicknames, and what it is a nickname of."""
    table = _table()
    return frozenset({first} | table.nicknames_of(first) | table.canonicals_of(first))


@lru_cache(maxsize=8192)
def is_first_name(word: str) -> bool:
    """Whether a word is a known first name or nickname."""
    return len(short_forms(fold(word))) > 1


def forget_names() -> None:
    """Drop the names that were looked up lately."""
    short_forms.cache_clear()
    is_first_name.cache_clear()


def is_plain(name: str) -> bool:
    """
    Return whether a text can be a name and nothing else: short, no sentence, no punctuation but what names have.

    A name is shown next to what is trusted, so that it must not be able to say anything.
    """
    if len(name) > MOST_NAME_CHARACTERS or len(name.split()) > MOST_NAME_WORDS:
        return False
    marked = "".join("a" if unicodedata.category(letter)[0] == "M" else letter for letter in name)  # \w knows no marks
    return bool(_PLAIN.fullmatch(marked)) and not _SENTENCE.search(name)


def is_formal(name: str) -> bool:
    """Whether a name is one that has nicknames, so that it is given to people as it is."""
    return bool(_table().nicknames_of(fold(name).split()[0]))


def fullest(names: Sequence[str]) -> str:
    """Return the name of most words; of equals the one that others are nicknames of, then the longest, the first."""
    firsts = {fold(name).split()[0] for name in names}

    def size(name: str) -> tuple[int, int, int]:
        return len(name.split()), len(_table().nicknames_of(_parts(name)[0]) & firsts), len(name)

    return max(names, key=size)


def may_be_one(one: str, other: str, *, nicknames: bool = True) -> bool:
    """
    Return whether two names may be one person's.

    First names are equal or, with `nicknames`, a nickname of each other; what both have beyond it is equal. Never by a
    part of a word: "Ann" is not "Joanna".
    """
    a, b = _parts(one), _parts(other)
    if not a or not b:
        return False
    if a[0] != b[0] and not (nicknames and b[0] in short_forms(a[0])):
        return False
    return a[1:] == b[1:] or len(a) == 1 or len(b) == 1


@cache
def _names() -> dict[str, bool]:
    """Return every name in lower case, and whether it is also a place, a word or a thing."""
    text = files("memoryd.knowledge.lexicon").joinpath("given_names.txt").read_text("utf-8")
    listed = (name for line in text.splitlines() if not line.startswith("#") for name in line.split())
    return {name.removesuffix("*"): name.endswith("*") for name in listed}


def is_given_name(word: str) -> bool:
    """Whether a word is someone's given name, whatever its case; of two with a hyphen the first decides."""
    names = _names()
    lower = word.lower()
    return lower in names or is_first_name(lower) or ("-" in lower and lower.partition("-")[0] in names)


def is_doubtful_name(word: str) -> bool:
    """Whether a given name is also a place, a word or a thing, so that what stands around it has to decide."""
    return _names().get(word.lower(), False)
