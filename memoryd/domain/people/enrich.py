"""Finding entities in stored memories again, with finders that are too slow for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.scopes import Scopes
from memoryd.entities.finders import Find, find_entities
from memoryd.entities.resolve import mentions_among
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.entity import Form
from memoryd.model.memory import Memory, State
from memoryd.model.reports import Enriched
from memoryd.model.validation import fold

__all__ = ["enrich"]

MOST_A_RUN = 500
FEW_ENTITIES = 2


async def enrich(ports: Ports, *, now: datetime, dry_run: bool = False) -> Enriched:
    """
    Look again at facts that name at most two entities, 500 a run, oldest first, each once.

    A finder runs in a thread; the owner is locked only while what it found is written.
    """
    finders = [*ports.finders, *ports.accurate_finders]
    if not any(finder.accurate for finder in finders):
        return Enriched(skipped="no finder beside regex is loaded; see entities.strategies.accurate", dry_run=dry_run)
    examined = linked = 0
    for memory in await ports.store.unenriched(limit=MOST_A_RUN):
        few = len({mention.entity_id for mention in memory.mentions}) <= FEW_ENTITIES
        examined += few
        if dry_run:
            continue
        finds = None
        with ports.faults.spared("reading names"):
            finds = await asyncio.to_thread(find_entities, memory.content, finders) if few else None
        linked += await _look_again(memory, finds, ports, now)
    return Enriched(examined, linked, dry_run=dry_run)


async def _look_again(memory: Memory, finds: Sequence[Find] | None, ports: Ports, now: datetime) -> int:
    """Write down what was found in a memory, as it is now; return how many entities were newly linked."""

    async def decide() -> Decision[int]:
        found = await ports.entries_of([memory])
        if not found or found[0].memory.state_at(now) is State.DELETED:
            return Decision(None, answering(0))
        known = found[0].memory
        mentions = known.mentions
        if finds is not None:
            people = (await Scopes(ports).people(known.owner)).seen_by(known.narrator)
            seen = mentions_among(finds, known.subjects, people, ports.new_id, weight=known.trust.weight)
            texts = {fold(mention.text) for mention in mentions}
            kinds = {fold(mention.text): mention.type for mention in seen if mention.form is Form.NAME}
            mentions = (
                *(
                    replace(one, type=kinds.get(fold(one.text), one.type)) if one.form is Form.NAME else one
                    for one in mentions
                ),
                *(mention for mention in seen if fold(mention.text) not in texts),
            )
        update = Entry(replace(known, mentions=mentions, enrich_time=now), found[0].terms)
        linked = {mention.entity_id for mention in mentions} - {mention.entity_id for mention in known.mentions}
        return Decision(ChangeSet(updates=(update,)), answering(len(linked)))

    return await decide_and_commit([memory.owner], decide, ports, now=now, grant_id="")
