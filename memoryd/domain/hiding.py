"""What a memory is from its delete to its purge."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from memoryd.model.memory import Memory
from memoryd.model.trust import Trust

__all__ = ["hidden"]


def hidden(memory: Memory, now: datetime, due_time: datetime, *, trust: Trust, reason: str = "deleted") -> Memory:
    """Return a memory as it is once deleted."""
    return replace(
        memory,
        delete_time=now,
        purge_time=due_time,
        delete_trust=trust,
        delete_reason=reason,
        contested_with=(),
        judgement=memory.judgement if memory.supersede_time is not None else None,
    )
