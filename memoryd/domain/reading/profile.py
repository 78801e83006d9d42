"""
What is always true of the user, whatever is asked: name, allergies, standing instructions, home and so on.

What belongs to it is read of each statement when it is stored (`knowledge.profile`), or said by its category. Of a
person whom a prompt names it is told likewise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

import numpy as np

from memoryd.domain.reading.presentation import present, said_by
from memoryd.domain.scopes import Scopes
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.language.text_traits import topic_in
from memoryd.knowledge.profile import CATEGORIES, ONE_AT_A_TIME, Topic, topic_of_category
from memoryd.model.caller import Caller
from memoryd.model.memory import USER_WORDS, Kind, Memory
from memoryd.model.query import Filter
from memoryd.model.results import ProfileItem
from memoryd.model.scope import Owner
from memoryd.model.validation import fold, text_digest

__all__ = ["MOST_ITEMS", "profile_of"]

MOST_ITEMS = 50
MOST_READ = 500  # statements that are looked at, the newest
STANDING = Filter(kinds=frozenset({Kind.FACT, Kind.PREFERENCE, Kind.PROCEDURE}))


async def profile_of(
    caller: Caller, scopes: Scopes, now: datetime, *, named: Collection[tuple[Owner, str]] = ()
) -> list[ProfileItem]:
    """
    Return what is always true of the user, the most important topics first, then of those who are `named` (by root).

    Of a topic what is of higher trust and newer comes first; of a name and a home only that is told. What a newer one
    of these contests is left out. What others say of themselves in a chat is never the user's own.
    """
    own: list[tuple[Topic, Memory]] = []
    others: list[tuple[Topic, Memory]] = []
    for owner in scopes.seen_by(caller):
        index = await scopes.index(owner)
        if index is None:  # too large for memory: nothing is read of it that no question names
            continue
        members = frozenset(one for whose, root in named if whose == owner for one in index.people.members(root))
        for topic, of_user, memory in _standing(index, now):
            if of_user and _is_own(memory, caller):
                own.append((topic, memory))
            elif any(mention.entity_id in members for mention in memory.mentions):
                others.append((topic, memory))
    kept = [*_told(own, ONE_AT_A_TIME), *_told(others, frozenset())][:MOST_ITEMS]
    memories = await present([memory for _, memory in kept], caller, scopes.ports, now, scopes=scopes)
    return [ProfileItem(topic.name.lower(), memory) for (topic, _), memory in zip(kept, memories, strict=True)]


def _standing(index: ScopeIndex, now: datetime) -> Iterator[tuple[Topic, bool, Memory]]:
    """Yield the statements of an index that are of a profile, the newest first, and whether of the user."""
    passing = index.mask(STANDING, now)
    numbers = index.traits.standing(len(passing))
    wanted = numbers > 0
    for category in CATEGORIES:
        column = index.columns.filter_terms.get(f"category:{category}")
        if column is not None:
            some = column.view()
            wanted[some[some < len(wanted)]] = True
    rows = np.flatnonzero(passing & wanted)
    for row in rows[-MOST_READ:][::-1].tolist():
        memory = index.memory_at(row)
        if memory is None:
            continue
        read = topic_in(int(numbers[row])) if numbers[row] else None
        topic = topic_of_category(memory.category) if memory.category else None
        if topic is None and read is not None:
            topic = read[0]
        if topic is not None:
            yield topic, read[1] if read is not None else True, memory


def _is_own(memory: Memory, caller: Caller) -> bool:
    """Whether a statement is the user's about themselves."""
    user = {*USER_WORDS, fold(caller.user_id or "")}
    return said_by(memory, caller) == "" and all(fold(subject) in user for subject in memory.subjects)


def _told(found: list[tuple[Topic, Memory]], once: Collection[Topic]) -> list[tuple[Topic, Memory]]:
    """Return what is told of statements: sorted, each text once, of some topics one, none that a newer one contests."""
    found.sort(key=lambda one: (one[0], -one[1].trust.weight, -one[1].create_time.timestamp(), one[1].id))
    there = {memory.id: memory for _, memory in found}
    kept: list[tuple[Topic, Memory]] = []
    seen: set[bytes | Topic] = set()
    for topic, memory in found:
        newer = (there[one] for one in memory.contested_with if one in there)
        outdated = any(one.create_time > memory.create_time and not memory.trust.outranks(one.trust) for one in newer)
        digest = text_digest(memory.content)
        if outdated or digest in seen or topic in seen:
            continue
        seen.add(digest)
        if topic in once:
            seen.add(topic)
        kept.append((topic, memory))
    return kept
