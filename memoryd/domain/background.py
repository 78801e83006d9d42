"""
Work that goes on for as long as the daemon runs: a step, a pause, and again.

A step that fails is told and tried again: the store may be busy or full now, or the model not there. No fault ends the
work but those that its maker names.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from memoryd.errors import MemorydError, StartupError

__all__ = ["BackgroundWorker", "class_of", "message_of"]


def class_of(error: Exception) -> str:
    """Return the class of an error: its message may quote what someone said."""
    return type(error).__name__


def message_of(error: Exception) -> str:
    """Return the message of an error of memoryd's own, where none of them quotes anybody; else its class."""
    if isinstance(error, MemorydError | StartupError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


@dataclass(slots=True, kw_only=True)
class BackgroundWorker:
    """One piece of work."""

    step: Callable[[], Awaitable[object]]
    """Returns True where more is to be done at once."""
    pause_s: float | None
    """Between two steps; None: until `wake`."""
    tell: Callable[[str], None]
    """Is told of each fault."""
    describe: Callable[[Exception], str] = class_of
    fault_pause_s: float = 0.0
    """After a fault, doubled up to `longest_fault_pause_s` until there was something to do; 0: as any other pause."""
    longest_fault_pause_s: float = 0.0
    wake: asyncio.Event | None = None
    """Ends a pause early, but none after a fault."""
    resume: asyncio.Event | None = None
    """Ends a pause after a fault early; it is cleared then."""
    ends_with: tuple[type[Exception], ...] = ()
    """What ends the work."""

    async def serve(self, *, begins_with_pause: bool = False) -> None:
        """Work until it is cancelled."""
        if begins_with_pause:
            await self._rest()
        fault_pause_s = self.fault_pause_s
        while True:
            try:
                goes_on = await self.step()
            except self.ends_with as error:
                self.tell(self.describe(error))
                return
            except Exception as error:  # noqa: BLE001  it may be over at the next try
                self.tell(self.describe(error))
                await self._recover(fault_pause_s or self.pause_s or 0.0)
                fault_pause_s = min(self.longest_fault_pause_s, 2 * fault_pause_s)
                continue
            if goes_on is True:
                fault_pause_s = self.fault_pause_s
            else:
                await self._rest()

    async def _recover(self, pause_s: float) -> None:
        if self.resume is None:
            await asyncio.sleep(pause_s)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.resume.wait(), pause_s)
        self.resume.clear()

    async def _rest(self) -> None:
        if self.wake is None:
            await asyncio.sleep(self.pause_s or 0.0)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.wake.wait(), self.pause_s)
