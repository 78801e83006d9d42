"""Whether two statements tell how much there is of one thing, and differ in it: of rent, income, weight, a price."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.values import value_of
from memoryd.knowledge.grammar.words import Words
from memoryd.knowledge.lexicon.stems import stem, word_set
from memoryd.knowledge.statement.giving_up import EMPTY, FOR_NOW, NOT_DONE
from memoryd.knowledge.statement.idioms import OF_PAST, another_in
from memoryd.knowledge.statement.moods import HEDGED

__all__ = ["have_other_figures", "says_amount_anew"]

_QUANTITIES = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"\brent\b(?! is due)",
        (
            r"\b(?:my|our|the) (?:\w+ )?(?:salary|income|wages?|pay|paycheck)\b|\b(?:i|user) (?:\w+ )?(?:earns?"
            r"|makes?)\b"
            r"|\b(?:a|the) raise\b"
        ),
        r"\b(?:i|user) (?:\w+ )?weighs?\b|\bmy weight\b|\bscales?\b|\b(?:lost|gained|put on) (?:\w+ )?weight\b",
        r"\b(?:alarm|(?:wake|get) up)\b",
    )
)
"""What somebody has one amount of at a time."""
_NOT_OF_NOW = re.compile(
    r"\b(?:was|were|weighed|earned|goal|target|aim|back in|internet|phone|insurance|side|extra|bonus|times)\b",
    re.IGNORECASE,
)
_WHO_SETS_IT = re.compile(r"\b(?:landlord|landlady|they|company|firm|boss|employer)\b", re.IGNORECASE)
_MONEY = re.compile(r"[$€£¥] ?\d|\d ?(?:dollars|euros?|pounds|bucks|quid|usd|eur|gbp)\b", re.IGNORECASE)
_COSTS_NOW = re.compile(
    r"\b(?:raised|lowered|went (?:up|down)|increased|dropped|costs?|now|charges?|from now on)\b", re.IGNORECASE
)
_OF_MONEY = frozenset(stem(word_set("cost pay price euro dollar pound raise charge now plan a")))
_SPANS = re.compile(r"\b(?:a|per) (?:year|month|week|hour|day)\b|\b(?:monthly|yearly|hourly)\b", re.IGNORECASE)


def have_other_figures(new: Words, old: Words) -> bool:
    """Return whether two texts have numbers, and other ones."""
    return bool(new.numbers and old.numbers) and frozenset(new.numbers) != frozenset(old.numbers)


def says_amount_anew(new: str, old: str, ours: Words, theirs: Words) -> bool:
    """Return whether a newer text says of now how much there is of what an older one says, with another number."""
    spans = [{span.lower() for span in _SPANS.findall(text)} for text in (new, old)]
    if not have_other_figures(ours, theirs) or (all(spans) and spans[0] != spans[1]):
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
