"""
Erasing: what else changes when memories go for good.

Their ids go out of those that they were linked to. A name that was given by hand is kept as long as any memory names
the entity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.forgetting.derived import digests_citing
from memoryd.domain.links import linked_ids, without_contested
from memoryd.domain.ports import Ports
from memoryd.domain.writing.revival import come_back, not_replaced
from memoryd.entities.directory import Directory
from memoryd.errors import Conflict
from memoryd.model.change import PURGE, ChangeSet, Entry
from memoryd.model.entity import Entity
from memoryd.model.memory import Memory
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.store.base import Store

__all__ = ["not_apart", "purge_of"]


async def purge_of(gone: Sequence[Memory], ports: Ports, *, now: datetime, by: Trust = Trust.HOST) -> ChangeSet:
    """
    Return the change that erases memories and all that names them.

    That is their ids in neighbours, digests that are made from them, and decisions about entities that no memory names.

    If a sandbox purges what had replaced a memory of another grant, that memory counts again. Otherwise a sandbox could
    silence others and leave no trace.
    """
    gone = [*gone, *await digests_citing(gone, ports.store, now)]
    ids = {memory.id for memory in gone}
    changed = {
        entry.memory.id: entry
        for owner, linked in linked_ids(gone, lambda memory: memory.links).items()
        for entry in await ports.store.memories.entries(owner, sorted(linked))
    }
    if Trust.HOST.outranks(by):
        changed |= await _revived(list(changed.values()), {memory.id: memory for memory in gone}, ports, now, by)
    unnamed: list[Entity] = []
    entities: list[Entity] = []
    for owner in {memory.owner for memory in gone if memory.mentions}:
        lost, others = await _unnamed(owner, [memory for memory in gone if memory.owner == owner], ports.store)
        unnamed += lost
        entities += others
    return ChangeSet(
        purges=tuple(gone),
        updates=tuple(replace(entry, memory=_without(entry.memory, ids)) for entry in changed.values()),
        entities=tuple(entities),
        forget_entities=tuple(unnamed),
        marks={PURGE: now},
    )


async def _revived(
    entries: Sequence[Entry], heirs: Mapping[str, Memory], ports: Ports, now: datetime, by: Trust
) -> dict[str, Entry]:
    """Return the memories that count again without their heirs, with the links that change; the rest stays replaced."""
    changed: dict[str, Entry] = {}
    for entry in entries:
        old = entry.memory
        if not _is_given_back(old, heirs, by):
            continue
        back = not_replaced(old)
        twins = [entry.memory for entry in changed.values() if entry.memory.owner == back.owner]
        if any(memory.content == back.content or (back.key and memory.key == back.key) for memory in twins):
            continue
        try:
            back, rivals = await come_back(back, [], entry, ports, now, gone=heirs)
        except Conflict:
            continue
        changed |= {rival.memory.id: rival for rival in rivals} | {back.id: replace(entry, memory=back)}
    return changed


def _is_given_back(old: Memory, heirs: Mapping[str, Memory], by: Trust) -> bool:
    """Whether a purge brings a memory back: its replacements all go, came through another grant, by no higher trust."""
    heir = heirs.get(old.superseded_by)
    if heir is None or old.delete_time is not None or heir.owner != old.owner:
        return False
    chain = [old, heir]
    while chain[-1].superseded_by in heirs:
        chain.append(heirs[chain[-1].superseded_by])
    still_replaced = bool(chain[-1].superseded_by)
    decided = any(memory.supersede_trust is not None and memory.supersede_trust.outranks(by) for memory in chain)
    return heir.grant_id != old.grant_id and not still_replaced and not decided


def _without(memory: Memory, gone: Collection[str]) -> Memory:
    """Return a memory that names none of some, who are erased."""
    return replace(
        without_contested(memory, *gone),
        supersedes=tuple(link for link in memory.supersedes if link not in gone),
        superseded_by="" if memory.superseded_by in gone else memory.superseded_by,
    )


async def _unnamed(owner: Owner, gone: Sequence[Memory], store: Store) -> tuple[list[Entity], list[Entity]]:
    """Return what was decided of entities that no memory in any state names any more, and what names those as apart."""
    rows = await store.people.entities(owner)
    if not rows:
        return [], []
    people, ids = Directory(rows), {memory.id for memory in gone}
    named = {one for memory in gone for mention in memory.mentions for one in (mention.entity_id, mention.same_as)}
    told = {one for row in rows for one in (row.id, row.merged_into, *row.apart)}
    lost: set[str] = set()
    for members in {people.members(one) for one in named & told}:
        if not await store.people.is_named(owner, sorted(members), but=ids):
            lost |= members
    return [row for row in rows if row.id in lost], not_apart(rows, lost)


def not_apart(rows: Iterable[Entity], lost: Collection[str]) -> list[Entity]:
    """Return the decisions that stay and change, as they keep someone apart from some who are lost."""
    return [
        replace(row, apart=tuple(one for one in row.apart if one not in lost))
        for row in rows
        if row.id not in lost and not set(row.apart).isdisjoint(lost)
    ]
