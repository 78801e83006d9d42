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
from memoryd.turns import in_turns

__all__ = ["evicted", "least_valuable", "worth"]

AHEAD, SHARE_AHEAD = 64, 64
"""
Victims are chosen for so many evictions at a time, and one more for so many memories: all of the scope are compared for
it, so that one eviction costs as much as comparing 64 memories, however many there are.
"""


def worth(memory: Memory, now: datetime, decay: str) -> tuple[int, float, datetime, datetime]:
    """Return what a memory is worth, by which the least goes first: trust, then confidence, then recall, then age."""
    return (
        memory.trust.weight,
        confidence_at(memory, now, decay),
        memory.trusted_recall_time or memory.create_time,
        memory.create_time,
    )


async def least_valuable(
    index: ScopeIndex, ports: Ports, count: int, kept: Collection[str], now: datetime, *, trust: Trust
) -> list[Memory]:
    """
    Return `count` memories to evict for a new one of this trust; fewer if the rest is protected, kept, or above it.

    Protection by lower trust does not hold against higher trust. Who is chosen stays in the queue until that is
    committed (`Ports.follow`). The caller holds the lock of the owner; a large scope is compared in turns.
    """
    queue = ports.shared.victims.setdefault(index, [])
    victims: list[Memory] = []
    for fresh in (False, True):
        if fresh:
            most = AHEAD + len(index) // SHARE_AHEAD + count + len(kept)
            queue[:] = await _least(index, most, now, ports.policy.rules.decay, trust)
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


async def _least(index: ScopeIndex, most: int, now: datetime, decay: str, trust: Trust) -> list[str]:
    """Return the ids of at most so many memories that may go for one of this trust, the least valuable first."""
    least: list[tuple[tuple[int, float, datetime, datetime], str]] = []
    async for memory in in_turns(index.live(now)):
        if _may_go(memory, trust):
            least.append((worth(memory, now, decay), memory.id))
        if len(least) >= 4 * most:
            least = sorted(least)[:most]
    return [memory_id for _, memory_id in sorted(least)[:most]]


def _may_go(memory: Memory, trust: Trust) -> bool:
    return not memory.trust.outranks(trust) and not (memory.protected and not trust.outranks(memory.trust))


def evicted(memory: Memory, ports: Ports, now: datetime) -> Memory:
    """Return a memory as it is once it was evicted: restorable, like whatever is deleted."""
    due_time = ports.purge_time(now)
    return hidden(memory, now, due_time, trust=Trust.SANDBOX, reason="evicted")
