"""What came through each grant: how much of it is stored, and how much was written today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta

from memoryd.model.change import Applied
from memoryd.model.grant import GrantUsage
from memoryd.model.memory import Memory

__all__ = ["Usage"]

DAY = timedelta(days=1)
_NOTHING = GrantUsage()


class Usage:
    """Counts; right from the start if it is given what the store holds, and told of every commit."""

    def __init__(self, stored: Mapping[str, GrantUsage] | None = None, today: date | None = None) -> None:
        """Begin with what is stored; its writes_today are of that day."""
        self._of = dict(stored or {})
        self._today = today

    def of(self, grant_id: str) -> GrantUsage:
        """Return what came through a grant."""
        return self._of.get(grant_id, _NOTHING)

    def writes(self, grant_id: str, now: datetime) -> int:
        """Return how much was written through a grant on this day."""
        self._turn(now)
        return self.of(grant_id).writes_today

    def wrote(self, grant_id: str, count: int, now: datetime) -> None:
        """Count writes."""
        known = self.writes(grant_id, now)
        self._of[grant_id] = replace(self.of(grant_id), writes_today=known + count)

    def _turn(self, now: datetime) -> None:
        """Reset the counts on a new day."""
        today = now.date()
        if self._today is None or today > self._today or today < self._today - DAY:  # a clock may step back a little
            self._today = today
            self._of = {grant_id: replace(usage, writes_today=0) for grant_id, usage in self._of.items()}

    def grew(self, grant_id: str, size: int) -> None:
        """Count bytes that were added to what is stored."""
        if grant_id and size:
            known = self.of(grant_id)
            self._of[grant_id] = replace(known, stored_bytes=known.stored_bytes + size)

    def apply(self, applied: Applied) -> None:
        """Follow a commit."""
        for entry in applied.change.inserts:
            self._count(entry.memory, 1)
        for memory in applied.change.purges:
            self._count(memory, -1)

    def _count(self, memory: Memory, sign: int) -> None:
        if not memory.grant_id:
            return
        known = self.of(memory.grant_id)
        self._of[memory.grant_id] = replace(
            known,
            stored_memories=known.stored_memories + sign,
            stored_bytes=known.stored_bytes + sign * memory.text_bytes,
        )
