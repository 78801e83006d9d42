"""
What the idioms of a newer statement turn: what is near them is in doubt. They retire nothing.

"Catan has been gathering dust" turns "my favourite board game is Catan": an end, or a taste that has turned. An older
statement has a thing, and what comes beside it: "I drink gin at parties" is of gin, and of parties.
"""

from __future__ import annotations

import re

from memoryd.knowledge.claims.giving_up import EMPTY, LED
from memoryd.knowledge.claims.idioms import Idiom, Turn
from memoryd.knowledge.claims.statement import Statement
from memoryd.knowledge.compare.finding import APART, Finding, Relation
from memoryd.knowledge.language.stems import stem, word_set
from memoryd.knowledge.language.values import names_of, value_of
from memoryd.knowledge.language.words import Words

__all__ = ["by_idioms"]

MOST_OF_THING = 0.7
"""Share of the words of a thing that stand near an idiom which turns it; chosen on `tests/knowledge/pairs.txt`."""
_TOLD = Finding(Relation.DOUBTFUL, "told", "it tells of an end or a turn of what this says")
_ENDED = re.compile(
    r"\b(?:no longer|any ?more|quit|stopped|gave up|given up|used to|cancell?ed|sold|died|passed away|broke up|split up"
    r"|resigned|retired|dropped|former(?:ly)?"
    r"|left(?! (?:arm|hand|leg|foot|knee|eye|ear|side|shoulder|hip|ankle|wrist)))\b",
    re.IGNORECASE,
)
"""What tells of an end already."""
_HAVE_GOT = re.compile(r"\bhave got\b", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(?:dislikes?|hates?|detests?|loathes?|despises?|not(?! (?:get|live|imagine|only|just|miss))|never|avoids?"
    r"|skips?|no|afraid|scared|fears?|barely|hardly|without|allergic)\b",
    re.IGNORECASE,
)
"""What says of a thing that it is not so, or not liked."""
_BESIDE = re.compile(
    r"[,.;(]| (?:for|at|in|after|before|every|each|during|because|when|since|most|all day|twice|once|with|on|as"
    r"|by) ",
    re.IGNORECASE,
)
"""Behind it stands what is beside the thing."""
_SPEAKER = re.compile(r"^(?:User(?:'s)?|I|My|The user(?:'s)?|We|Our)\b")
_OF = re.compile(r"^(?:my|our|the|his|her|user's) [\w' -]{1,60}? (?:is|are|was|were) ", re.IGNORECASE)
_PLAIN = EMPTY | frozenset(
    stem(
        word_set("""
    like love enjoy adore prefer hate dislike use take have own eat drink play watch read live work go drive speak
    listen keep run want need do get make write cook buy pay train attend belong member follow really very much fan
    fond into currently week year weekend family small large big good first second regular daily usually often user
    skip avoid never mostly plan wear collect learn study volunteer weigh earn answer response not all only most treat
    serve spend busy got ask if stand bear bother enough moment based call usual person always every evening morning
    night weekly monthly rather local
""")
    )
)
"""Words that say what is done with a thing, how much or when, and not which one."""


def by_idioms(said: Statement, known: Statement, ours: Words, theirs: Words) -> Finding:
    """Return a doubt where an idiom of the newer statement stands beside what the older one is about, and turns it."""
    old = known.text
    if theirs.leading and theirs.leading != ours.leading:
        return APART  # of somebody else
    if not said.idioms or _ENDED.search(old) or (known.happened and not _HAVE_GOT.search(old)):
        return APART
    turns = {Turn.FOR} if _DENIED.search(old) else {Turn.OVER, Turn.AGAINST}
    leaders = value_of(" ".join(theirs.leading))
    thing, beside = (part - leaders for part in _parts_of(old))
    names = names_of(_SPEAKER.sub("", old)) - leaders
    for idiom in said.idioms:
        if idiom.turn in turns and _turns(idiom, thing, beside, names):
            return _TOLD
    return APART


def _turns(idiom: Idiom, thing: frozenset[str], beside: frozenset[str], names: frozenset[str]) -> bool:
    """Whether most of a thing stands near an idiom, or all that is beside it, or every name."""
    if idiom.things.isdisjoint(thing | beside | names):
        return False
    if thing and len(thing & idiom.near) >= MOST_OF_THING * len(thing):
        return True
    return any(words and words <= idiom.near for words in (beside, names))


def _parts_of(old: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the stems of the thing that a text is about, and of what comes next beside it."""
    said = _OF.sub("", LED.sub("", old, count=1), count=1)
    parts = [words for part in _BESIDE.split(said) if (words := value_of(part) - _PLAIN)]
    thing, beside, *_ = (*parts, frozenset[str](), frozenset[str]())
    return thing, beside
