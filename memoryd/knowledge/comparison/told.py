"""
What the idioms of a newer statement turn: what is near them is in doubt. They retire nothing.

"Catan has been gathering dust" turns "my favourite board game is Catan": an end, or a taste that has turned. An older
statement has a thing, and what comes beside it: "I drink gin at parties" is of gin, and of parties.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memoryd.knowledge.comparison.finding import APART, Finding, Relation
from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.grammar.values import names_of, value_of
from memoryd.knowledge.grammar.words import Words
from memoryd.knowledge.lexicon.load import stems, table
from memoryd.knowledge.lexicon.stems import stem
from memoryd.knowledge.statement.reader import Statement
from memoryd.knowledge.statement.told import EMPTY, LED, Told, Turn

__all__ = ["by_told"]

MOST_OF_THING = 0.7
"""Share of the words of a thing that stand near an idiom which turns it; chosen on `tests/knowledge/pairs.txt`."""
_TOLD = Finding(Relation.DOUBTFUL, "told", "it tells of an end or a turn of what this says")
_ENDED = compiled(r"\b{ended}\b")
"""What tells of an end already."""
_HAVE_GOT = re.compile(r"\bhave got\b", re.IGNORECASE)
_DENIED = compiled(r"\b{denied}\b")
"""What says of a thing that it is not so, or not liked."""
_AFTER_THING = compiled("{after_thing}")
"""Behind it stands what is beside the thing."""
_WHOSE = re.compile(r"^(?:My|Our) [\w-]+ [A-Z][\w-]+ ")
"""Of "my dog Kira is afraid of thunder" who it is of."""
_SPEAKER = re.compile(r"^(?:User(?:'s)?|I|My|The user(?:'s)?|We|Our)\b")
_OF = compiled("{of}")
_TRAIT = compiled("{trait}")
"""What a thing has, which is not gone with it, or at once."""
_NOT_HAD = compiled(r"\b{not_had}\b")
_KINDS = tuple(
    (frozenset(stem(kind.split())), frozenset(stem(members.split()))) for kind, members in table("nouns.kind").items()
)
"""A kind of things, and some of it: who gives up alcohol drinks no beer, and who has got a dog has a pet."""
_LIKED = stems("frames.part.liked")
_PLAIN = EMPTY | stems("frames.word.plain_words")
"""Words that say what is done with a thing, how much or when, and not which one."""


def by_told(said: Statement, known: Statement, ours: Words, theirs: Words) -> Finding:
    """Return a doubt where an idiom of the newer statement stands beside what the older one is about, and turns it."""
    old = known.text
    if _is_given_up(said, known, ours, theirs):
        return _TOLD
    if theirs.leading and theirs.leading != ours.leading:
        return APART  # of somebody else
    happened = known.happened and not (_HAVE_GOT.search(old) or _NOT_HAD.search(old))
    if not said.told or happened or _ENDED.search(old):
        return APART
    turns = _turns_of(old)
    leaders = value_of(" ".join(theirs.leading))
    thing, *others, kind = (part - leaders for part in _parts_of(old))
    for idiom in said.told:
        if idiom.turn in turns and _is_of(idiom, thing, [*others, *([kind] if idiom.ends_it else [])]):
            return _TOLD
    return APART


def _is_given_up(said: Statement, known: Statement, ours: Words, theirs: Words) -> bool:
    """Whether all of a thing that is over stands in an older statement, which says of now that it is so."""
    if said.hedged or said.limited or said.adding or known.happened or known.turning or theirs.negations:
        return False
    held = value_of(_OF.sub("", known.text, count=1)) - EMPTY
    of_another = frozenset[str]() if theirs.leading == ours.leading else value_of(" ".join(theirs.leading))
    return any(told.turn is Turn.OVER and told.object and of_another <= told.object <= held for told in said.told)


def _turns_of(old: str) -> frozenset[Turn]:
    """Return what would turn an older text."""
    if _NOT_HAD.search(old):
        return frozenset((Turn.FOR, Turn.GOT))
    return frozenset((Turn.FOR,)) if _DENIED.search(old) else frozenset((Turn.OVER, Turn.AGAINST))


def _is_of(idiom: Told, thing: frozenset[str], others: Sequence[frozenset[str]]) -> bool:
    """Whether most of a thing stands near an idiom, or all of something else that says which one it is."""
    kinds = frozenset[str]().union(*(_also(idiom.near, *kind) for kind in _KINDS))
    near = idiom.near | kinds
    if thing and len(thing & near) >= MOST_OF_THING * len(thing) and idiom.things & (thing | kinds):
        return True
    return any(words and words <= near and not idiom.things.isdisjoint(words) for words in others)


def _also(near: frozenset[str], kind: frozenset[str], members: frozenset[str]) -> frozenset[str]:
    return kind | members if near & kind else kind if near & members else frozenset()


def _parts_of(old: str) -> tuple[frozenset[str], ...]:
    """Return the stems of the thing that a text is about, of what comes beside it, of its names, and of its kind."""
    said = LED.sub("", old, count=1)
    of = _OF.match(said)
    kind = frozenset[str]() if of is None or _TRAIT.search(of[0]) else value_of(of["kind"]) - _PLAIN
    said = said[of.end() :] if of else said
    parts = [words for part in _AFTER_THING.split(said) if (words := _telling(part))]
    thing, beside, *_ = (*parts, frozenset[str](), frozenset[str]())
    return thing or value_of(said) - _LIKED, beside, names_of(_SPEAKER.sub("", _WHOSE.sub("", old))), kind


def _telling(text: str) -> frozenset[str]:
    return frozenset(word for word in value_of(text) - _PLAIN if not word[0].isdigit())
