"""Tools of Pydantic AI over the client: `Agent(…, toolsets=[memory_toolset(client)])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai import ModelRetry
from pydantic_ai.toolsets import FunctionToolset

from memoryd.errors import MemorydError

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient

__all__ = ["memory_toolset"]

HITS = 10


def memory_toolset(client: AsyncMemoryClient, *, hits: int = HITS, read_only: bool = False) -> FunctionToolset[Any]:
    """
    Return tools to search, remember and forget, for the client's user; with read_only only to search.

    What the daemon refuses, and that it is away, is told to the model, which may try otherwise.
    """
    toolset: FunctionToolset[Any] = FunctionToolset()

    async def search_memory(query: str) -> list[dict[str, Any]]:
        """Find what is remembered of the user, of people they know and of earlier decisions, best first."""
        try:
            found = await client.search(query, limit=hits)
        except MemorydError as error:
            raise ModelRetry(f"{error.reason}: {error.message}") from None
        return [
            {"id": hit.memory.id, "text": hit.memory.content, "trust": hit.memory.trust.value, "strength": hit.strength}
            for hit in found.hits
        ]

    async def remember(statement: str) -> str:
        """Store one lasting statement in the user's own words."""
        try:
            result = await client.add(statement)
        except MemorydError as error:
            raise ModelRetry(f"{error.reason}: {error.message}") from None
        return result.outcome.value + (f": {result.rejection}" if result.rejection else "")

    async def forget(memory_id: str) -> str:
        """Delete one memory, by the id that search_memory tells; for some days the user can restore it."""
        try:
            await client.delete(memory_id)
        except MemorydError as error:
            raise ModelRetry(f"{error.reason}: {error.message}") from None
        return "deleted"

    toolset.add_function(search_memory)
    if not read_only:
        toolset.add_function(remember)
        toolset.add_function(forget)
    return toolset
