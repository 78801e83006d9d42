"""A memory store of Strands Agents: `MemoryManager(stores=[MemorydStore(client)])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strands.memory.types import AddMessagesContext, MemoryEntry, MemoryStore, SearchOptions

from memory_client.adapters.away import Away
from memory_client.adapters.items import append_all, thread_id_of
from memory_client.adapters.plans import arun
from memoryd.model.conversation import Role
from memoryd.model.memory import Source
from memoryd.model.message_draft import MessageDraft

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient

__all__ = ["MemorydStore"]

HITS = 10


class MemorydStore(MemoryStore):
    """
    The memory of the client's user, for one conversation.

    Messages are learnt from by the daemon, so that Strands needs no extractor of its own. While the daemon is away
    nothing is stored or found, and that is said once a minute; `strict` raises instead.
    """

    def __init__(
        self,
        client: AsyncMemoryClient,
        thread_id: str = "strands",
        *,
        name: str = "memory",
        description: str = "what is known of the user, and what was said before",
        max_search_results: int = HITS,
        writable: bool = True,
        strict: bool = False,
    ) -> None:
        """Nothing is sent yet."""
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = writable
        self._client = client
        self._thread_id = thread_id_of(thread_id)
        self._away = Away("the store", strict=strict)

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return the memories that answer a query, best first."""
        most = (options or {}).get("max_search_results") or self.max_search_results
        found = await self._away.instead(None, self._client.search(query, limit=min(most, 100)))
        return [
            MemoryEntry(
                content=hit.memory.content,
                metadata={"id": hit.memory.id, "score": hit.score, "trust": hit.memory.trust.value},
            )
            for hit in (found.hits if found else ())
        ]

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> Any:
        """Store a statement; ValueError for one that is declined, as it holds a credential."""
        kept = {str(key): value for key, value in (metadata or {}).items()}
        call = self._client.add(content, metadata=kept, source=Source(channel="strands"))
        result = await self._away.instead(None, call)
        if result is None:
            return None
        if result.memory is None:
            raise ValueError(f"the statement is rejected: {result.rejection}")
        return result.memory.id

    async def add_messages(self, messages: list[Any], context: AddMessagesContext | None = None) -> Any:
        """Append messages to the conversation, from which the daemon learns by itself."""
        del context
        drafts = [draft for message in messages if (draft := _draft(message)) is not None]
        return await self._away.instead(None, arun(self._client, append_all(self._thread_id, drafts)))


def _draft(message: Any) -> MessageDraft | None:
    text = "\n".join(block["text"] for block in message["content"] if block.get("text"))
    if not text.strip():
        return None
    return MessageDraft(role=Role.USER if message["role"] == "user" else Role.ASSISTANT, content=text)
