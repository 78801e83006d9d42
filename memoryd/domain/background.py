"""
Work that goes on for as long as the daemon runs: a step, a pause, and again.

A step that fails is told and tried again: the store may be busy or full now, or the model not there. Nothing that goes
wrong ends the work but what its maker names.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from memoryd.errors import MemorydError

__all__ = ["BackgroundWorker", "fault_of"]


def fault_of(error: Exception) -> str:
    """Return what went wrong, without content: the message of an error of memoryd's own, else its class."""
    return error.message if isinstance(error, MemorydError) else type(error).__name__


class BackgroundWorker:
    """One piece of work."""

    def __init__(
        self,
        step: Callable[[], Awaitable[object]],
        *,
        pause_s: float,
        tell: Callable[[str], None],
        longest_pause_s: float = 0.0,
        wake: asyncio.Event | None = None,
        ends_with: tuple[type[Exception], ...] = (),
    ) -> None:
        """
        Do nothing yet.

        `step` returns True where more is to be done at once. After a fault the pause doubles up to `longest_pause_s`
        (0: it stays). `wake` ends a pause early; `tell` is told of each fault. An error of `ends_with` ends the work.
        """
        self._step, self._tell = step, tell
        self._pause_s, self._longest_pause_s = pause_s, max(pause_s, longest_pause_s)
        self._wake, self._ends_with = wake, ends_with
        self.fault = ""
        """What keeps it from its work now; empty: nothing."""

    async def serve(self, *, begins_with_pause: bool = False) -> None:
        """Work until it is cancelled."""
        pause_s, goes_on = self._pause_s, begins_with_pause is False
        while True:
            if not goes_on:
                await self._rest(pause_s)
            try:
                goes_on = await self._step() is True
                self.fault, pause_s = "", self._pause_s
            except self._ends_with as error:
                self.fault = fault_of(error)
                self._tell(self.fault)
                return
            except Exception as error:  # noqa: BLE001  it may be over at the next try
                self.fault, goes_on = fault_of(error), False
                self._tell(self.fault)
                await asyncio.sleep(pause_s)
                pause_s, goes_on = min(self._longest_pause_s, 2 * pause_s), True

    async def _rest(self, pause_s: float) -> None:
        if self._wake is None:
            await asyncio.sleep(pause_s)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), pause_s)
