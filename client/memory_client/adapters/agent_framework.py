"""Providers of Microsoft's Agent Framework: `Agent(…, context_providers=[MemorydHistory(c), MemorydContext(c)])`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent_framework import ContextProvider, HistoryProvider, Message

from memory_client.adapters.away import Away
from memory_client.adapters.items import (
    append_all,
    draft_of,
    item_of,
    last_messages,
    role_of,
    thread_id_of,
    without_data,
)
from memory_client.adapters.plans import arun
from memory_client.adapters.texts import clean
from memoryd.model import limits
from memoryd.model.conversation import Role
from memoryd.model.message_draft import MessageDraft

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient

__all__ = ["MemorydContext", "MemorydHistory"]

ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "tool": Role.TOOL}


class MemorydContext(ContextProvider):
    """
    Puts what is known before each run: the context of the user's last words, as instructions.

    While the daemon is away nothing is known, and that is said once a minute; `strict` raises instead.
    """

    def __init__(
        self, client: AsyncMemoryClient, source_id: str = "memoryd", *, strict: bool = False, **context: Any
    ) -> None:
        """Further arguments as of the client's `context`, such as max_tokens."""
        super().__init__(source_id)
        self._client = client
        self._context = context
        self._away = Away("the agent", strict=strict)

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Add the context to the instructions; messages of this session are left out, as the history has them."""
        del agent, session, state
        said = [message.text for message in context.input_messages if str(message.role) == "user"]
        prompt = clean("\n".join(said), limits.MAX_PROMPT_BYTES // 4)
        own = [_thread_id(context.session_id)]
        built = await self._away.instead(None, self._client.context(prompt, exclude_thread_ids=own, **self._context))
        if built is not None and built.text:
            context.extend_instructions(self.source_id, built.text)


class MemorydHistory(HistoryProvider):
    """
    Keeps the messages of each session as a thread; they come back as they were, but for credentials.

    While the daemon is away a session is empty, what is said is lost, and that is said once a minute; `strict` raises
    instead. What the daemon refuses is always raised.
    """

    def __init__(
        self, client: AsyncMemoryClient, source_id: str = "memoryd-history", *, strict: bool = False, **more: Any
    ) -> None:
        """Further arguments as of HistoryProvider."""
        super().__init__(source_id, **more)
        self._client = client
        self._away = Away("the history", strict=strict)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return all messages of a session in order."""
        del state, kwargs
        found = await self._away.instead([], arun(self._client, last_messages(_thread_id(session_id))))
        return [
            Message.from_dict(item)
            if (item := item_of(message, _draft))
            else Message(role_of(message).value, [message.shown])
            for message in found
        ]

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Append messages to a session."""
        del state, kwargs
        drafts = [_draft(without_data(message.to_dict())) for message in messages]
        await self._away.instead(None, arun(self._client, append_all(_thread_id(session_id), drafts)))


def _thread_id(session_id: str | None) -> str:
    return thread_id_of(session_id or "agent-framework")


def _draft(item: dict[str, Any]) -> MessageDraft:
    """Return the message of what Agent Framework writes of one."""
    message = Message.from_dict(item)
    role = ROLES.get(str(message.role), Role.TOOL)
    return draft_of(role, message.text, item, otherwise=f"[{message.role}]")
