"""What goes first where a scope may hold no more."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from memoryd.domain.decay import confidence_at
from memoryd.domain.hiding import hidden
from memoryd.domain.ports import Ports
from memoryd.index.scope import ScopeIndex
from memoryd.model.memory import Memory, State
from memoryd.model.trust import Trust

__all__ = ["evicted", "least_valuable", "worth"]

AHEAD = 64  # victims that are chosen at a time; one more memory then costs a look, no sorting


def worth(memory: Memory, now: datetime, decay: str) -> tuple[int, float, datetime, datetime]:
    """Return what a memory is worth, by which the least goes first: trust, then confidence, then recall, then age."""
    return (
        memory.trust.weight,
        confidence_at(memory, now, decay),
        memory.trusted_recall_time or memory.create_time,
        memory.create_time,
    )


def least_valuable(
    index: ScopeIndex, ports: Ports, count: int, kept: Collection[str], now: datetime, *, trust: Trust
) -> list[Memory]:
    """
    Return `count` memories to evict for a new one of this trust; fewer if the rest is protected, kept, or above it.

    Protection by lower trust does not hold against higher trust. Who is chosen stays in the queue until that is
    committed (`Ports.follow`).
    """
    decay = ports.policy.rules.decay
    queue = ports.victims.setdefault(index, [])
    victims: list[Memory] = []
    for fresh in (False, True):
        if fresh:
            live = [memory for memory in index.live(now) if _may_go(memory, trust)]
            live.sort(key=lambda memory: worth(memory, now, decay))
            queue[:] = [memory.id for memory in live[: AHEAD + count + len(kept)]]
        victims = []
        ended: set[str] = set()
        for memory_id in queue:
            memory = index.memory(memory_id) if memory_id not in kept else None
            if memory is not None and memory.state_at(now) is State.LIVE and _may_go(memory, trust):
                victims.append(memory)
            elif memory_id not in kept:
                ended.add(memory_id)
            if len(victims) == count:
                break
        if ended:
            queue[:] = [one for one in queue if one not in ended]
        if len(victims) == count:
            break
    return victims


def _may_go(memory: Memory, trust: Trust) -> bool:
    return not memory.trust.outranks(trust) and not (memory.protected and not trust.outranks(memory.trust))


def evicted(memory: Memory, ports: Ports, now: datetime) -> Memory:
    """Return a memory as it is once it was evicted: restorable, like whatever is deleted."""
    due_time = ports.purge_time(now)
    return hidden(memory, now, due_time, trust=Trust.SANDBOX, reason="evicted")
