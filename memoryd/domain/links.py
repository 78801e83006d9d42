"""
What points at a memory from elsewhere, and goes or is changed when the memory goes.

Memories that contest or replace each other are linked both ways. A name that was given by hand is kept as long as any
memory names the entity.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.change import PURGE, ChangeSet, Entry
from memoryd.domain.ports import Ports
from memoryd.entity import Entity
from memoryd.index.directory import Directory
from memoryd.model import Memory, Owner, Trust

__all__ = ["purge_of", "released", "without_contested"]


def without_contested(memory: Memory, *gone: str) -> Memory:
    """Return a memory that some, who are gone, contest no longer; that it was replaced stays true."""
    links = tuple(link for link in memory.contested_with if link not in gone)
    judgement = memory.judgement if links or memory.supersede_time is not None else None
    if judgement is not None and judgement.evidence in gone:
        judgement = replace(judgement, evidence=next(iter(links), ""))
    return replace(memory, contested_with=links, judgement=judgement)


async def released(gone: Sequence[Memory], ports: Ports) -> list[Entry]:
    """Return the memories that those who go contested, without them; those who go themselves are left out."""
    ids = {memory.id for memory in gone}
    partners = sorted({link for memory in gone for link in memory.contested_with} - ids)
    if not partners:
        return []
    return [
        Entry(without_contested(entry.memory, *ids), entry.terms)
        for entry in await ports.store.entries(partners)
        if entry.memory.delete_time is None
    ]


async def purge_of(gone: Sequence[Memory], ports: Ports, *, now: datetime, by: Trust = Trust.HOST) -> ChangeSet:
    """
    Return the change that erases memories, their ids in what stays, and what was decided of whom nobody names.

    What a sandbox takes back with a purge it has not replaced either: what came through another grant is live again.
    Else its statement would be gone, and with it whoever had silenced the other one.
    """
    ids = {memory.id for memory in gone}
    partners = {link for memory in gone for link in memory.links} - ids
    entries = await ports.store.entries(sorted(partners)) if partners else []
    heirs = {memory.id: memory for memory in gone} if Trust.HOST.outranks(by) else {}
    updates = [replace(entry, memory=_without(_revived(entry.memory, heirs), ids)) for entry in entries]
    unnamed: list[Entity] = []
    kept: list[Entity] = []
    for owner in {memory.owner for memory in gone if memory.mentions}:
        lost, others = await _unnamed(owner, [memory for memory in gone if memory.owner == owner], ports)
        unnamed += lost
        kept += others
    return ChangeSet(
        purges=tuple(gone),
        updates=tuple(updates),
        entities=tuple(kept),
        forget_entities=tuple(unnamed),
        jobs={PURGE: now},
    )


def _revived(memory: Memory, heirs: Mapping[str, Memory]) -> Memory:
    heir = heirs.get(memory.superseded_by)
    if heir is None or heir.grant_id == memory.grant_id or heir.supersede_time is not None:
        return memory
    return replace(memory, supersede_time=None, superseded_by="", supersede_trust=None, judgement=None)


def _without(memory: Memory, gone: Collection[str]) -> Memory:
    """Return a memory that names none of some, who are erased."""
    return replace(
        without_contested(memory, *gone),
        supersedes=tuple(link for link in memory.supersedes if link not in gone),
        superseded_by="" if memory.superseded_by in gone else memory.superseded_by,
    )


async def _unnamed(owner: Owner, gone: Sequence[Memory], ports: Ports) -> tuple[list[Entity], list[Entity]]:
    """Return what was decided of entities that no memory in any state names any more, and what names those as apart."""
    rows = await ports.store.entities(owner)
    if not rows:
        return [], []
    people, ids = Directory(rows), {memory.id for memory in gone}
    named = {one for memory in gone for mention in memory.mentions for one in (mention.entity_id, mention.same_as)}
    told = {one for row in rows for one in (row.id, row.merged_into, *row.apart)}
    lost: set[str] = set()
    for members in {people.members(one) for one in named & told}:
        if not await ports.store.is_named(owner, sorted(members), but=ids):
            lost |= members
    kept = [
        replace(row, apart=tuple(one for one in row.apart if one not in lost))
        for row in rows
        if row.id not in lost and lost.intersection(row.apart)
    ]
    return [row for row in rows if row.id in lost], kept
