"""A chat history of LangChain over a conversation: `MemorydHistory("chat-1", client)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

from memory_client.adapters.items import (
    append_all,
    clear,
    draft_of,
    item_of,
    last_messages,
    role_of,
    thread_id_of,
    without_data,
)
from memory_client.adapters.plans import arun, run
from memoryd.model.conversation import Message, Role
from memoryd.model.message_draft import MessageDraft

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient, MemoryClient

__all__ = ["MemorydHistory"]

ROLES = {"human": Role.USER, "ai": Role.ASSISTANT, "system": Role.SYSTEM}
TYPES = {Role.USER: "human", Role.ASSISTANT: "ai", Role.SYSTEM: "system"}


class MemorydHistory(BaseChatMessageHistory):
    """
    The messages of one session of the client's user, or with `shared` of its chat.

    `client` serves `messages`, `add_messages` and `clear`, `async_client` their twins; what is not given is made from
    the environment when it is first needed. Long texts that are data, as images, are replaced by their digest.
    """

    def __init__(
        self,
        session_id: str,
        client: MemoryClient | None = None,
        async_client: AsyncMemoryClient | None = None,
        *,
        shared: bool = False,
    ) -> None:
        """Nothing is sent yet."""
        self._thread_id = thread_id_of(session_id)
        self._shared = shared
        self._client, self._async_client = client, async_client

    @property
    def _plain(self) -> MemoryClient:
        if self._client is None:
            from memory_client import MemoryClient

            self._client = MemoryClient()
        return self._client

    @property
    def _awaited(self) -> AsyncMemoryClient:
        if self._async_client is None:
            from memory_client import AsyncMemoryClient

            self._async_client = AsyncMemoryClient()
        return self._async_client

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """All messages in order."""
        return _read(run(self._plain, last_messages(self._thread_id, shared=self._shared)))

    async def aget_messages(self) -> list[BaseMessage]:
        """Return all messages in order."""
        return _read(await arun(self._awaited, last_messages(self._thread_id, shared=self._shared)))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages; up to a hundred at once are stored all or none."""
        run(self._plain, append_all(self._thread_id, list(map(_draft, messages)), shared=self._shared))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages, as `add_messages`."""
        await arun(self._awaited, append_all(self._thread_id, list(map(_draft, messages)), shared=self._shared))

    def clear(self) -> None:
        """Erase all messages for good."""
        run(self._plain, clear(self._thread_id, shared=self._shared))

    async def aclear(self) -> None:
        """Erase all messages for good."""
        await arun(self._awaited, clear(self._thread_id, shared=self._shared))


def _draft(message: BaseMessage) -> MessageDraft:
    return _made_of(without_data(message_to_dict(message)))


def _made_of(item: dict[str, Any]) -> MessageDraft:
    """Return the message of what LangChain writes of one."""
    message = messages_from_dict([item])[0]
    text = message.content if isinstance(message.content, str) else str(message.text)
    return draft_of(ROLES.get(message.type, Role.TOOL), text, item, otherwise=f"[{message.type}]")


def _read(messages: Sequence[Message]) -> list[BaseMessage]:
    return messages_from_dict([item_of(message, _made_of) or _plain_item(message) for message in messages])


def _plain_item(message: Message) -> dict[str, object]:
    """Return what LangChain reads of a message that came by another way; that of a tool is shown as the agent's."""
    return {"type": TYPES.get(role_of(message), "ai"), "data": {"content": message.shown}}
