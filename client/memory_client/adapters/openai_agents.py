"""
A session of the OpenAI Agents SDK over a conversation: `MemorydSession("chat-1", client)`.

Each item is a message of the thread: its readable text is searched and learnt from as any message's, the item itself
comes back as it was put, but for credentials, which are masked.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from memory_client.adapters.away import Away
from memory_client.adapters.items import (
    append_all,
    call_of,
    clear,
    draft_of,
    id_of,
    item_of,
    last_messages,
    role_of,
    thread_id_of,
    without_data,
)
from memory_client.adapters.plans import arun
from memory_client.adapters.texts import clean
from memoryd.model import limits
from memoryd.model.conversation import Message, Role, ToolCall
from memoryd.model.message_draft import MessageDraft

if TYPE_CHECKING:
    from agents import SessionSettings, TResponseInputItem
    from agents.run_config import CallModelData, ModelInputData

    from memory_client import AsyncMemoryClient

__all__ = ["MemorydSession", "draft_of_item"]

_MODELS = {Role.USER: "user", Role.ASSISTANT: "assistant", Role.SYSTEM: "system"}
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}


class MemorydSession:
    """
    A session: `Runner.run(agent, text, session=MemorydSession("chat-1", client))`.

    A session_id of more than 128 bytes is named by its hash. Of an item, inline data of 64 KiB or more, as an image,
    is replaced by its digest and size; with `whole` it is kept, and refused where the item has more than 1 MiB. An item
    comes back as it was put only where its message says the same; a system's item of a sandbox comes as a user's.

    While the daemon is away the session says so once a minute and is empty, and what is added is lost; `strict` raises
    instead. `clear_session` always raises. What the daemon refuses is always raised.
    """

    def __init__(
        self,
        session_id: str,
        client: AsyncMemoryClient,
        *,
        shared: bool = False,
        session_settings: SessionSettings | None = None,
        strict: bool = False,
        whole: bool = False,
    ) -> None:
        """Name a session of the client's user, or with `shared` of its chat; nothing is sent yet."""
        self.session_id = session_id
        self.session_settings = session_settings
        self._client = client
        self._shared = shared
        self._whole = whole
        self._away = Away("the session", strict=strict)
        self._thread_id = thread_id_of(session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the last items in order: `limit` of them, or as many as the settings say, or all."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        found = await self._away.instead([], self._messages(limit))
        return cast("list[TResponseInputItem]", [_item(message) for message in found])

    async def _messages(self, most: int | None) -> list[Message]:
        return await arun(self._client, last_messages(self._thread_id, most, shared=self._shared))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items; up to a hundred at once are stored all or none."""
        kept = items if self._whole else without_data(items)
        drafts = [draft_of_item(dict(item)) for item in kept]
        plan = append_all(self._thread_id, drafts, shared=self._shared)
        await self._away.instead(None, arun(self._client, plan))

    async def pop_item(self) -> TResponseInputItem | None:
        """Erase the last item for good, and return it; None of an empty session."""
        return await self._away.instead(None, self._popped())

    async def _popped(self) -> TResponseInputItem | None:
        last = await self._messages(1)
        if not last:
            return None
        await self._client.delete_messages(self._thread_id, [last[0].id], shared=self._shared)
        return cast("TResponseInputItem", _item(last[0]))

    async def clear_session(self) -> None:
        """Erase all items for good."""
        await arun(self._client, clear(self._thread_id, shared=self._shared))

    def context_filter(self, **more: Any) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
        """
        Return what puts the context of the user's last words behind an agent's instructions.

        It goes into `RunConfig(call_model_input_filter=session.context_filter())`. Further arguments as of the client's
        `context`; the session's own messages are left out, as the model has them.
        """

        async def with_context(data: CallModelData[Any]) -> ModelInputData:
            from agents.run_config import ModelInputData

            given = data.model_data
            said = [_text(dict(cast("Mapping[str, Any]", item))) for item in given.input if _is_of_user(item)]
            prompt = clean(said[-1], limits.MAX_PROMPT_BYTES // 4) if said else ""
            call = self._client.context(prompt, exclude_thread_ids=[self._thread_id], **more)
            built = await self._away.instead(None, cast("Awaitable[Any]", call))
            texts = [given.instructions or "", built.text if built else ""]
            return ModelInputData(input=given.input, instructions="\n\n".join(filter(None, texts)) or None)

        return with_context


def draft_of_item(item: Mapping[str, Any]) -> MessageDraft:
    """Return the message of an item of a session."""
    role = ROLES.get(str(item.get("role", "")), Role.TOOL)
    calls: tuple[ToolCall, ...] = ()
    if item.get("type") == "function_call":
        role, calls = Role.ASSISTANT, (call_of(item["name"], item.get("arguments", ""), item.get("call_id", "")),)
    return draft_of(
        role,
        _text(item),
        item,
        otherwise=f"[{item.get('type', 'message')}]",
        calls=calls,
        tool_call_id=id_of(item.get("call_id", "")) if role is Role.TOOL else "",
    )


def _is_of_user(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("role") == "user"


def _item(message: Message) -> Any:
    """Return the item of a message; of one that came by another way what it says."""
    return item_of(message, draft_of_item) or {"role": _MODELS.get(role_of(message), "user"), "content": message.shown}


def _text(item: Mapping[str, Any]) -> str:
    """Return what an item says to people."""
    if item.get("type") == "function_call":
        return ""
    said = item["output"] if "output" in item else item.get("content", item.get("summary", ""))
    if isinstance(said, str):
        return said
    if not isinstance(said, list):
        return json.dumps(said, ensure_ascii=False)
    parts = (part if isinstance(part, Mapping) else {"text": str(part)} for part in said)
    return "\n".join(str(part.get("text") or part.get("refusal") or f"[{part.get('type', 'part')}]") for part in parts)
