"""Two daemons before one store: each is told of its own commits alone, and asks for those of the other."""

from __future__ import annotations

import inspect
from itertools import cycle


class StoreView:
    """A store as one of several daemons sees it."""

    def __init__(self, store) -> None:
        self._store = store
        self._mine = set()
        self._callbacks = []
        store.on_commit(self._tell)

    def __getattr__(self, name):
        return getattr(self._store, name)

    def on_commit(self, callback) -> None:
        self._callbacks.append(callback)

    async def commit(self, *changes) -> None:
        mine = set(map(id, changes))
        self._mine |= mine
        try:
            await self._store.commit(*changes)
        finally:
            self._mine -= mine

    def _tell(self, applied) -> None:
        if id(applied.change) in self._mine:
            for callback in self._callbacks:
                callback(applied)


class InTurns:
    """A client of several daemons: each call goes to the next one."""

    def __init__(self, clients) -> None:
        self.clients = clients
        self._next = cycle(clients)

    def __getattr__(self, name):
        method = getattr(self.clients[0], name)
        if not inspect.iscoroutinefunction(method):
            raise AttributeError(name)

        async def call(*args, **more):
            return await getattr(next(self._next), name)(*args, **more)

        return call

    def acting_for(self, **identity) -> InTurns:
        return InTurns([client.acting_for(**identity) for client in self.clients])
