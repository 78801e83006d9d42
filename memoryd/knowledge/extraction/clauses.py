"""The clauses of a sentence, each with a subject of its own; and what it states before it asks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoryd.knowledge.grammar.pattern import compiled

__all__ = ["before_question", "clauses_of", "without_lead"]

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
