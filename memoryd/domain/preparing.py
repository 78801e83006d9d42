"""Looking through the texts of a call before it is decided: long ones in threads, one call of each caller at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from datetime import datetime
from typing import Any

from memoryd.domain.completion import raise_if_abandoned
from memoryd.domain.ports import Ports
from memoryd.knowledge.secrets import Given
from memoryd.model.caller import Caller

__all__ = ["ON_LOOP", "preparing"]

ON_LOOP = 1024  # characters that are looked through on the event loop (10 µs each at the worst); more goes to a thread


@contextlib.asynccontextmanager
async def preparing(
    whose: Hashable, caller: Caller, ports: Ports, now: datetime
) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """
    Wait until no other call of the grant, or where there is none of `whose`, prepares; yield what runs a function.

    It raises CancelledError where the caller has gone, and what a grant raises that counts no more.
    """
    loop = asyncio.get_running_loop()

    async def run(function: Callable[..., Any], *args: Any) -> Any:
        raise_if_abandoned()
        ports.guards.grants.check(caller.grant_id, now)
        try:
            return await loop.run_in_executor(ports.shared.preparing, function, *args)
        except Given:
            raise asyncio.CancelledError from None

    async with ports.shared.locks.hold([("preparing", caller.grant_id or whose)]):
        yield run
