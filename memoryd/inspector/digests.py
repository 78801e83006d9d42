"""Digests: what was made from memories, and goes with any of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from memory_client import Filter, Kind

from memoryd.model.memory import ShownMemory

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient

__all__ = ["digests_of"]

DIGESTS = Filter(kinds=frozenset({Kind.REFLECTION}), include_superseded=True, include_expired=True)
CITES = "cites"  # the key of a digest's metadata that names its sources
PAGE_SIZE = 1000


async def digests_of(client: AsyncMemoryClient, ids: Collection[str]) -> list[ShownMemory]:
    """Return the digests of an owner that are made from one of some memories."""
    wanted, token = set(ids), ""
    found: list[ShownMemory] = []
    while wanted:
        page = await client.page(page_size=PAGE_SIZE, page_token=token, filter=DIGESTS)
        found += [one for one in page.memories if not wanted.isdisjoint(str(one.metadata.get(CITES, "")).split())]
        token = page.next_page_token
        if not token:
            break
    return [one for one in found if one.id not in wanted]
