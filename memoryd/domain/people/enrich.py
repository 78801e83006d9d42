"""Looking again for whom memories name, with finders that take longer than an answer may."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.entities.finders import Find, find_entities
from memoryd.entities.resolve import mentions_among
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.memory import Memory, State
from memoryd.model.validation import fold

__all__ = ["Enriched", "enrich"]

MOST_A_RUN = 50
FEW_ENTITIES = 2


@dataclass(frozen=True, slots=True)
class Enriched:
    """How many memories were looked at, how many entities were newly linked, or why nothing was done."""

    examined_count: int = 0
    linked_count: int = 0
    skipped: str = ""


async def enrich(ports: Ports, *, now: datetime, dry_run: bool = False) -> Enriched:
    """
    Look again at facts that name at most two entities, 50 a run, oldest first, each once.

    A finder runs in a thread; the owner is locked only while what it found is written.
    """
    finders = [*ports.finders, *ports.accurate_finders]
    if not any(finder.accurate for finder in finders):
        return Enriched(skipped="no finder beside regex is loaded; see entities.strategies.accurate")
    examined = linked = 0
    for memory in await ports.store.unenriched(limit=MOST_A_RUN):
        few = len({mention.entity_id for mention in memory.mentions}) <= FEW_ENTITIES
        examined += few
        if dry_run:
            continue
        finds = None
        with ports.faults.spared("reading names"):
            finds = await asyncio.to_thread(find_entities, memory.content, finders) if few else None
        async with ports.owner_lock(memory.owner):
            linked += await _look_again(memory, finds, ports, now)
    return Enriched(examined, linked)


async def _look_again(memory: Memory, finds: Sequence[Find] | None, ports: Ports, now: datetime) -> int:
    found = await ports.store.entries([memory.id])
    if not found or found[0].memory.state_at(now) is State.DELETED:
        return 0
    known = found[0].memory
    mentions = known.mentions
    if finds is not None:
        people = (await ports.people(known.owner)).seen_by(known.narrator)
        seen = mentions_among(finds, known.subjects, people, ports.new_id, weight=known.trust.weight)
        texts = {fold(mention.text) for mention in mentions}
        mentions = (*mentions, *(mention for mention in seen if fold(mention.text) not in texts))
    update = Entry(replace(known, mentions=mentions, enrich_time=now), found[0].terms)
    await ports.store.commit(ChangeSet(updates=(update,)))
    return len({mention.entity_id for mention in mentions} - {mention.entity_id for mention in known.mentions})
