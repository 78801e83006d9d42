"""Memories as an answer shows them: with their state now, entity names, speaker and time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from memoryd.domain.ports import Ports
from memoryd.domain.scopes import Scopes
from memoryd.entities.directory import Directory
from memoryd.knowledge.grammar.names import straight
from memoryd.knowledge.grammar.times import has_relative_time
from memoryd.model.caller import Caller
from memoryd.model.entity import EntityRef
from memoryd.model.memory import UNKNOWN, USER_WORDS, VOUCHED, Kind, Memory, ShownMemory
from memoryd.model.trust import Trust
from memoryd.model.validation import fold
from memoryd.turns import in_turns

__all__ = ["present", "present_one", "said_by", "said_time"]


async def present(
    memories: Sequence[Memory], caller: Caller, ports: Ports, now: datetime, *, scopes: Scopes | None = None
) -> list[ShownMemory]:
    """Return memories with their state now and what a caller needs to understand them."""
    days = ports.policy.date_after_days
    scopes = scopes or Scopes(ports)
    named = any(memory.mentions for memory in memories)
    owners = dict.fromkeys(memory.owner for memory in memories) if named else ()
    people = {owner: (await scopes.people(owner)).seen_by(caller.reads_as(owner)) for owner in owners}
    names = {owner: _Names(known) for owner, known in people.items()}
    return [
        memory.shown(
            now,
            **(_entity_names(memory, names[memory.owner]) if memory.mentions else {}),
            said_by=said_by(memory, caller),
            said_time=said_time(memory, now, days),
        )
        async for memory in in_turns(memories)
    ]


async def present_one(memory: Memory, caller: Caller, ports: Ports, now: datetime) -> ShownMemory:
    """Return one memory as `present` does."""
    return (await present([memory], caller, ports, now))[0]


class _Names(dict[str, str]):
    """What entities are called, worked out when it is first asked; of one that has no name, its id."""

    def __init__(self, people: Directory) -> None:
        super().__init__()
        self.root = people.root
        self._name = people.name

    def __missing__(self, root: str) -> str:
        name = self[root] = self._name(root)
        return name


def _entity_names(memory: Memory, names: _Names) -> dict[str, Any]:
    """Return the present names of a memory's entities, as its subjects and as its entities."""
    refs: dict[str, EntityRef] = {}
    for mention in memory.mentions:
        root = names.root(mention.entity_id)
        known = refs.get(root)
        about = mention.about or (known is not None and known.about)
        name = names[root]
        refs[root] = EntityRef(root, mention.text if name == root else name, about)
    meant = {straight(m.text): names.root(m.entity_id) for m in memory.mentions} if memory.subjects else {}
    called = [
        refs[meant[straight(subject)]].name if straight(subject) in meant else subject for subject in memory.subjects
    ]
    called += [ref.name for ref in refs.values() if ref.about]
    return {"subjects": tuple(dict.fromkeys(called)), "entities": tuple(refs.values())}


def _is_digest(memory: Memory) -> bool:
    """Whether it is one of the daemon's own, in which no one says "I"."""
    return memory.kind is Kind.REFLECTION and not (memory.source.speaker or memory.author or memory.grant_id)


def said_by(memory: Memory, caller: Caller) -> str:
    """
    Return who says "I" in a memory: the speaker, else its author; "" if it is the asking user, or no one.

    A speaker is a claim. It makes no one the asking user where the author of a chat's memory is known, or where the
    host does not vouch for the memory. Where the host does not vouch for a speaker, the answer says who does.
    """
    speaker, author, user = memory.source.speaker, memory.author, caller.user_id or ""
    if _is_digest(memory):
        return ""
    is_user = not speaker or fold(speaker) in {*USER_WORDS, fold(user)}
    if memory.scope.user_id is not None:
        return "" if is_user else speaker
    if user and author == user and is_user:
        return ""
    claimed = "" if fold(speaker) in USER_WORDS else speaker
    if not claimed:
        return author or UNKNOWN
    claims_to_be_reader = bool(user) and fold(claimed) == fold(user)
    if claims_to_be_reader and not author and memory.trust is Trust.HOST:
        return ""
    vouched = memory.trust is Trust.HOST or fold(claimed) == fold(author)
    return claimed if vouched and not claims_to_be_reader else f"{claimed}{VOUCHED}{author or UNKNOWN} says"


def said_time(memory: Memory, now: datetime, date_after_days: float) -> datetime | None:
    """Return the time of a memory where a reader needs it: with a relative time, a time of its own, or when old."""
    old = now - memory.event_time >= timedelta(days=date_after_days)
    return memory.event_time if memory.own_event_time or old or has_relative_time(memory.content) else None
