"""The history of a memory: what it replaced and what replaced it, and why."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.answers import within_bytes
from memoryd.domain.retrieval.browse import find
from memoryd.domain.retrieval.presentation import present
from memoryd.model.caller import Caller
from memoryd.model.memory import Memory
from memoryd.model.results import History
from memoryd.model.scope import Owner

__all__ = ["history"]

MOST_RELATED = 1000  # memories of one history


async def history(memory_id: str, caller: Caller, ports: Ports, *, now: datetime) -> History:
    """Return all that a memory replaced and that replaced it, oldest first; see GetMemoryHistory in the contract."""
    start = await find(memory_id, caller, ports.store)
    memories: dict[str, Memory] = {start.id: start}
    missing: set[str] = set()
    pending = [start]
    while pending and len(memories) < MOST_RELATED:
        linked: defaultdict[Owner, set[str]] = defaultdict(set)
        for memory in pending:
            linked[memory.owner].update({*memory.supersedes, memory.superseded_by} - {""} - memories.keys() - missing)
        entries = [e for owner, ids in linked.items() for e in await ports.store.memories.entries(owner, sorted(ids))]
        pending = [entry.memory for entry in entries if entry.memory.delete_time is None]
        memories |= {memory.id: memory for memory in pending}
        missing |= {one for ids in linked.values() for one in ids} - memories.keys()
    ordered = sorted(memories.values(), key=lambda memory: (memory.create_time, memory.id))
    whole = within_bytes(ordered)
    missing |= {memory.id for memory in ordered[len(whole) :]}  # and what one answer does not hold
    return History(tuple(await present(whole, caller, ports, now)), tuple(sorted(missing)))
