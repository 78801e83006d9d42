"""Whether a statement may end another one that it contradicts."""

from __future__ import annotations

from datetime import datetime

from memoryd.domain.decay import EXTRACTION, confidence_at
from memoryd.domain.rules import Rules
from memoryd.model.memory import Kind, Memory

__all__ = ["may_retire", "told_time"]


def told_time(memory: Memory) -> datetime:
    """
    Return when something was said.

    What is learnt keeps the time of its message, and what is imported the time since when it holds, unless it tells of
    another day.
    """
    if memory.import_id and memory.kind is not Kind.EVENT:
        return memory.event_time
    learnt = memory.source.channel == EXTRACTION and memory.kind is not Kind.EVENT
    return min(memory.event_time, memory.create_time) if learnt else memory.create_time


def may_retire(new: Memory, memory: Memory, said_time: datetime | None, now: datetime, rules: Rules) -> bool:
    """
    Whether a statement may end another.

    Not against more trust or more confidence, nor what is protected from it, nor what was said later: `said_time` is
    when the new one was said, None: now.
    """
    if memory.trust.outranks(new.trust):
        return False
    if said_time is not None and told_time(memory) > said_time:
        return False
    if memory.protected and new.source.channel == EXTRACTION and not new.trust.outranks(memory.trust):
        return False
    return new.confidence + 1e-9 >= confidence_at(memory, now, rules.decay)
