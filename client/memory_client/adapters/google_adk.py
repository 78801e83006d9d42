"""The memory service of Google's Agent Development Kit: `Runner(…, memory_service=MemorydMemoryService(client))`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from memory_client.adapters.away import Away
from memory_client.adapters.items import append_all, thread_id_of
from memory_client.adapters.plans import arun
from memory_client.endpoint import is_admin
from memoryd.model.conversation import Role
from memoryd.model.memory import Kind, Source
from memoryd.model.message_draft import MessageDraft
from memoryd.model.query import Filter

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

    from memory_client import AsyncMemoryClient

__all__ = ["MemorydMemoryService"]

HITS = 10
EVERYTHING = Filter(kinds=frozenset(Kind) - {Kind.NOTE})


class MemorydMemoryService(BaseMemoryService):
    """
    Memory of what was said, and of what is learnt from it.

    On the admin socket `user_id` is memoryd's user, and `app_name` its agent; on any other door both are what the
    client is bound to. A session may be added again when it has grown: what is there already is passed over. While the
    daemon is away nothing is stored or found, and that is said once a minute; `strict` raises instead.
    """

    def __init__(self, client: AsyncMemoryClient, *, hits: int = HITS, strict: bool = False) -> None:
        """Find at most so many memories and messages for a query."""
        self._client = client
        self._hits = hits
        self._away = Away("the memory service", strict=strict)

    def _of(self, app_name: str, user_id: str) -> AsyncMemoryClient:
        if not is_admin(self._client.target):
            return self._client
        return self._client.acting_for(user_id=user_id, agent_id=app_name)

    async def add_session_to_memory(self, session: Session) -> None:
        """Keep what was said in a session."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep what some events say; those without text are passed over."""
        del custom_metadata
        drafts = [draft for event in events if (draft := _draft(event)) is not None]
        plan = append_all(thread_id_of(f"adk:{session_id or 'events'}"), drafts, skip_existing=True)
        await self._away.instead(None, arun(self._of(app_name, user_id), plan))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store statements; InvalidArgument names one that is declined, as it holds a credential."""
        del custom_metadata
        client = self._of(app_name, user_id)
        for entry in memories:
            text = _text(entry.content)
            if not text:
                continue
            source = Source(speaker=entry.author or "", channel="adk")
            result = await self._away.instead(None, client.add(text, source=source))
            if result is not None and result.memory is None:
                raise ValueError(f"a memory is rejected: {result.rejection}")

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return memories and messages that answer a query, best first."""
        call = self._of(app_name, user_id).search(query, limit=self._hits, filter=EVERYTHING)
        found = await self._away.instead(None, call)
        hits = found.hits if found else ()
        return SearchMemoryResponse(
            memories=[
                MemoryEntry(
                    id=hit.memory.id,
                    content=types.Content(role="user", parts=[types.Part(text=hit.memory.content)]),
                    author=hit.memory.said_by or hit.memory.source.speaker or None,
                    timestamp=hit.memory.event_time.isoformat(),
                )
                for hit in hits
            ]
        )


def _text(content: Any) -> str:
    parts = (content.parts or []) if content else []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _draft(event: Event) -> MessageDraft | None:
    text = _text(event.content)
    if not text.strip():
        return None
    is_user = event.author == "user"
    return MessageDraft(
        role=Role.USER if is_user else Role.ASSISTANT,
        content=text,
        name="" if is_user else event.author or "",
        id=event.id,
        create_time=datetime.fromtimestamp(event.timestamp, UTC),
    )
