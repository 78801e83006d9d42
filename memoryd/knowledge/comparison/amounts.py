"""
Two statements that tell how much there is of one thing, and differ in it: of rent, income, weight, a price.

They contest, and retire nothing: one may be of another thing.
"""

from __future__ import annotations

import re

from memoryd.knowledge.comparison.finding import APART, Finding, Relation
from memoryd.knowledge.grammar.pattern import compiled, whole
from memoryd.knowledge.grammar.values import value_of
from memoryd.knowledge.grammar.words import Words
from memoryd.knowledge.lexicon.load import stems, table
from memoryd.knowledge.statement.moods import FOR_NOW, HEDGED, NOT_DONE, OF_PAST
from memoryd.knowledge.statement.reader import Statement
from memoryd.knowledge.statement.told import EMPTY, another_in

__all__ = ["by_amounts"]

_QUANTITIES = tuple(map(compiled, table("frames.quantity")))
"""What somebody has one amount of at a time."""
_NOT_OF_NOW = compiled(r"\b{not_of_now}\b")
_WHO_SETS_IT = re.compile(r"\b(?:landlord|landlady|they|company|firm|boss|employer)\b", re.IGNORECASE)
_MONEY = re.compile(r"[$€£¥] ?\d|\d ?(?:dollars|euros?|pounds|bucks|quid|usd|eur|gbp)\b", re.IGNORECASE)
_COSTS_NOW = compiled(r"\b{costs_now}\b")
_OF_MONEY = stems("frames.part.of_money")
_SPANS = compiled("{spans}")
_OF_NOW = whole("of_now")
_OF_AMOUNTS = stems("frames.word.of_amounts") | stems("time.month")
_RENEWED = Finding(Relation.DOUBTFUL, "renewed", "it says the same of now, with another number or name")


def by_amounts(said: Statement, known: Statement, ours: Words, theirs: Words) -> Finding:
    """Return a doubt where a newer statement says of now how much there is of what an older one says."""
    if said.limited:
        return APART
    if _says_amount_anew(said.text, known.text, ours, theirs):
        return _RENEWED
    if known.happened or known.turning or theirs.negations or not _have_other_figures(ours, theirs):
        return APART
    if not _OF_NOW.search(said.text) or NOT_DONE.search(said.text) or FOR_NOW.search(said.text):
        return APART
    rest = (ours.stems ^ theirs.stems) - EMPTY - _OF_AMOUNTS - {*ours.numbers, *theirs.numbers}
    return _RENEWED if (ours.stems & theirs.stems) - EMPTY and not rest else APART


def _have_other_figures(new: Words, old: Words) -> bool:
    """Return whether two texts have numbers, and other ones."""
    return bool(new.numbers and old.numbers) and frozenset(new.numbers) != frozenset(old.numbers)


def _says_amount_anew(new: str, old: str, ours: Words, theirs: Words) -> bool:
    """Return whether a newer text says of now how much there is of what an older one says, with another number."""
    spans = [{span.lower() for span in _SPANS.findall(text)} for text in (new, old)]
    if not _have_other_figures(ours, theirs) or (all(spans) and spans[0] != spans[1]):
        return False
    if any(pattern.search(new) for pattern in (_NOT_OF_NOW, OF_PAST, NOT_DONE, FOR_NOW, HEDGED)) or _is_of_another(new):
        return False
    if any(form.search(new) and form.search(old) for form in _QUANTITIES):
        return True
    about = [value_of(text) - EMPTY - _OF_MONEY for text in (new, old)]
    return bool(_COSTS_NOW.search(new) and _MONEY.search(new) and _MONEY.search(old) and about[0] & about[1])


def _is_of_another(text: str) -> bool:
    """Whether a text tells of somebody else, and nothing of the speaker: "my landlord raised it, I pay more" does."""
    another = another_in(text)
    if another is None or _WHO_SETS_IT.search(another["who"]):
        return False
    return not re.search(r"\b(?:i|we) ", text[another.end() :], re.IGNORECASE)
