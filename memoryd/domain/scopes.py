"""The scopes that one call touches: the index of each owner is asked for once."""

from __future__ import annotations

from memoryd.domain.ports import Ports
from memoryd.entities.directory import Directory
from memoryd.index.scope import ScopeIndex
from memoryd.model.scope import Owner

__all__ = ["Scopes"]


class Scopes:
    """Indexes and directories by owner, loaded when they are first asked for and kept for the call."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._indexes: dict[Owner, ScopeIndex | None] = {}
        self._people: dict[Owner, Directory] = {}

    async def index(self, owner: Owner) -> ScopeIndex | None:
        """Return the index of an owner; None where the scope is too large for memory."""
        if owner not in self._indexes or self._is_gone(owner):
            self._indexes[owner] = await self._ports.indexes.get(owner)
        return self._indexes[owner]

    def _is_gone(self, owner: Owner) -> bool:
        """Whether an index was dropped meanwhile: it no longer follows commits, and may hold what was purged."""
        held = self._indexes[owner]
        return held is not None and held is not self._ports.indexes.ready(owner)

    async def people(self, owner: Owner) -> Directory:
        """Return who is known in a scope; of one too large for memory only what was decided by hand."""
        index = await self.index(owner)
        if index is not None:
            return index.people
        if owner not in self._people:
            self._people[owner] = Directory(await self._ports.store.entities(owner))
        return self._people[owner]
