"""Memories that contest each other are linked both ways: whoever goes is taken out of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memoryd.domain.ports import Ports
from memoryd.model.change import Entry
from memoryd.model.memory import Memory

__all__ = ["released", "without_contested"]


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
