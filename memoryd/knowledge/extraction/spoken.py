"""How people write when they chat, in the words of the table: "im", "me and my wife", "self employed"."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.relations import RELATION_PATTERN
from memoryd.knowledge.grammar.words import plain

__all__ = ["written_out"]

_AS_SPOKEN = {
    "im": "i am", "ive": "i have", "dont": "do not", "doesnt": "does not", "cant": "can not", "wont": "will not",
    "isnt": "is not", "arent": "are not", "didnt": "did not", "theyre": "they are", "my name's": "my name is",
    rf"^(?:me and my (?:{RELATION_PATTERN})|my (?:{RELATION_PATTERN})"
    r"(?: (?-i:[A-Z])\w+)? and (?:i|me))(?= \w)": "we",
    "have got(?! to)": "have", "has got(?! to)": "has", "bc|cuz|cos": "because",
    "(mother|father|brother|sister|son|daughter) in law": r"\1-in-law",
    "(colou?r|left|right|self|near|far|short) (blind|handed|employed|sighted)": r"\1-\2",
    "^keep your (?=answers|replies|responses|explanations|messages)": "keep ",
    " in your (?=answers|replies|responses|explanations|messages)": " in ",
    "stay at home (?=mom|mum|dad|parent|mother|father)": "stay-at-home ",
    "would (?:really |also )?(?:like|love) to(?= .*(?: one day| some ?day)$)": "want to",
    r"(my|our) (\w+)'s(?= (?:a|an|the|in|on|at|from|not|called|named|allergic|vegan|\w+ing)\b)": r"\1 \2 is",
}  # fmt: skip
_INFORMAL = tuple(
    (re.compile(rf"(?<!\w)(?:{short})(?!\B\w)", re.IGNORECASE), long) for short, long in _AS_SPOKEN.items()
)
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
