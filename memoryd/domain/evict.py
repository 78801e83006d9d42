"""What goes first where a scope may hold no more."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from memoryd.domain.decay import confidence_at
from memoryd.domain.forget import hidden
from memoryd.domain.ports import Ports
from memoryd.index.scope import ScopeIndex
from memoryd.model import Memory, Trust

__all__ = ["evicted", "least_valuable", "worth"]

AHEAD = 64  # victims that are chosen at a time; one more memory then costs a look, no sorting


def worth(memory: Memory, now: datetime, decay: str) -> tuple[float, datetime, datetime]:
    """Return what a memory is worth, by which the least goes first: confidence, then recall, then age."""
    return (
        confidence_at(memory, now, decay),
        memory.trusted_recall_time or memory.create_time,
        memory.create_time,
    )


def least_valuable(index: ScopeIndex, ports: Ports, count: int, kept: Collection[str], now: datetime) -> list[Memory]:
    """Return as many memories as shall go; fewer if what is left is protected or kept."""
    decay = ports.policy.rules.decay
    queue = ports.victims.setdefault(index, [])
    victims: list[Memory] = []
    for fresh in (False, True):
        if fresh:
            live = [memory for memory in index.live(now) if not memory.protected]
            live.sort(key=lambda memory: worth(memory, now, decay))
            queue[:] = [memory.id for memory in live[: max(AHEAD, count + len(kept))]]
        while queue and len(victims) < count:
            memory = index.memory(queue.pop(0))
            gone = memory is None or memory.supersede_time is not None or memory.protected or memory.id in kept
            if memory is not None and not gone and memory.id not in {victim.id for victim in victims}:
                victims.append(memory)
        if len(victims) == count:
            break
    return victims


def evicted(memory: Memory, ports: Ports, now: datetime) -> Memory:
    """Return a memory as it is once it was evicted: restorable, like whatever is deleted."""
    due_time = now + timedelta(days=ports.policy.delete_grace_days)
    return hidden(memory, now, due_time, trust=Trust.SANDBOX, reason="evicted")
