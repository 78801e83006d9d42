"""Compiling the patterns of the grammar that the start has left: no call has to wait for them later."""

from __future__ import annotations

import asyncio
import time

from memoryd.knowledge.grammar.pattern import compile_all

__all__ = ["compile_patterns"]

AFTER_S = 10.0  # those who waited for the start are answered first
PAUSE_S = 0.002  # between two patterns, for others


async def compile_patterns(stop: asyncio.Event) -> None:
    """Compile them in a thread, some seconds from now; it ends where the daemon stops."""
    await asyncio.sleep(AFTER_S)

    def goes_on() -> bool:
        time.sleep(PAUSE_S)
        return not stop.is_set()

    await asyncio.to_thread(compile_all, goes_on)
