"""What a language model says, held against the messages that it has read: nothing is believed that they do not bear."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memoryd.knowledge.compare.comparison import compare
from memoryd.knowledge.compare.finding import Relation
from memoryd.knowledge.language.stems import stem, word_set
from memoryd.knowledge.language.values import value_of
from memoryd.knowledge.reading import Reading

__all__ = ["adds_names_or_figures", "borne", "contradicts", "turns"]

_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[^\W\d_a-z][\w'’-]*")
_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
_DENIES = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|without|\w+n['’]t|cannot|cant|dont|doesnt)\b", re.IGNORECASE
)
_HOW_OFTEN = re.compile(r"\b(?:always|every|all|only|everything|everybody|everyone)\b", re.IGNORECASE)
_PRONOUNS = frozenset(word_set("i i'm i've i'd i'll the my our we user"))
_OF_NO_WEIGHT = frozenset(
    stem(word_set("user speaker person people like likes want have has is am are be named called"))
)


def borne(fact: str, text: str) -> float:
    """Return the share of a fact's words that stand in a text, 0 to 1; without words that it knows, of its letters."""
    words = value_of(fact) - _OF_NO_WEIGHT
    if words:
        return len(words & value_of(text)) / len(words)
    letters = {letter for letter in fact.casefold() if letter.isalpha() and not letter.isascii()}
    return len(letters & {*text.casefold()}) / len(letters) if letters else 0.0


def adds_names_or_figures(fact: str, text: str) -> bool:
    """Whether a fact has a figure, or a name within a sentence, that a text has not."""
    said, figures = text.casefold(), {*_FIGURE.findall(text)}
    if any(figure not in figures for figure in _FIGURE.findall(fact)):
        return True
    names = (name.casefold().removesuffix("'s").removesuffix("’s") for name in _NAME.findall(fact))
    return any(name not in said for name in names if name not in _PRONOUNS)


def turns(fact: str, text: str) -> bool:
    """Whether a fact denies what a text affirms, affirms what it denies, or says more often than it: "always"."""
    if bool(_DENIES.search(fact)) != bool(_DENIES.search(text)):
        return True
    said = {word.casefold() for word in _HOW_OFTEN.findall(text)}
    return any(word.casefold() not in said for word in _HOW_OFTEN.findall(fact))


def contradicts(fact: str, sentences: Sequence[str]) -> bool:
    """Whether a fact says another thing of the same than one of some sentences does, by the rules of statements."""
    said = Reading(fact)
    relations = (compare(said, Reading(sentence), similarity=0.0).relation for sentence in sentences)
    return any(relation in {Relation.CHANGED, Relation.DOUBTFUL} for relation in relations)
