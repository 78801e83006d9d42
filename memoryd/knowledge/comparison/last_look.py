"""
A last look at two statements that share no attribute and no frame: does the newer one give up, or say anew, the older?

If what is given up stands in the older statement, that one is in doubt. It retires nothing.
"""

from __future__ import annotations

import re

from memoryd.knowledge.comparison.amounts import have_other_figures, says_amount_anew
from memoryd.knowledge.comparison.finding import APART, Finding, Relation
from memoryd.knowledge.grammar.values import value_of
from memoryd.knowledge.grammar.words import Words
from memoryd.knowledge.lexicon.stems import stem, word_set
from memoryd.knowledge.statement.giving_up import EMPTY, FOR_NOW, NOT_DONE
from memoryd.knowledge.statement.reader import Statement

__all__ = ["last_look"]

_OF_CHANGE = frozenset(
    stem(
        word_set("""
    went go gone grew grow grown rose rise raised raise dropped drop fell fall fallen increased changed change moved
    got get have has had own earn make weigh up down by from after before turned more less another extra up since
    january february march april may june july august september october november december been getting adopted bought
    added joined
""")
    )
)
_OF_NOW = re.compile(
    r"\b(?:now|these days|nowadays|since (?:january|february|march|april|may|june|july|august|september|october"
    r"|november|december|last \w+)|lately|recently|up to|down to|by now)\b",
    re.IGNORECASE,
)
_DOUBT = Finding(Relation.DOUBTFUL, "given_up", "it gives up what this says")
_FIGURE = Finding(Relation.DOUBTFUL, "renewed", "it says the same of now, with another number or name")
_OF = re.compile(r"^(?:my|our|the|his|her) [\w' -]{1,60}? (?:is|are|was|were) ", re.IGNORECASE)


def _said_of(text: str) -> frozenset[str]:
    """Return the stems of what a text says of its subject: of "my car is a Golf" the Golf."""
    return value_of(_OF.sub("", text, count=1)) - EMPTY


def last_look(said: Statement, known: Statement, ours: Words, theirs: Words) -> Finding:
    """Return a doubt where a newer statement gives up, or says anew, what an older one says of now."""
    if not said.limited and says_amount_anew(said.text, known.text, ours, theirs):
        return _FIGURE
    if known.happened or known.turning or said.limited or theirs.negations:
        return APART
    for finding in (_given_up(said, known.text), _renewed(said.text, ours, theirs)):
        if finding.relation is not Relation.APART:
            return finding
    return APART


def _given_up(new: Statement, old: str) -> Finding:
    """Return a doubt where a newer text gives up what an older one says of something or somebody."""
    held = _said_of(old)
    return _DOUBT if any(words <= held for words in new.gives_up) else APART


def _renewed(new_text: str, new: Words, old: Words) -> Finding:
    """Return a doubt where a newer text says of now what the older one says, with another number."""
    if not _OF_NOW.search(new_text) or NOT_DONE.search(new_text) or FOR_NOW.search(new_text):
        return APART
    rest = (new.stems ^ old.stems) - EMPTY - _OF_CHANGE - {*new.numbers, *old.numbers}
    return _FIGURE if have_other_figures(new, old) and (new.stems & old.stems) - EMPTY and not rest else APART
