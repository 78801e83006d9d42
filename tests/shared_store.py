"""Two daemons before one store: each is told of its own commits alone, and asks for those of the other."""

from __future__ import annotations

import inspect
from itertools import cycle


class StoreView:
    """A store as one of several daemons sees it."""

    def __init__(self, store) -> None:
        self._store = store
        self.commits = _Commits(store.commits)

    def __getattr__(self, name):
        return getattr(self._store, name)


class _Commits:
    def __init__(self, commits) -> None:
        self._commits = commits
        self._mine = set()
        self.memories = _Feed(commits.memories, lambda applied: id(applied.change) in self._mine)

    def __getattr__(self, name):
        return getattr(self._commits, name)

    async def write(self, *changes) -> None:
        mine = set(map(id, changes))
        self._mine |= mine
        try:
            await self._commits.write(*changes)
        finally:
            self._mine -= mine


class _Feed:
    def __init__(self, feed, is_mine) -> None:
        self._feed, self._is_mine = feed, is_mine

    def __getattr__(self, name):
        return getattr(self._feed, name)

    def follow(self, callback) -> None:
        self._feed.follow(lambda applied: callback(applied) if self._is_mine(applied) else None)


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
