"""The reference store: the shortest code that keeps every promise of `store.base` but to survive the process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from memoryd.errors import Unavailable
from memoryd.store.base import FileBacked, StoreInfo
from memoryd.store.ram.commits import RamCommits
from memoryd.store.ram.conversations import RamConversations
from memoryd.store.ram.memories import RamMemories
from memoryd.store.ram.notes import RamNotes
from memoryd.store.ram.owners import RamGrants, RamOwners, RamPeople
from memoryd.store.ram.state import RamState
from memoryd.store.ram.work import RamWork

__all__ = ["RamStore"]


class RamStore:
    """Everything in dictionaries."""

    files: FileBacked | None = None
    is_shared = False
    warnings = ()

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._state = state = RamState(random_bytes)
        self.commits = RamCommits(state)
        self.memories = RamMemories(state)
        self.conversations = RamConversations(state)
        self.people = RamPeople(state)
        self.notes = RamNotes(state.notes)
        self.grants = RamGrants(state, self.commits.memories.heads)
        self.work = RamWork(state)
        self.owners = RamOwners(state)

    async def info(self) -> StoreInfo:
        return StoreInfo(
            path=":memory:",
            store_id=self._state.id,
            schema_version=0,
            commit_seq=self._state.seq,
            store_bytes=0,
            memory_count=len(self._state.entries),
            fingerprints=Counter(entry.fingerprint for entry in self._state.entries.values()),
            newest_create_time=self._state.newest,
            secret=self._state.secret,
        )

    async def ping(self) -> None:
        if self._state.closed:
            raise Unavailable("the store is closed")

    async def close(self) -> None:
        self._state.closed = True
