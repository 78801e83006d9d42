"""What a message says that nobody states: role play, what is supposed, a text to be worked on, a quotation."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.grammar.sentence_ends import sentences_of

__all__ = ["PLAYED", "QUOTED", "TASK", "begins_play", "ends_play", "not_stated"]

MOST_CHARACTERS = 2000  # of a message that are looked at
PLAYED, SUPPOSED, TASK, QUOTED = "role play", "supposed", "a text to work on", "quoted"
_PLAYED = compiled("{played}")
_BEGUN = compiled("{begun}")
_ENDED = compiled(r"\b{not_stated_ended}\b")
_SUPPOSED = compiled("{supposed}")
_TASK = compiled("{task}")
_QUOTATION = re.compile(r"(?:>[^\n]*\n?)+|[\"“«„][^\"”»“]+[\"”»“]\s*(?:[-—–]\s*[^\n]{1,60})?")


def begins_play(text: str) -> bool:
    """Whether a message begins a role play that goes on in those after it: more than a game that is proposed."""
    return _BEGUN.search(text[:MOST_CHARACTERS]) is not None


def ends_play(text: str) -> bool:
    """Whether a message says that a role play is over; what it says then is meant."""
    return _ENDED.search(text[:MOST_CHARACTERS]) is not None


def not_stated(text: str) -> str:
    """Return in a word why what a message says is no statement of who says it; "" where it may be one."""
    said = text[:MOST_CHARACTERS].strip()
    if not said or ends_play(said):
        return ""
    if _PLAYED.search(said):
        return PLAYED
    if _TASK.match(said):
        return TASK
    if _QUOTATION.fullmatch(said):
        return QUOTED
    return SUPPOSED if any(_SUPPOSED.search(sentence) for sentence in sentences_of(said)) else ""
