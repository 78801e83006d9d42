"""Calls that repeat each other: the first is told at once, the others as a count when their time is over."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from memoryd.model import limits
from memoryd.model.call_context import CallContext

__all__ = ["Repeated", "Repeats"]

MOST_IDS = 500  # of one kind; then its time is over


@dataclass(slots=True)
class Repeated:
    """What came after the first call of a kind: how often, the last of them, and what they touched."""

    began: datetime
    outcome: str
    reason: str
    last: CallContext
    count: int = 0
    ids: dict[str, None] = field(default_factory=dict)
    """The first of each call, each once."""
    id_count: int = 0
    """All of them, counted with each call."""

    def add(self, call_context: CallContext) -> None:
        """Count another call, with the first of what it touched."""
        ids = call_context.ids
        self.last = _told(call_context)
        self.count += 1
        self.id_count += len(ids)
        self.ids |= dict.fromkeys(ids[: limits.MAX_AUDITED_READ_IDS])


def _told(call_context: CallContext) -> CallContext:
    """Return what a line says of a call, without what it has answered."""
    return replace(call_context, ids=[], changes=[])


class Repeats:
    """Kinds of calls whose time is not over."""

    def __init__(self, window: timedelta, *, most: int) -> None:
        """Count for so long; of more kinds at once than `most`, each call is told."""
        self._window = window
        self._most = most
        self._kinds: dict[Hashable, Repeated] = {}
        self._full: dict[Hashable, None] = {}

    def is_counted(self, kind: Hashable, call_context: CallContext, outcome: str, reason: str) -> bool:
        """Count a call, if it is not the first of its kind; else the caller has to tell it."""
        known = self._kinds.get(kind)
        if known is not None:
            known.add(call_context)
            if len(known.ids) >= MOST_IDS:
                self._full[kind] = None
            return True
        if len(self._kinds) < self._most:
            self._kinds[kind] = Repeated(call_context.time, outcome, reason, _told(call_context))
        return False

    def ended(self, now: datetime | None) -> list[Repeated]:
        """Return what was counted of the kinds that are full or whose time is over by now (None: of all)."""
        return [self._kinds[kind] for kind in self._over(now) if self._kinds[kind].count]

    def forget(self, now: datetime | None) -> None:
        """Drop what `ended` returns; to be called once it is written."""
        for kind in self._over(now):
            del self._kinds[kind]
        self._full.clear()

    def _over(self, now: datetime | None) -> list[Hashable]:
        over = dict(self._full)
        for kind, known in self._kinds.items():
            if now is not None and now - self._window < known.began <= now:
                break  # they are in order of time; what began after now did so before the clock was set back
            over[kind] = None
        return list(over)
