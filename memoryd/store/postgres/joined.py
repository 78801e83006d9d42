"""Look-ups for all who ask at once: a burst of calls costs one round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from memoryd.errors import Unavailable
from memoryd.model.commits import Head
from memoryd.model.scope import Owner

__all__ = ["Joined"]

Key = tuple[Owner, str]
"""An owner and the name of a feed."""


class Joined:
    """Asks for what was asked for meanwhile, as soon as the look-up before has come back."""

    def __init__(self, ask: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Head]]]) -> None:
        """`ask` looks up several, and must find each."""
        self._ask = ask
        self._waiting: dict[Key, asyncio.Future[Head]] = {}
        self._task: asyncio.Task[None] | None = None

    async def of(self, key: Key) -> Head:
        """Return the head of a feed of an owner, as it is at some time after this is called."""
        future = self._waiting.get(key)
        if future is None:
            future = self._waiting[key] = asyncio.get_running_loop().create_future()
            if self._task is None or self._task.done():
                self._task = asyncio.get_running_loop().create_task(self._run())
        return await asyncio.shield(future)

    async def _run(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, {}
            try:
                found = await self._ask(list(asked))
            except Exception as error:  # noqa: BLE001  each who waits is told
                for future in asked.values():
                    future.set_exception(error)
                    future.exception()  # also where no one waits any more
            except asyncio.CancelledError:
                for future in (*asked.values(), *self._waiting.values()):
                    future.set_exception(Unavailable("the store is closed"))
                    future.exception()
                raise
            else:
                for key, future in asked.items():
                    future.set_result(found[key])
