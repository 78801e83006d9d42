"""The scopes that one call touches: the index of each owner is asked for once."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.embedding.base import Vector
from memoryd.entities.directory import Directory
from memoryd.errors import Unavailable
from memoryd.index.scope import ScopeIndex
from memoryd.model.caller import Caller
from memoryd.model.memory import Memory
from memoryd.model.query import Filter
from memoryd.model.scope import Owner, Visibility
from memoryd.store.memories import MemorySelector

__all__ = ["DeletedScopes", "EpisodeScopes", "NoteScopes", "Scopes"]


class Scopes:
    """Indexes and directories by owner, loaded when they are first asked for and kept for the call."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.of = ports.indexes
        self._indexes: dict[Owner, ScopeIndex | None] = {}
        self._people: dict[Owner, Directory] = {}

    async def index(self, owner: Owner) -> ScopeIndex | None:
        """Return the index of an owner; None where the scope is too large for memory."""
        if owner not in self._indexes or self._is_gone(owner):
            self._indexes[owner] = await self.of.get(owner, partial=True)
        return self._indexes[owner]

    def seen_by(self, caller: Caller) -> tuple[Owner, ...]:
        """Return the scopes that a search of a caller looks at."""
        return caller.visibility.owners

    def _is_gone(self, owner: Owner) -> bool:
        """Whether an index was dropped meanwhile: it no longer follows commits, and may hold what was purged."""
        scope_index = self._indexes[owner]
        return scope_index is not None and scope_index is not self.of.ready(owner)

    async def nearest(
        self, visible: Visibility, vector: Vector, wanted: Filter, now: datetime, limit: int
    ) -> list[tuple[Memory, float]]:
        """Return what is most similar of scopes that are too large for memory, with the cosines."""
        fingerprint = self.ports.embedder.fingerprint
        return await self.ports.store.memories.nearest(visible, vector, fingerprint, wanted, now=now, limit=limit)

    async def people(self, owner: Owner) -> Directory:
        """Return who is known in a scope; of one too large for memory only what was decided by hand."""
        index = await self.index(owner)
        if index is not None:
            return index.people
        if owner not in self._people:
            self._people[owner] = Directory(await self.ports.store.people.entities(owner))
        return self._people[owner]


class DeletedScopes(Scopes):
    """Who is named by memories that are deleted, but can still be restored."""

    async def people(self, owner: Owner) -> Directory:
        """Return who is known by what is deleted."""
        memories = self.ports.store.memories
        directory = Directory(await self.ports.store.people.entities(owner))
        for memory in await memories.scan(MemorySelector(owner=owner, is_deleted=True), limit=0):
            directory.add(replace(memory, delete_time=None))
        return directory


class EpisodeScopes(Scopes):
    """The indexes of messages, as memories of kind EPISODE."""

    def __init__(self, ports: Ports, owners: tuple[Owner, ...] | None = None) -> None:
        super().__init__(ports)
        self.of = ports.episodes
        self._owners = owners

    def seen_by(self, caller: Caller) -> tuple[Owner, ...]:
        """Return the scopes that the caller sees, or those of them that are asked for."""
        return caller.visibility.owners if self._owners is None else self._owners

    async def nearest(
        self, visible: Visibility, vector: Vector, wanted: Filter, now: datetime, limit: int
    ) -> list[tuple[Memory, float]]:
        """
        Return the most similar messages.

        The store tells threads apart; what else a filter says narrows twenty times as many.
        """
        fingerprint = self.ports.embedder.fingerprint
        found = await self.ports.store.conversations.nearest(
            self._owners or visible.owners,
            vector,
            fingerprint,
            limit=limit * CANDIDATES_A_HIT,
            thread_id=wanted.thread_id,
            exclude_thread_ids=wanted.exclude_thread_ids,
        )
        said = ((message.as_memory(), similarity) for message, similarity in found)
        return [(memory, similarity) for memory, similarity in said if wanted.admits(memory, now)][:limit]


class NoteScopes(Scopes):
    """The indexes of notes, as memories of kind NOTE."""

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports)
        self.of = ports.notes

    async def nearest(self, *_: object) -> list[tuple[Memory, float]]:
        """Raise Unavailable: what is too large for memory is not searched in the store."""
        raise Unavailable("these notes take more than a quarter of index.memory_bytes; raise that to search them")


CANDIDATES_A_HIT = 20
