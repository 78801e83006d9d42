"""Contesting memories are linked both ways: when one goes, the others lose the link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from memoryd.model.change import Entry
from memoryd.model.memory import Memory
from memoryd.model.scope import Owner
from memoryd.store.base import Store

__all__ = ["linked_ids", "released", "without_contested"]


def without_contested(memory: Memory, *gone: str) -> Memory:
    """Return a memory that some, who are gone, contest no longer; that it was replaced stays true."""
    links = tuple(link for link in memory.contested_with if link not in gone)
    judgement = memory.judgement if links or memory.supersede_time is not None else None
    if judgement is not None and judgement.evidence in gone:
        judgement = replace(judgement, evidence=next(iter(links), ""))
    return replace(memory, contested_with=links, judgement=judgement)


def linked_ids(gone: Sequence[Memory], links: Callable[[Memory], Iterable[str]]) -> dict[Owner, set[str]]:
    """Return by owner the ids that memories are linked to, without those of the memories themselves."""
    ids = {memory.id for memory in gone}
    found: defaultdict[Owner, set[str]] = defaultdict(set)
    for memory in gone:
        found[memory.owner].update(link for link in links(memory) if link not in ids)
    return {owner: linked for owner, linked in found.items() if linked}


async def released(gone: Sequence[Memory], store: Store) -> list[Entry]:
    """Return the memories that those who go contested, without them; those who go themselves are left out."""
    ids = {memory.id for memory in gone}
    partners = linked_ids(gone, lambda memory: memory.contested_with)
    return [
        Entry(without_contested(entry.memory, *ids), entry.terms)
        for owner, linked in partners.items()
        for entry in await store.memories.entries(owner, sorted(linked))
        if entry.memory.delete_time is None
    ]
