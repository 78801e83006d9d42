"""How long the event loop keeps a call waiting: on it everybody is served, so whatever holds it holds all."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

__all__ = ["LoopLag"]

EVERY_S = 0.05  # what holds the loop for less may not be seen
WINDOW_S = 60.0
BLOCKED_S = 0.5  # from which the log says so


class LoopLag:
    """Wakes up now and then, and notes by how much that was too late."""

    def __init__(self, on_blocked: Callable[[float, int], None]) -> None:
        """
        `on_blocked` is told that the loop was held for long: the longest time in seconds, and how often.

        The first time at once, then once a minute at the most.
        """
        self._on_blocked = on_blocked
        self._blocked: list[float] = []
        self._told = -WINDOW_S
        self._late: deque[tuple[float, float]] = deque()
        """When, and by how many seconds; of those that may still become the largest, the largest first."""

    async def watch(self) -> None:
        """Note it until it is cancelled."""
        while True:
            due = time.monotonic() + EVERY_S
            await asyncio.sleep(EVERY_S)
            now = time.monotonic()
            self._note(now, now - due)

    def _note(self, now: float, late_s: float) -> None:
        while self._late and self._late[-1][1] <= late_s:
            self._late.pop()
        self._late.append((now, late_s))
        self._forget(now)
        if late_s >= BLOCKED_S:
            self._blocked.append(late_s)
        if self._blocked and now - self._told >= WINDOW_S:
            self._told, blocked, self._blocked = now, self._blocked, []
            self._on_blocked(max(blocked), len(blocked))

    def _forget(self, now: float) -> None:
        while self._late and self._late[0][0] < now - WINDOW_S:
            self._late.popleft()

    def largest_s(self) -> float:
        """Return the longest wait of the last minute, in seconds."""
        self._forget(time.monotonic())
        return max(0.0, self._late[0][1]) if self._late else 0.0
