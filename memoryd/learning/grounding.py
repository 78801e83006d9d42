"""What a language model says, held against the messages that it has read: nothing is believed that they do not bear."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memoryd.knowledge.comparison.comparison import compare
from memoryd.knowledge.comparison.rules import Relation
from memoryd.knowledge.grammar.words import NUMBER_WORDS, value_of
from memoryd.knowledge.lexicon.spelling import stem, word_set
from memoryd.knowledge.read_statement import Reading

__all__ = ["adds_names_or_figures", "borne", "contradicts", "sums_up", "turns"]

LEAST_OF_SUMMARY = 0.4
"""Share of the words of a summary that what it sums up must have: of one in other words, and of no refusal, half."""

_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[^\W\d_a-z][\w'’-]*")
_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
_DENIES = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|without|\w+n['’]t|cannot|cant|dont|doesnt"  # English
    r"|nicht|nichts|nie|niemals|kein\w*|ohne"  # German; nie is Polish, too
    r"|pas|jamais|aucune?|sans|rien|non|mai|senza|nessun\w*"  # French, Italian
    r"|nunca|jamás|sin|ningun\w*|ningún|não|sem|nenhum\w*"  # Spanish, Portuguese
    r"|niet|geen|nooit|zonder|inte|aldrig|ingen|ikke|aldri|uten|nigdy|bez|не|нет|никогда|без)\b"
    r"|\bn['’]\w|[不没沒无無未]|ない|ません|않|없",
    re.IGNORECASE,
)
_HOW_OFTEN = re.compile(
    r"\b(?:always|every|all|only|everything|everybody|everyone|immer|nur|jede[rsmn]?|toujours|seulement|tou[ts]"
    r"|toutes?|siempre|sólo|solamente|todos?|todas?|sempre|soltanto|tutt[oiae]|só|apenas|altijd|alleen"
    r"|всегда|только|все)\b|[只总總]|いつも|だけ|항상",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"(?<!\S)(\d+) (?:[^\W\d_]+ ){0,2}?([^\W\d_]{3,})(?=$|[.,;!?]| and | or | at | in | with )")
_UNITS = frozenset(
    word_set("years year months month weeks week days day hours hour minutes euros dollars pounds percent")
)
"""What is counted for something else: of two spans of years none is wrong by the other."""
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
    line, figures = text.casefold(), {*_FIGURE.findall(text)}
    if any(figure not in figures for figure in _FIGURE.findall(fact)):
        return True
    if _counts_otherwise(fact, text):
        return True
    names = (name.casefold().removesuffix("'s").removesuffix("’s") for name in _NAME.findall(fact))
    return any(name not in line for name in names if name not in _PRONOUNS)


def _counts_otherwise(fact: str, text: str) -> bool:
    """Whether a fact counts more or fewer of something than a text does: of "2 kids and 3 dogs" 3 kids."""
    said: dict[str, set[str]] = {}
    for figure, word in _COUNTED.findall(_in_digits(text)):
        said.setdefault(word, set()).add(figure)
    counted = _COUNTED.findall(_in_digits(fact))
    return any(word in said and figure not in said[word] for figure, word in counted if word not in _UNITS)


def _in_digits(text: str) -> str:
    return " ".join(NUMBER_WORDS.get(word, word) for word in text.casefold().split())


def sums_up(summary: str, text: str) -> bool:
    """Whether a summary tells of a text and of nothing else: with enough of its words, and no other name or figure."""
    return borne(summary, text) >= LEAST_OF_SUMMARY and not adds_names_or_figures(summary, text)


def turns(fact: str, text: str) -> bool:
    """Whether a fact denies what a text affirms, affirms what it denies, or says more often than it: "always"."""
    if bool(_DENIES.search(fact)) != bool(_DENIES.search(text)):
        return True
    said = {word.casefold() for word in _HOW_OFTEN.findall(text)}
    return any(word.casefold() not in said for word in _HOW_OFTEN.findall(fact))


def contradicts(fact: str, sentences: Sequence[str]) -> bool:
    """Whether a fact says another thing of the same than one of some sentences does, by the rules of statements."""
    reading = Reading(fact)
    relations = (compare(reading, Reading(sentence), similarity=0.0).relation for sentence in sentences)
    return any(relation in {Relation.CHANGED, Relation.DOUBTFUL} for relation in relations)
