"""The clauses of a sentence, each with a subject of its own; and what it states before it asks."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["before_question", "clauses_of", "without_lead"]

_ASKED_AFTER = re.compile(
    r"(?:,|;| -+| –| —)? *(?:so|and|but|then)?,? *\b(?:what|which|how|where|when|who|why|can|could|do|does|did|is|are"
    r"|should|would|will|any (?:idea|tips|advice|suggestions|recommendations|thoughts)|got any|help|please|give"
    r"|suggest"
    r"|recommend|find|show|tell|make|plan|write)\b[^,;]*$",
    re.IGNORECASE,
)
_TASK_AFTER = re.compile(
    r"(?:,|;| -+| –| —) *(?:so|and|but|then)?,? *(?:can|could|would|will|please|pls|give|suggest|recommend|find|show"
    r"|tell|help"
    r"|make|plan|write|what|which|how|any)\b.*$",
    re.IGNORECASE,
)


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
_LEAD = re.compile(
    r"^(?:(?:yes|yeah|yep|yup|no(?=[,:.!…-])|nope|nah|ok|okay|well|oh|ah|hey|hi|hello|hiya|hmm+|um+|so|and|but|also"
    r"|plus"
    r"|actually|btw"
    r"|by the way|fyi|for context|for the record|for reference|for what it's worth|fwiw|to be honest|tbh|honestly"
    r"|just so"
    r"|you know|just to let you know|as you know|just fyi|quick update|small update|update|news|good news|bad news"
    r"|fun fact|side note|random fact|one more thing|another thing|oh and|and also|turns out|sorry|thanks|thank you"
    r"|great|nice|cool|sure|right|anyway|anyways|to be clear|to clarify|see|look|listen|you see|you know|i mean|like"
    r"|(?:quick|silly|small|dumb|random|stupid|one|weird|last) (?:one|question|thing|note)(?: [\w']+){0,5}(?=:)"
    r"|(?:and |ok(?:ay)?,? )?back to (?:the |my |our )?(?:\w+ ){0,2}\w+(?=:)"
    r"|(?:very )?important(?: note| to know)?(?=:)|(?:about|regarding|on) my \w+(?=:)|(?:as a )?reminder(?=:)"
    r"|ps(?=[:,])|p\.s\.(?= )|nb(?=:)|note to self(?=:)|for later(?=:)"
    r"|(?:ok(?:ay)? )?(?:so )?context(?=:)|question about \w+(?=:)"
    r"|basically|first of all|firstly|secondly|finally|lately|recently|these days|nowadays|currently|now"
    r"|since last \w+"
    r"|last (?:week|month|year|summer|winter|spring|fall|autumn)|this (?:week|month|year)|a (?:week|month|year) ago"
    r"|(?:so |just )*to give (?:you )?(?:some|a bit of|more) (?:context|background)|(?:some )?(?:context|background)"
    r"|you can(?= call me)|please(?= call me)|(?:since|because)(?= i(?:'m| am| have)\b)"
    r"|as of (?:today|now|\w+)|the thing is|about me|a bit about me|unfortunately|luckily|sadly|happily|fortunately"
    r"|guess what|until then|since then|as an? \w+|correction|it's that|yay|haha|lol|ugh|man|dude|bro|mate|guys"
    r"|everyone(?=[,:!.])|please note"
    r"|oops|wait|hm|alright|all right|in general|in my case|for me|personally|as for me|myself)[,:.!…-]*\s+)+",
    re.IGNORECASE,
)


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


_LIMITED = re.compile(
    r"\bused to\b.+\bbut\b|\bbut (?:i|we)\b[^,;]*\b(?:it|them|sometimes|occasionally|now and then|any ?more)\b",
    re.IGNORECASE,
)
"""Of "I used to X but now I Y" and "I like X but I can't drink it anymore" no half is true by itself."""
_NO_CLAUSE = re.compile(r"^(?:me|(?:my|our) [\w-]+(?: [\w'’-]+)?)$", re.IGNORECASE)
"""What stands before "and I" and is a part of the subject: "my partner Jo"."""


def without_lead(clause: str) -> str:
    """Return a clause without the words that only open it: "oh, by the way, I …"."""
    lead = _LEAD.match(clause)
    return clause[lead.end() :] if lead else clause
