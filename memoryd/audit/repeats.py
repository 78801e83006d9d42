"""Calls that repeat each other: the first is told at once, the others as a count when their time is over."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memoryd.model import limits
from memoryd.model.call_context import CallContext

__all__ = ["Repeated", "Repeats"]


@dataclass(slots=True)
class Repeated:
    """What came after the first call of a kind: how often, the last of them, and what they touched."""

    began: datetime
    outcome: str
    reason: str
    last: CallContext
    count: int = 0
    ids: dict[str, None] = field(default_factory=dict)
    """The first of them, each once."""
    id_count: int = 0
    """All of them, counted with each call."""

    def add(self, call_context: CallContext, ids: Sequence[str]) -> None:
        """Count another call."""
        self.last = call_context
        self.count += 1
        self.id_count += len(ids)
        for touched in ids[: limits.MAX_AUDITED_READ_IDS - len(self.ids)]:
            self.ids[touched] = None


class Repeats:
    """Kinds of calls whose time is not over."""

    def __init__(self, window: timedelta, *, most: int) -> None:
        """Count for so long; of more kinds at once than `most`, each call is told."""
        self._window = window
        self._most = most
        self._kinds: dict[Hashable, Repeated] = {}

    def is_counted(self, kind: Hashable, call_context: CallContext, outcome: str, reason: str) -> bool:
        """Count a call, if it is not the first of its kind; else the caller has to tell it."""
        known = self._kinds.get(kind)
        if known is not None:
            known.add(call_context, call_context.ids)
            return True
        if len(self._kinds) < self._most:
            self._kinds[kind] = Repeated(call_context.time, outcome, reason, call_context)
        return False

    def ended(self, now: datetime | None) -> list[Repeated]:
        """Return what was counted of the kinds whose time is over by now (None: of all), and forget these."""
        over = []
        while self._kinds:
            kind, known = next(iter(self._kinds.items()))  # the oldest: they are in order of time
            if now is not None and known.began > now - self._window:
                break
            del self._kinds[kind]
            if known.count:
                over.append(known)
        return over
