"""What an answer shows to who may delete but not read: ids, kinds and times, and none of the texts."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from memoryd.model.entity import Profile
from memoryd.model.grant import Permission
from memoryd.model.memory import ShownMemory
from memoryd.model.results import AddResult

__all__ = ["may_read", "memory_for", "profile_for", "result_for"]

Permissions = AbstractSet[Permission]
_READ = frozenset({Permission.LIST, Permission.GET})


def may_read(permissions: Permissions) -> bool:
    """Whether memories may be read, and who is named in them."""
    return not _READ.isdisjoint(permissions)


def memory_for(memory: ShownMemory, permissions: Permissions) -> ShownMemory:
    """Return a memory as the caller may see it: without "list" and "get" only what it is and when."""
    if may_read(permissions):
        return memory
    return ShownMemory(
        id=memory.id,
        agent_id=memory.agent_id,
        scope=memory.scope,
        content="",
        kind=memory.kind,
        state=memory.state,
        create_time=memory.create_time,
        event_time=memory.create_time,
        trust=memory.trust,
    )


def profile_for(profile: Profile, name: str, permissions: Permissions) -> Profile:
    """Return someone as the caller may see them: without "list" and "get" under the name that was asked for alone."""
    if may_read(permissions):
        return profile
    return replace(profile, name=name, aliases=(), relations=(), summary="", merged_ids=())


def result_for(result: AddResult, permissions: Permissions, grant_id: str) -> AddResult:
    """Return what became of a statement: who only adds sees no text that came another way, and no names of others."""
    known = result.memory
    if known is None or may_read(permissions) or Permission.SEARCH in permissions:
        return result
    if known.grant_id != grant_id:
        return replace(result, memory=memory_for(known, permissions))
    # its own, without the names that the directory has for those that it names
    named = tuple(dict.fromkeys(mention.text for mention in known.mentions if mention.about))
    return replace(result, memory=replace(known, subjects=named, entities=()))
