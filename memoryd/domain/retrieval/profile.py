"""
What is always true of the user, whatever is asked: name, allergies, standing instructions, home and so on.

What belongs to it is read of each statement when it is stored (`knowledge.profile`), or said by its category. Of a
person that a prompt names it is told likewise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.retrieval.presentation import present, said_by
from memoryd.domain.scopes import Scopes
from memoryd.domain.shares import first_places
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.profile import CATEGORIES, MOST_CHARACTERS, ONE_AT_A_TIME, Standing, Topic, topic_of_category
from memoryd.knowledge.text_traits import OVER, standing_in
from memoryd.model.caller import Caller
from memoryd.model.memory import USER_WORDS, Kind, Memory
from memoryd.model.query import Filter
from memoryd.model.results import ProfileItem
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.model.validation import fold
from memoryd.turns import in_turns, let_others

__all__ = ["profile_of"]

MOST_ITEMS = 50
MOST_READ = 500  # statements of each trust that are looked at, the newest
STANDING = Filter(kinds=frozenset({Kind.FACT, Kind.PREFERENCE, Kind.PROCEDURE}))


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement of a profile."""

    topic: Topic
    is_alone: bool
    """Whether it is of no other topic."""
    memory: Memory


async def profile_of(
    caller: Caller,
    scopes: Scopes,
    now: datetime,
    *,
    named: Collection[tuple[Owner, str]] = (),
    exclude_session_ids: Collection[str] = (),
) -> list[ProfileItem]:
    """
    Return what is always true of the user, the most important topics first, then of those who are `named` (by root).

    Of a topic what is of higher trust and newer comes first; of a name and a home only that is told. What a newer one
    of these contests is left out. What others say of themselves in a chat is never the user's own. Half of MOST_ITEMS
    is for higher trust than a sandbox's, as far as there is so much of it. Of a scope that is too large for memory
    nothing is read.
    """
    own: list[_Statement] = []
    others: list[_Statement] = []
    for owner in scopes.seen_by(caller):
        index = await scopes.index(owner)
        if index is None:
            continue
        members = frozenset(member for whose, root in named if whose == owner for member in index.people.members(root))
        await let_others()
        async for standing, memory in in_turns(_standing(index, now)):
            if memory.source.session_id and memory.source.session_id in exclude_session_ids:
                continue
            statement = _Statement(standing.topic, not standing.is_mixed, memory)
            if standing.of_user and _is_own(memory, caller):
                own.append(statement)
            elif any(mention.entity_id in members for mention in memory.mentions):
                others.append(statement)
    statements = [*_told(own, ONE_AT_A_TIME), *_told(others, frozenset())]
    chosen = first_places(statements, MOST_ITEMS, lambda item: item.memory.trust.is_sandbox)
    memories = await present([item.memory for item in chosen], caller, scopes.ports, now, scopes=scopes)
    return [ProfileItem(item.topic.name.lower(), memory) for item, memory in zip(chosen, memories, strict=True)]


def _standing(index: ScopeIndex, now: datetime) -> Iterator[tuple[Standing, Memory]]:
    """Yield the statements of an index that are of a profile, the newest of each trust."""
    passing = index.mask(STANDING, now)
    numbers = index.traits.standing(len(passing))
    wanted = numbers > 0
    for category in CATEGORIES:
        column = index.columns.filter_terms.get(f"category:{category}")
        if column is not None:
            some = column.view()
            wanted[some[some < len(wanted)]] = True
    for row in _newest(index, np.flatnonzero(passing & wanted)):
        memory = index.memory_at(row)
        if memory is None or len(memory.content) > MOST_CHARACTERS or numbers[row] == OVER:
            continue
        read = standing_in(int(numbers[row])) if numbers[row] else None
        said = topic_of_category(memory.category) if memory.category else None
        if read is None and said is not None:
            yield Standing(said, of_user=True, is_mixed=True), memory
        elif read is not None:
            topic = read.topic if said in {None, Topic.PERSONAL} else said
            yield read._replace(topic=topic, is_mixed=read.is_mixed or topic is not read.topic), memory


def _newest(index: ScopeIndex, rows: NDArray[np.int64]) -> list[int]:
    """Return the newest documents of a sandbox's trust, and those of higher, so that neither hides the other."""
    trusted = index.columns.trusts.view()[rows] > Trust.SANDBOX.weight
    return [row for some in (rows[trusted], rows[~trusted]) for row in some[-MOST_READ:].tolist()]


def _is_own(memory: Memory, caller: Caller) -> bool:
    """Whether a statement is the user's about themselves."""
    user = {*USER_WORDS, fold(caller.user_id or "")}
    return said_by(memory, caller) == "" and all(fold(subject) in user for subject in memory.subjects)


def _told(statements: list[_Statement], once: Collection[Topic]) -> list[_Statement]:
    """Return what is told of statements: sorted, each text once, of some topics one, none that a newer one contests."""
    statements.sort(
        key=lambda statement: (
            statement.topic,
            -statement.memory.trust.weight,
            -statement.memory.create_time.timestamp(),
            statement.memory.id,
        )
    )
    there = {statement.memory.id: statement.memory for statement in statements}
    best: dict[str, _Statement] = {}
    """Of each text the one of the highest trust: no copy under another category stands for it."""
    for item in statements:
        known = best.get(fold(item.memory.content))
        if known is None or item.memory.trust.outranks(known.memory.trust):
            best[fold(item.memory.content)] = item
    chosen: list[_Statement] = []
    seen: set[Topic] = set()
    for item in statements:
        memory, is_single = item.memory, item.is_alone and item.topic in once
        newer = (there[other] for other in memory.contested_with if other in there)
        outdated = any(
            other.create_time > memory.create_time and not memory.trust.outranks(other.trust) for other in newer
        )
        if outdated or best[fold(memory.content)] is not item or (is_single and item.topic in seen):
            continue
        if is_single:
            seen.add(item.topic)
        chosen.append(item)
    return chosen
