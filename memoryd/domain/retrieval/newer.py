"""
What a hit carries so that an outdated answer never stands alone: the newest statement that contests it.

It is a remark and no hit: it displaces none, and passes no filter that it would not pass by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from memoryd.domain.retrieval.presentation import present
from memoryd.domain.scopes import Scopes
from memoryd.model.caller import Caller
from memoryd.model.memory import Memory, ShownMemory, State
from memoryd.model.query import Filter

__all__ = ["newer_of"]


async def newer_of(
    memories: Sequence[Memory], wanted: Filter, caller: Caller, scopes: Scopes, now: datetime
) -> Mapping[str, ShownMemory]:
    """
    Return by id, of those memories that a newer one contests, the newest such one as the caller is shown it.

    It is live, of equal or higher trust, of the same scope, and passes the filter.
    """
    newest: dict[str, Memory] = {}
    for memory in memories:
        if not memory.contested_with:
            continue
        index = await scopes.index(memory.owner)
        if index is None:
            entries = await scopes.ports.store.memories.entries(memory.owner, memory.contested_with)
            partners = [entry.memory for entry in entries]
        else:
            partners = [partner for link in memory.contested_with if (partner := index.memory(link)) is not None]
        newer = [partner for partner in partners if _counts(partner, memory, wanted, now)]
        if newer:
            newest[memory.id] = max(newer, key=lambda partner: (partner.create_time, partner.id))
    shown = await present([*newest.values()], caller, scopes.ports, wanted.as_of or now, scopes=scopes)
    return dict(zip(newest, shown, strict=True))


def _counts(newer: Memory, memory: Memory, wanted: Filter, now: datetime) -> bool:
    if newer.create_time <= memory.create_time or memory.trust.outranks(newer.trust):
        return False
    return newer.state_at(now) is State.LIVE and wanted.admits(newer, now)
