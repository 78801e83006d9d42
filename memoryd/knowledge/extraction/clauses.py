"""
The clauses of a sentence, each with a subject of its own, as they are written out; what it states before it asks.

And what keeps it from being learnt: questions, wishes, guesses, jokes, reports, and what is so for now only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.grammar.words import plain
from memoryd.knowledge.lexicon.load import table

__all__ = [
    "before_question",
    "clauses_of",
    "is_doubtful",
    "is_ironic",
    "is_of_now",
    "is_question",
    "takes_back",
    "without_lead",
    "written_out",
]

_INFORMAL = tuple((compiled(rf"(?<!\w)(?:{short})(?!\B\w)"), long) for short, long in table("spoken.as_spoken"))
_ANY = re.compile("|".join(pattern.pattern for pattern, _ in _INFORMAL), re.IGNORECASE)
_RELATIVE = re.compile(r", who (?:is|has|was|works|lives|loves|comes) [^,]{2,60}, (?=\w)", re.IGNORECASE)


def written_out(text: str) -> str:
    """Return a text on one line with its contractions written out, also those without an apostrophe."""
    written = _RELATIVE.sub(" ", plain(text))
    if not _ANY.search(written):
        return written
    for pattern, long in _INFORMAL:
        written = pattern.sub(long, written)
    return written


_ASKED_AFTER = compiled(r"(?:,|;| -+| –| —)? *(?:so|and|but|then)?,? *\b{asked_after}\b[^,;]*$")
_TASK_AFTER = compiled(r"(?:,|;| -+| –| —) *(?:so|and|but|then)?,? *{task_after}\b.*$")


def before_question(sentence: str) -> str:
    """Return what a sentence states before it asks: "I'm vegan, so what can I cook?"; empty if it only asks."""
    task = _TASK_AFTER.search(sentence)
    if task and task.start() > 0:
        return sentence[: task.start()]
    if not sentence.rstrip(" )\"'").endswith(("?", "\uff1f")):
        return sentence
    asked = _ASKED_AFTER.search(sentence)
    if asked and asked.start() > 0 and sentence[asked.start()] in ",;-–— ":
        kept = sentence[: asked.start()].rstrip(" ,;-–—")
        return kept if re.match(r"(?:i|my|we|our)\b", kept, re.IGNORECASE) and "," in sentence else ""
    return ""


_NEXT = r"(?=(?:i|i'm|i've|i’m|i’ve|my|we|we're|we’re|we've|our)\b)"
_CLAUSE = re.compile(rf"(?:\s*[;–—]\s*|\s+-+\s+|,?\s+(?:but|and|so|plus)\s+{_NEXT}|,\s+{_NEXT})", re.IGNORECASE)
_LEAD = compiled("^{clauses_lead}+")


def clauses_of(sentence: str) -> Iterator[str]:
    """Yield the clauses of a sentence that have a subject of their own; what a "but" limits stays with it."""
    if _LIMITED.search(sentence):
        yield sentence
        return
    held = ""
    for part in _CLAUSE.split(sentence):
        piece = f"{held} and {part}" if held else part
        piece = re.sub(r"^-+ | -+$", "", piece.strip(" ,;:–—"))  # of "O-" the sign stays
        held = piece if _NO_CLAUSE.match(piece) else ""
        if piece and not held:
            yield piece


_LIMITED = compiled("{clauses_limited}")
"""Of "I used to X but now I Y" and "I like X but I can't drink it anymore" no half is true by itself."""
_NO_CLAUSE = re.compile(r"^(?:me|(?:my|our) [\w-]+(?: [\w'’-]+)?)$", re.IGNORECASE)
"""What stands before "and I" and is a part of the subject: "my partner Jo"."""


def without_lead(clause: str) -> str:
    """Return a clause without the words that only open it: "oh, by the way, I …"."""
    lead = _LEAD.match(clause)
    return clause[lead.end() :] if lead else clause


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
