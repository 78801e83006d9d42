"""Reading a question: words, days, who and what is asked for, seen from now and from what the scopes hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from functools import lru_cache

import numpy as np

from memoryd.index.analysis import analyse, analyse_query, token_terms
from memoryd.index.question import Question
from memoryd.index.scope import ScopeIndex
from memoryd.index.traits import first_name
from memoryd.knowledge.grammar.dates import days_named
from memoryd.knowledge.grammar.questions import asks_assistant, clauses, members_asked, wanted_of
from memoryd.knowledge.grammar.times import opened
from memoryd.model.embedding import TOKEN_DIMENSIONS, Embedded
from memoryd.model.query import Filter

__all__ = ["ENGLISH_WORDS", "is_english", "read_question"]

MOST_YEARS = 12  # of a store, in which a date without a year is looked for
MOST_TOKENS = 64  # of a question that are compared; of a longer one those at its beginning and at its end
MOST_WORDS = 100  # of a question, among which names of speakers are looked for
FOREIGN, ENGLISH = 0.45, 0.65  # of the letters of a question in whole words: up to which none of it counts, and all
MOST_LETTERS = 1000  # of a question, by which its script is told
LEAST_FOREIGN = 4  # words by which a language is told
ENGLISH_WORDS = frozenset(
    {
        *("the", "and", "for", "with", "about", "my", "your", "our", "does", "did", "have", "has", "should", "would"),
        *("what", "where", "when", "which", "who", "how", "why"),
    }
)
_ASKS = re.compile(
    r"(?<=\bhow )(?:old|tall|big|late|early|heavy)\b"
    r"|(?<=\bwie )(?:alt|groß|oft|weit|spät|schwer)\b",
    re.IGNORECASE,
)
"""What asks with "how": it is not what is looked for, "How old am I?" not for an old car."""
_ASKS_FIRST = re.compile(
    r"\b(?:since when|how long (?:have|has|had|is|am|are)|when did (?:[\w']+ ){1,2}(?:first|start|begin|get|buy|move)"
    r"|seit wann|wie lange|depuis (?:quand|combien)|desde cuándo|da quando|sinds wanneer)\b",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_POSSESSIVE = re.compile(r"['’]s?$")


def read_question(
    text: str,
    embedded: Embedded | None,
    wanted: Filter,
    now: datetime,
    indexes: Sequence[ScopeIndex],
    *,
    entity_ids: frozenset[str] = frozenset(),
) -> Question:
    """Return what the indexes are asked."""
    years = _years(indexes, now.date())
    judged_share = _latin_share(text) if embedded is None else _judged_share(text, embedded)
    terms = tuple(analyse_query(_ASKS.sub(" ", text), is_english=judged_share == 1))
    token_places = () if embedded is None else embedded.places
    if embedded is None:
        vector, tokens = None, None
    else:
        vector = embedded.vector
        tokens = np.frombuffer(embedded.tokens, dtype=np.int8).reshape(-1, TOKEN_DIMENSIONS)
        if len(tokens) > MOST_TOKENS:
            ends = [*range(MOST_TOKENS // 2), *range(len(tokens) - MOST_TOKENS // 2, len(tokens))]
            tokens, token_places = tokens[ends], tuple(token_places[n] for n in ends)
    return Question(
        terms=terms,
        vector=vector,
        filter=wanted,
        now=now,
        tokens=tokens,
        token_terms=tuple(token_terms(text, token_places, terms)),
        clauses=tuple(_clauses(text, token_places)),
        days=tuple(opened(text, days_named(text, now.date(), years), now.date(), years)),
        speaker=_speaker(text, indexes),
        asks_assistant=asks_assistant(text),
        wanted=wanted_of(text),
        members=_members(text, terms),
        entity_ids=entity_ids,
        known_share=1.0 if embedded is None else embedded.known_share,
        judged_share=judged_share,
        asks_first=_ASKS_FIRST.search(text) is not None,
    )


def _members(text: str, terms: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the members of the class that a question asks for, as terms; what it names itself tells nothing apart."""
    return tuple(words for words in _terms_of(members_asked(text)) if not set(words) <= set(terms))


@lru_cache(maxsize=256)
def _terms_of(members: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the terms of each member; one of several words that is left with one, "broke into", tells nothing."""
    found = ((member, tuple(analyse(member))) for member in members)
    return tuple(dict.fromkeys(words for member, words in found if len(words) > (" " in member)))


def _latin_share(text: str) -> float:
    """Return which share of the letters of a question are Latin; 1 without letters."""
    if text.isascii():
        return 1.0
    letters = [letter for letter in text[:MOST_LETTERS] if letter.isalpha()]
    return sum(letter < "\u0250" for letter in letters) / len(letters) if letters else 1.0


def _judged_share(text: str, embedded: Embedded) -> float:
    """
    Return how far the scores of a model hold for a question, by the share of letters in words that are one piece to it.

    Of questions in English 95 % have more than 0.6, of German and French ones most have less than 0.5. To a model that
    reads a language by pieces of words, all of its texts are alike. A word or three may be names or misspelt; and a
    question with English words of grammar is English, however it is spelt. Of other scripts the model has to know most.
    """
    if embedded.known_share < 1:
        return max(0.0, 2 * embedded.known_share - 1)
    read = max((end for _, end in embedded.places), default=0)
    words = [match.span() for match in _LETTERS.finditer(text[:read])]
    if len(words) < LEAST_FOREIGN or not ENGLISH_WORDS.isdisjoint(text[start:end].lower() for start, end in words):
        return 1.0
    pieces = set(embedded.places)
    whole = sum(end - start for start, end in words if (start, end) in pieces)
    share = whole / sum(end - start for start, end in words)
    return min(1.0, max(0.0, (share - FOREIGN) / (ENGLISH - FOREIGN)))


def is_english(text: str, embedded: Embedded) -> bool:
    """Whether nothing tells that a text is of another language than English."""
    return _judged_share(text, embedded) == 1


def _years(indexes: Sequence[ScopeIndex], today: date) -> tuple[int, ...]:
    """Return the years in which something of the scopes happened or was said, the nearest to today first."""
    held = {year for index in indexes for year in index.traits.years} or {today.year}
    return tuple(sorted(held, key=lambda year: abs(year - today.year))[:MOST_YEARS])


def _speaker(text: str, indexes: Sequence[ScopeIndex]) -> str:
    """Return the one speaker that a question names; "" for none or several, or where only one speaks at all."""
    if not any(index.traits.has_speakers for index in indexes):
        return ""
    words = {first_name(_POSSESSIVE.sub("", word)) for word in _WORD.findall(text)[:MOST_WORDS]} - {""}
    named = {word for word in words if any(index.traits.speaks(word) for index in indexes)}
    return named.pop() if len(named) == 1 else ""


def _clauses(text: str, places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the clauses of a question as (first, after the last) of its tokens."""
    starts = [start for start, _ in places]
    return [
        (int(np.searchsorted(starts, first)), int(np.searchsorted(starts, last)))
        for first, last in (clauses(text) if places else ())
    ]
