"""
Memory for any loop: `Provider(client, "chat-1")`, called when an agent wakes, around each turn, and when it sleeps.

    async with Provider(client, "chat-1") as memory:
        instructions += await memory.recall(said)
        await memory.save_turn(said, answered)
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Self, cast

from memory_client.adapters.away import Away
from memoryd.model.conversation import Message
from memoryd.model.message_draft import MessageDraft

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient
    from memoryd.model.context import BuiltContext
    from memoryd.model.conversation import Session, WorkingMemory
    from memoryd.model.talk import Appended

__all__ = ["Provider"]


class Provider:
    """
    The memory of one thread of one user, for an agent's loop.

    While the daemon is away it says so once a minute, answers as if nothing were known, and stores nothing; `strict`
    raises instead. What the daemon refuses is always raised.
    """

    def __init__(
        self, client: AsyncMemoryClient, thread_id: str, *, shared: bool = False, strict: bool = False
    ) -> None:
        """Name the thread; nothing is sent yet. The client is closed by `close`."""
        self.session_id = ""
        self._client = client
        self._thread_id = thread_id
        self._shared = shared
        self._away = Away("the agent", strict=strict)

    async def on_wake(self, prompt: str = "", **more: Any) -> str:
        """Begin a session, and return the context to begin with; further arguments as of the client's `context`."""
        await self._begin()
        return await self.recall(prompt, **more)

    async def _begin(self) -> None:
        call = self._client.start_session(self._thread_id, shared=self._shared)
        started = await self._away.instead(None, cast("Awaitable[Any]", call))
        self.session_id = started.session.id if started else ""

    async def recall(self, prompt: str, **more: Any) -> str:
        """Return the block of text to know before an answer; "" where nothing is known."""
        call = self._client.context(prompt, thread_id=self._thread_id, shared=self._shared, **more)
        built = await self._away.instead(None, cast("Awaitable[BuiltContext | None]", call))
        return built.text if built else ""

    async def save_turn(self, user: str, assistant: str = "", *more: MessageDraft) -> bool:
        """Append what the user said, further messages such as those of tools, and the answer; whether it is stored."""
        said = [MessageDraft(content=user)] if user else []
        answered = [MessageDraft(content=assistant, role="assistant")] if assistant else []  # type: ignore[arg-type]
        turn = [*said, *more, *answered]
        if not turn:
            return False
        call = self._client.append(self._thread_id, turn, shared=self._shared, session_id=self.session_id)
        appended = await self._away.instead(None, cast("Awaitable[Appended | None]", call))
        return appended is not None and appended.stored

    async def recent_turns(self, *, max_tokens: int = 0, page_size: int = 0) -> list[Message]:
        """Return the last messages that have not left the prompts, in whole turns and in order."""
        thread = self._client.conversation(self._thread_id, shared=self._shared)
        return await self._away.instead([], thread.recent(page_size=page_size, max_tokens=max_tokens))

    async def working_memory(self, text: str | None = None) -> str:
        """Return the small text that the agent keeps in mind; with a text, replace it by that first."""
        call: Awaitable[WorkingMemory]
        if text is None:
            call = self._client.working_memory(thread_id=self._thread_id, shared=self._shared)
        else:
            call = self._client.set_working_memory(text, thread_id=self._thread_id, shared=self._shared)
        kept = await self._away.instead(None, cast("Awaitable[WorkingMemory | None]", call))
        return kept.text if kept else ""

    async def on_sleep(self) -> None:
        """End the session, so that it is learnt from."""
        if self.session_id:
            call = self._client.end_session(self._thread_id, self.session_id, shared=self._shared)
            await self._away.instead(None, cast("Awaitable[Session | None]", call))
            self.session_id = ""

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    async def __aenter__(self) -> Self:
        """Begin a session."""
        await self._begin()
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        """End the session; the client stays open."""
        await self.on_sleep()
