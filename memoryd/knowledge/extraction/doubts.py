"""What keeps a sentence from being learnt: questions, wishes, guesses, jokes, reports, and what is so for now only."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.pattern import compiled

__all__ = ["is_doubtful", "is_ironic", "is_of_now", "is_question", "takes_back"]

_QUESTION = compiled("{question}")
_DOUBTFUL = compiled(r"\b{doubtful}\b")
_IRONIC = re.compile(
    r"^(?:oh,? (?:sure|great|yes|yeah|right|joy)|yeah,? right|yeah,? sure|sure,? sure)\b|(?<!\w)(?::D|xD|;-?P|:-?P)",
    re.IGNORECASE,
)
_REPORTED = compiled(r"\b{reported}")
_OF_THE_TALK = compiled("{of_the_talk}")
_NOW = compiled(r"\b{now}\b")


def is_question(sentence: str) -> bool:
    """Whether a sentence asks for something."""
    return bool(_QUESTION.search(sentence))


def is_doubtful(written: str) -> bool:
    """Whether a sentence, with its contractions written out, is a wish, a guess, a joke or a report, or is of talk."""
    return any(pattern.search(written) for pattern in (_DOUBTFUL, _REPORTED, _OF_THE_TALK))


def is_ironic(clause: str) -> bool:
    """Whether a clause, with how it begins and ends, is not meant: "oh sure, I love waiting"."""
    return bool(_IRONIC.search(clause))


def is_of_now(written: str) -> bool:
    """Whether a sentence tells of what is so for now only."""
    return bool(_NOW.search(written))


_TAKEN_BACK = compiled("{taken_back}")


def takes_back(sentence: str) -> bool:
    """Whether a sentence takes back what was said just before it: "scratch that"."""
    return bool(_TAKEN_BACK.match(sentence))
