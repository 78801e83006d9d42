"""
Two statements in German, French, Dutch, Spanish, Portuguese or Italian: does the newer one tell that this has changed?

It contests, and retires nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from memoryd.knowledge.comparison.finding import APART, Finding, Relation
from memoryd.knowledge.statement.other_languages import Clause
from memoryd.knowledge.statement.reader import Statement

__all__ = ["by_other_language"]

LEAST_OF_PART = (
    4  # letters of a word that stands in another: Abo in Jahresabo does not count, Klavier in Klavierstunde does
)
_TURNED = Finding(Relation.DOUBTFUL, "told_elsewhere", "it tells of a change of this, in another language")
_RULES: tuple[tuple[str, Callable[[Clause, Clause], bool]], ...] = (
    ("end", lambda new, old: _share(new, old) and not old.kinds & {"no", "end"}),
    ("dislike", lambda new, old: _share(new, old) and not old.kinds & {"no", "dislike"}),
    ("like", lambda new, old: _share(new, old) and bool(old.kinds & {"no", "dislike"})),
    ("begin", lambda new, old: _share(new, old) and "no" in old.kinds),
    ("favorite", lambda new, old: _share(new, old) and "favorite" in old.kinds),
    ("move", lambda _, old: "home" in old.kinds),
    ("job", lambda _, old: "work" in old.kinds),
    ("switch", lambda new, old: "work" in new.kinds and "work" in old.kinds),
    ("begin", lambda new, old: "work" in new.kinds and "work" in old.kinds),
)
"""By what a clause of the newer statement tells, whether it tells of the older one."""


def by_other_language(said: Statement, known: Statement) -> Finding:
    """Return a doubt where a newer statement tells of an end or a turn of what an older one says."""
    if said.foreign is None or known.foreign is None:
        return APART
    old = known.foreign.whole
    for new in said.foreign.turns:
        if _of_one(new, old) and any(kind in new.kinds and turned(new, old) for kind, turned in _RULES):
            return _TURNED
    return APART


def _of_one(new: Clause, old: Clause) -> bool:
    """Whether both are of the speaker, or of one and the same other."""
    if not new.who and not old.who:
        return True
    return not new.who.isdisjoint(old.stems) if new.who else not new.stems.isdisjoint(old.who | old.stems)


def _share(new: Clause, old: Clause) -> bool:
    """Whether a word of one is, or stands in, a word of the other."""
    if not new.stems.isdisjoint(old.stems):
        return True
    return any(
        short in long
        for one in new.stems
        for other in old.stems
        for short, long in (sorted((one, other), key=len),)
        if len(short) >= LEAST_OF_PART
    )
