"""Whether a statement may end another one that it contradicts."""

from __future__ import annotations

from datetime import datetime

from memoryd.domain.decay import EXTRACTION, confidence_at
from memoryd.domain.rules import Rules
from memoryd.model.memory import Kind, Memory

__all__ = ["may_retire"]


def _said_time(held: Memory) -> datetime:
    """Return when something was said: what is learnt keeps the time of its message, unless it tells of another day."""
    learnt = held.source.channel == EXTRACTION and held.kind is not Kind.EVENT
    return min(held.event_time, held.create_time) if learnt else held.create_time


def may_retire(new: Memory, held: Memory, said_time: datetime | None, now: datetime, rules: Rules) -> bool:
    """
    Whether a statement may end another.

    Not against more trust or more confidence, nor what is protected from it, nor what was said later: `said_time` is
    when the new one was said, None: now.
    """
    if held.trust.outranks(new.trust):
        return False
    if said_time is not None and _said_time(held) > said_time:
        return False
    if held.protected and new.source.channel == EXTRACTION and not new.trust.outranks(held.trust):
        return False
    return new.confidence + 1e-9 >= confidence_at(held, now, rules.decay)
