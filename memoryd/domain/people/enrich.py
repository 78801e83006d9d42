"""Finding entities in stored memories again, with finders that are too slow for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.scopes import Scopes
from memoryd.embedding.base import ModelRefused
from memoryd.entities.directory import Directory
from memoryd.entities.finders import Find, find_entities
from memoryd.entities.resolve import mentions_among
from memoryd.knowledge.grammar.names import straight
from memoryd.model import limits
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.memory import Kind, Memory, State
from memoryd.model.reports import Enriched
from memoryd.store.base import Store
from memoryd.store.memories import MemorySelector, Order

__all__ = ["UNENRICHED", "enrich"]

FEW_ENTITIES = 2
UNENRICHED = MemorySelector(kinds={Kind.FACT}, is_deleted=False, is_superseded=False, is_enriched=False)


async def enrich(ports: Ports, *, now: datetime, dry_run: bool = False) -> Enriched:
    """
    Look again at facts that name at most two entities, 50 a run, oldest first, each once; how many wait is told.

    A finder runs in a thread; the owner is locked only while what it found is written.
    """
    finders = [*ports.readers.finders, *ports.readers.accurate_finders]
    if not any(finder.accurate for finder in finders):
        return Enriched(skipped="no finder besides regex is loaded; see entities.strategies.accurate", dry_run=dry_run)
    examined = linked = denied = 0
    for memory in await ports.store.memories.scan(UNENRICHED, limit=limits.MAX_ENRICHED, order=Order.IN_TURNS):
        few = len({mention.entity_id for mention in memory.mentions}) <= FEW_ENTITIES
        examined += few
        if dry_run:
            continue
        finds = None
        with ports.shared.faults.spared("reading names"):
            try:
                finds = await asyncio.to_thread(find_entities, memory.content, finders) if few else None
            except ModelRefused as refused:  # nothing is written: it is looked at when the model is there
                examined -= few
                return await _told(ports.store, examined, linked, denied, skipped=str(refused))
        newly, no_more = await _look_again(memory, finds, ports, now)
        linked, denied = linked + newly, denied + no_more
    return await _told(ports.store, examined, linked, denied, dry_run=dry_run)


async def _told(
    store: Store, examined: int, linked: int, denied: int, *, skipped: str = "", dry_run: bool = False
) -> Enriched:
    remaining = await store.memories.count(UNENRICHED)
    return Enriched(examined, linked, skipped, dry_run, denied, remaining)


async def _look_again(memory: Memory, finds: Sequence[Find] | None, ports: Ports, now: datetime) -> tuple[int, int]:
    """Write down what was found in a memory, as it is now; return how many were newly linked, and taken back."""

    async def decide() -> Decision[tuple[int, int]]:
        entries = await ports.entries_of([memory])
        if not entries or entries[0].memory.state_at(now) is State.DELETED:
            return Decision(None, answering((0, 0)))
        known = entries[0].memory
        mentions, denied = known.mentions, 0
        if finds is not None:
            people = (await Scopes(ports).people(known.owner)).seen_by(known.narrator)
            more = mentions_among(finds, known.subjects, people, ports.new_id, weight=known.trust.weight)
            texts = {straight(mention.text) for mention in mentions}
            as_found = [_as_found(mention, finds, known, people) for mention in mentions]
            denied = sum(
                mention.type is EntityType.PERSON and seen.type is EntityType.OTHER
                for mention, seen in zip(mentions, as_found, strict=True)
            )
            mentions = (
                *as_found,
                *(mention for mention in more if straight(mention.text) not in texts),
            )
        update = Entry(replace(known, mentions=mentions, enrich_time=now), entries[0].terms)
        linked = {mention.entity_id for mention in mentions} - {mention.entity_id for mention in known.mentions}
        return Decision(ChangeSet(updates=(update,)), answering((len(linked), denied)))

    return await decide_and_commit([memory.owner], decide, ports, now=now, grant_id="")


def _as_found(mention: Mention, finds: Sequence[Find], memory: Memory, people: Directory) -> Mention:
    """
    Return a mention with the type that a finder knows better: a person who was overlooked, or what looked like one.

    Who is named by the caller, or is known by a relation, stays a person.
    """
    named = [find for find in finds if straight(find.text) == straight(mention.text) and find.form is Form.NAME]
    if mention.form is not Form.NAME or not named:
        return mention
    if mention.type is EntityType.OTHER and any(find.type is EntityType.PERSON for find in named):
        return replace(mention, type=EntityType.PERSON)
    is_told = straight(mention.text) in map(straight, memory.subjects) or people.ever_related(mention.entity_id)
    if mention.type is EntityType.PERSON and all(find.denied for find in named) and not is_told:
        return replace(mention, type=EntityType.OTHER)
    return mention
