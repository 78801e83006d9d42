"""Two daemons before one store: each is told of its own commits alone, and asks for those of the other."""

from __future__ import annotations

import inspect
from collections import Counter
from itertools import cycle

from memoryd.store.postgres import PostgresStore
from tests.postgres_server import another


def view_of(store):
    """A store as one of several daemons sees it: over a server each has connections of its own."""
    return another(store) if isinstance(store, PostgresStore) else StoreView(store)


class StoreView:
    """A store as one of several daemons sees it."""

    is_shared = True

    def __init__(self, store) -> None:
        self._store = store
        self.commits = _Commits(store.commits)

    def __getattr__(self, name):
        return getattr(self._store, name)


class _Commits:
    def __init__(self, commits) -> None:
        self._commits = commits
        self._mine = set()
        self._owners = Counter()
        self.memories = _Feed(commits.memories, lambda applied: id(applied.change) in self._mine)
        # what is told of messages and of notes is made of the change: it is known by its owner
        self.messages = _Feed(commits.messages, lambda applied: applied.change.decided_of in +self._owners)
        self.notes = _Feed(commits.notes, lambda applied: applied.change.decided_of in +self._owners)

    def __getattr__(self, name):
        return getattr(self._commits, name)

    async def write(self, *changes) -> None:
        mine, owners = set(map(id, changes)), Counter(owner for change in changes for owner in change.owners)
        self._mine |= mine
        self._owners += owners
        try:
            await self._commits.write(*changes)
        finally:
            self._mine -= mine
            self._owners -= owners


class _Feed:
    def __init__(self, feed, is_mine) -> None:
        self._feed, self._is_mine = feed, is_mine

    def __getattr__(self, name):
        return getattr(self._feed, name)

    def follow(self, callback) -> None:
        self._feed.follow(lambda applied: callback(applied) if self._is_mine(applied) else None)


def comes_between(store, work) -> list[bool]:
    """Let work be done once, just before the next commit to a store; the list says whether it was."""
    write, done = store.commits.write, []

    async def late(*changes):
        if not done:
            done.append(True)
            await work()
        await write(*changes)

    store.commits.write = late
    return done


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
