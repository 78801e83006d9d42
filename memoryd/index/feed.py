"""The part of a store that indexes are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from memoryd.model.commits import Applied, Head, Snapshot
from memoryd.model.scope import Owner

__all__ = ["Feed"]

T = TypeVar("T")


class Feed(Protocol):
    """The part of a store that indexes are made of; see `store.commits`."""

    def snapshot(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        """Call back with a snapshot, in one read transaction and in this thread; return what that returned."""
        ...

    async def head(self, owner: Owner) -> Head:
        """Return how far the commits of an owner have come."""
        ...

    async def changes(self, owner: Owner, since: int) -> Applied | None:
        """Return what brings an owner from a number to now; None where not all is known."""
        ...
