"""What an adapter does while the daemon is away: it says so once a minute, and the agent goes on without memory."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable
from typing import TypeVar

from memoryd.errors import TimedOut, Unavailable

__all__ = ["Away"]

T = TypeVar("T")
AGAIN_S = 60.0

log = logging.getLogger("memory_client")


class Away:
    """Awaits calls of one adapter, and lets those go that no one answers; what the daemon refuses is raised."""

    def __init__(self, who: str, *, strict: bool) -> None:
        """With strict, that the daemon is away is raised too."""
        self._who = who
        self._strict = strict
        self._told_time: float | None = None

    async def instead(self, otherwise: T, call: Awaitable[T]) -> T:
        """Return what a call answers, or something else where no one does."""
        try:
            return await call
        except (Unavailable, TimedOut) as error:
            if self._strict:
                raise
            now = time.monotonic()
            if self._told_time is None or now - self._told_time >= AGAIN_S:
                self._told_time = now
                log.warning("%s goes on without memory: %s", self._who, error.reason)
            return otherwise
