"""
What is told in other languages: that something has ended or begun, that a taste has turned, that someone has moved.

German, French, Dutch, Spanish, Portuguese, Italian, by the words in `lexicon/languages.toml`. A clause is read by
itself; what is denied in it, wished, planned or nearly so is left out. What is read contests, and retires nothing: it
is a net of words, not a grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from memoryd.knowledge.grammar.pattern import any_of, lazily
from memoryd.knowledge.grammar.relations import FOREIGN_RELATIONS
from memoryd.knowledge.lexicon.load import table, words
from memoryd.knowledge.lexicon.spelling import stem_of

__all__ = ["LANGUAGES", "Clause", "Foreign", "foreign_of", "languages_of"]

KINDS = ("end", "begin", "switch", "like", "dislike", "favorite", "move", "home", "job", "work", "no", "not_so")
LEAST_SHARE = 0.12  # of the words of a text that are grammar of a language, for it to be of that language
_CLAUSE = re.compile(r"[,.;:!?()–—]+(?=\s|$)|\s[-–—]\s")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_APOSTROPHE = re.compile(r"^[cdjlmnstqu]{1,2}['’]", re.IGNORECASE)
_ENGLISH = frozenset(words("languages.en.words"))
"""Words that tell of no other language, as English has them too."""
_PLAIN_ENGLISH = frozenset(words("languages.en.telling"))
_TURNS = frozenset(("end", "begin", "like", "dislike", "favorite", "move", "job", "switch"))


class _Language:
    """The words of a language as patterns."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        self.name = str(held["name"])
        self.words = frozenset(str(held["words"]).split())
        self._articles = re.compile(rf"(?:{held['article']})\b")
        self.patterns = {kind: _any(held[kind]) for kind in KINDS}
        person = any_of({*FOREIGN_RELATIONS, *str(held["other_words"]).split()})
        others = str(held["others"]).replace("{foreign_person}", person)
        led = rf"(?:{'|'.join(_LEADS)})?(?:{others})\b(?! (?:und|et|en|y|e) (?:ich|moi|ik|yo|eu|io)\b)"
        self.others = lazily(partial(re.compile, led))

    def stems(self, text: str) -> frozenset[str]:
        """Return the stems of the words that carry meaning."""
        for kind in ("like", "dislike", "no"):
            text = self.patterns[kind].sub(" ", text)
        found = (_APOSTROPHE.sub("", word) for word in _WORD.findall(text))
        return frozenset(stem_of(self.name, word) for word in found if len(word) > 1 and word not in self.words)

    def is_of_other(self, text: str) -> bool:
        """Whether a text begins with someone else, or with a thing that it calls *the* thing."""
        return bool(self.others.match(text) or self._articles.match(text))

    def kinds(self, text: str) -> frozenset[str]:
        """Return what a clause tells."""
        return frozenset(kind for kind, pattern in self.patterns.items() if pattern.search(text))


_LEADS = (r"[^\W_]+[,:] ", "und ", "et ", "en ", "y ", "e ", "aber ", "mais ", "maar ", "pero ", "mas ", "ma ")


def _any(some: Iterable[str]) -> re.Pattern[str]:
    return lazily(partial(re.compile, rf"\b(?:{'|'.join(some)})\b"))


LANGUAGES: Mapping[str, _Language] = {
    code: _Language(held) for code, held in table("languages").items() if code != "en"
}


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause, and what it tells."""

    kinds: frozenset[str]
    stems: frozenset[str]
    who: frozenset[str]
    """Stems of the words for someone else that it tells of; none of the speaker."""


@dataclass(frozen=True)
class Foreign:
    """A text in one of the languages, or in one of some that are alike."""

    languages: tuple[_Language, ...]
    text: str

    @cached_property
    def turns(self) -> tuple[Clause, ...]:
        """The clauses that tell of a change."""
        if "?" in self.text:
            return ()
        clauses = map(self._clause, filter(None, map(str.strip, _CLAUSE.split(self.text))))
        return tuple(clause for clause in clauses if clause.kinds & _TURNS and "not_so" not in clause.kinds)

    @cached_property
    def is_of_speaker(self) -> bool:
        """Whether it may be said of who says it: verbs say I without a word for it, so that only a beginning tells."""
        return not any(language.is_of_other(self.text) for language in self.languages)

    @cached_property
    def whole(self) -> Clause:
        """All of it as one clause."""
        return self._clause(self.text)

    def _clause(self, text: str) -> Clause:
        kinds = frozenset[str]().union(*(language.kinds(text) for language in self.languages))
        others = (match[0] for language in self.languages if (match := language.others.match(text)))
        said = self.languages[0].stems(text)
        return Clause(kinds, said, frozenset[str]().union(*map(self.languages[0].stems, others)) & said)


def languages_of(text: str) -> tuple[_Language, ...]:
    """Return the languages that a text may be of, by its grammar or its verb, the likeliest first; none for others."""
    found = _words_of(text)
    telling = [word for word in found if word not in _ENGLISH]
    english = sum(word in _PLAIN_ENGLISH for word in found)
    counts = {code: sum(word in language.words for word in telling) for code, language in LANGUAGES.items()}
    best = max(counts.values())
    if not best and not english:  # "Cancelé Netflix"
        return tuple(language for language in LANGUAGES.values() if language.kinds(text.lower()) & _TURNS)
    if best < LEAST_SHARE * len(found) or best < max(1, english):
        return ()
    likely = sorted((code for code in counts if counts[code] >= max(1, best - 1)), key=lambda code: -counts[code])
    return tuple(LANGUAGES[code] for code in likely)


def _words_of(text: str) -> list[str]:
    """Return the words by which a language is told: in small letters, and the first; parts of "l'eau" too."""
    found = [word.lower() for n, word in enumerate(_WORD.findall(text)) if n == 0 or word.islower()]
    return found + [part for word in found if _APOSTROPHE.match(word) for part in re.split("['’]", word)]


def foreign_of(text: str) -> Foreign | None:
    """Return a text as it is read in its language; None for English and others."""
    languages = languages_of(text)
    return Foreign(languages, text.lower()) if languages else None
