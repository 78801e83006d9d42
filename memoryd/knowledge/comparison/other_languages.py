"""
Two statements in German, French, Dutch, Spanish, Portuguese or Italian: does the newer one tell that this has changed?

It contests, and retires nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memoryd.knowledge.comparison.rules import APART, Finding, Relation
from memoryd.knowledge.statement.other_languages import Clause
from memoryd.knowledge.statement.reader import Statement

__all__ = ["by_other_language"]

LEAST_OF_PART = 4  # letters of a word that stands in another, as Klavier in Klavierstunde
_TURNED = Finding(Relation.DOUBTFUL, "told_elsewhere", "it tells of a change of this, in another language")
_RULES: tuple[tuple[str, Callable[[Clause, Clause], bool]], ...] = (
    ("end", lambda _, old: not old.kinds & {"no", "end"}),
    ("dislike", lambda _, old: not old.kinds & {"no", "dislike"}),
    ("like", lambda _, old: bool(old.kinds & {"no", "dislike"})),
    ("begin", lambda _, old: "no" in old.kinds),
    ("favorite", lambda _, old: "favorite" in old.kinds),
)
"""By what a clause of the newer statement tells, whether it tells of an older one that it shares a word with."""
_OF_PLACES: tuple[tuple[str, Callable[[Clause, Clause], bool]], ...] = (
    ("move", lambda _, old: "home" in old.kinds),
    ("job", lambda _, old: "work" in old.kinds),
    ("switch", lambda new, old: "work" in new.kinds and "work" in old.kinds),
    ("begin", lambda new, old: "work" in new.kinds and "work" in old.kinds),
)
"""The same of an older one that it need share no word with: where someone lives, or works."""


def by_other_language(statement: Statement, known: Statement) -> Finding:
    """Return a doubt where a newer statement tells of an end or a turn of what an older one says."""
    if statement.foreign is None or known.foreign is None:
        return APART
    old = known.foreign.whole
    for new in statement.foreign.turns:
        if not _of_one(new, old):
            continue
        if _any(_OF_PLACES, new, old) or (_any(_RULES, new, old) and _share(new, old)):
            return _TURNED
    return APART


def _any(rules: Sequence[tuple[str, Callable[[Clause, Clause], bool]]], new: Clause, old: Clause) -> bool:
    return any(kind in new.kinds and turned(new, old) for kind, turned in rules)


def _of_one(new: Clause, old: Clause) -> bool:
    """Whether both are of the speaker, or of one and the same other."""
    if not new.who and not old.who:
        return True
    return not new.who.isdisjoint(old.stems) if new.who else not new.stems.isdisjoint(old.who | old.stems)


def _share(new: Clause, old: Clause) -> bool:
    """Whether a word of one is, or stands in, a word of the other; the words for who both are of do not count."""
    mine, other = new.stems - new.who - old.who, old.stems - new.who - old.who
    if not mine.isdisjoint(other):
        return True
    ours, theirs = ([stem for stem in stems if len(stem) >= LEAST_OF_PART] for stems in (mine, other))
    our_text, their_text = " ".join(ours), " ".join(theirs)  # looked through once a word: pairs would be the square
    return any(our in their_text for our in ours) or any(other in our_text for other in theirs)
