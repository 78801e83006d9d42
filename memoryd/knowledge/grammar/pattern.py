"""
One notation for patterns: a regular expression in which {name} stands for words of the lexicon.

`{have} {end.part_with} {their} (?P<thing>.+)`: a name is a sense of verbs (in the forms that tell that it was done), or
a part of one of the files in `_FILES`: words, a pattern that may name others, or a list of such patterns. A table of
another file is named with it: `{numbers.counted}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias, cast

from memoryd.knowledge.lexicon.load import split, table, verbs
from memoryd.knowledge.lexicon.spelling import UPPER

__all__ = ["any_of", "compile_all", "compiled", "expanded", "lazily", "whole"]

_Letters: TypeAlias = "dict[str, _Letters]"
_NAME = re.compile(r"\{([a-z][a-z0-9_.]*)\}")
_FILES = ("frames.part", "nouns", "time", "grammar", "extraction", "profile.part")
_SYNTAX = re.compile(r"[(){}\[\]|\\?*+]")

_BUILT = {"capital": f"(?-i:[{UPPER}])", "letter_of_name": "(?-i:[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω])"}


def any_of(some: Iterable[str]) -> str:
    """
    Return a pattern of any of some words or phrases, the longest that fits.

    It branches letter by letter: of 300 verbs two or three are looked at.
    """
    root: _Letters = {}
    for word in some:
        node = root
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    return _branches(root)


def _branches(node: _Letters) -> str:
    """Return what may follow a letter."""
    ends = "" in node
    longer = [re.escape(letter).replace("\\ ", " ") + _branches(node[letter]) for letter in sorted(node) if letter]
    if not longer:
        return ""
    if len(longer) == 1 and not ends:
        return longer[0]
    return f"(?:{'|'.join(longer)}){'?' if ends else ''}"


def expanded(pattern: str) -> str:
    """Return a pattern with its names written out; KeyError for a name that the lexicon does not have."""
    return _NAME.sub(lambda match: f"(?:{_named(match[1])})", pattern)


def compiled(pattern: str, where: str = "lexicon") -> re.Pattern[str]:
    """
    Return a pattern with its names written out, for any case of letters.

    It is compiled when it is first used (see `lazily`); ValueError then, with `where` it stands.
    """

    def make() -> re.Pattern[str]:
        try:
            return re.compile(expanded(pattern), re.IGNORECASE)
        except re.error as error:
            raise ValueError(f"{where}: no pattern, once its names are written out: {pattern}: {error.msg}") from error
        except KeyError as error:
            raise ValueError(f"{where}: {error.args[0]}, in {pattern}") from error

    return lazily(make)


class _Lazy:
    """What has all that a pattern has, from its first use on."""

    def __init__(self, make: Callable[[], re.Pattern[str]]) -> None:
        self._make, self.is_made = make, False

    def make(self) -> None:
        made = self._make()
        self.__dict__ |= {name: getattr(made, name) for name in _OF_PATTERNS}
        self.is_made = True

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_PATTERNS:
            raise AttributeError(name)
        if not self.is_made:  # another thread may have made it since the name was looked up
            self.make()
        return self.__dict__[name]


_OF_PATTERNS = [name for name in dir(re.compile("")) if not name.startswith("_")]
_LAZY: list[_Lazy] = []


def lazily(make: Callable[[], re.Pattern[str]]) -> re.Pattern[str]:
    """
    Return a pattern that is made when it is first used.

    There are a thousand, and to compile them all takes a third of the time in which a daemon starts.
    """
    _LAZY.append(_Lazy(make))
    return cast("re.Pattern[str]", _LAZY[-1])


def compile_all(goes_on: Callable[[], bool] = lambda: True) -> None:
    """
    Compile each pattern that was not used so far, so that no call has to wait for it; ValueError for a bad one.

    After each it is asked whether it goes on, which may take its time: others have their turn.
    """
    for pattern in _LAZY:
        if not pattern.is_made:
            pattern.make()
            if not goes_on():
                return


def whole(mood: str) -> re.Pattern[str]:
    """Return the pattern of a way of saying something (`frames.toml`), between the ends of words."""
    return compiled(rf"\b(?:{'|'.join(table(f'frames.mood.{mood}'))})\b")


@cache
def _named(name: str) -> str:
    if name.split(".", maxsplit=1)[0] in table("verbs"):
        try:
            return any_of(form for verb in verbs(name) for form in verb.done)
        except KeyError:
            raise KeyError(f"lexicon/verbs.toml has no table [{name}]") from None
    if name in _BUILT:
        return _BUILT[name]
    for path in (name,) if "." in name else (f"{file}.{name}" for file in _FILES):
        try:
            found = table(path)
        except KeyError:
            continue
        if isinstance(found, dict):
            return any_of(_words_in(found))
        if isinstance(found, list):
            return "|".join(map(expanded, found))
        if not isinstance(found, str):
            raise ValueError(f"lexicon: {path}: words or a pattern in quotes, or a list of patterns")  # noqa: TRY004
        return expanded(found) if _SYNTAX.search(found) else any_of(split(found))
    raise KeyError(f"no words are called {name!r} in lexicon/: {', '.join(_FILES)}, verbs")


def _words_in(found: Mapping[str, Any]) -> Iterator[str]:
    """Return what stands in a table of words and of what else is said for them, or of what they count."""
    for name, others in found.items():
        if isinstance(others, Mapping):
            yield from _words_in(others)
            continue
        yield name
        if isinstance(others, str):
            yield from split(others)
