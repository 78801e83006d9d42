"""
A session of the OpenAI Agents SDK over a conversation: `MemorydSession("chat-1", client)`.

Each item is a message of the thread: its readable text is searched and learnt from as any message's, the item itself
comes back as it was put, but for credentials, which are masked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from memory_client.adapters.away import Away
from memory_client.adapters.texts import clean, exact_json
from memoryd.errors import ThreadNotFound
from memoryd.model import limits
from memoryd.model.conversation import Message, Role, ToolCall
from memoryd.model.message_draft import MessageDraft

if TYPE_CHECKING:
    from agents import SessionSettings, TResponseInputItem
    from agents.run_config import CallModelData, ModelInputData

    from memory_client import AsyncMemoryClient
    from memoryd.model.talk import Appended, MessagePage

__all__ = ["MemorydSession"]

PAGE = 1000
AT_ONCE = limits.MAX_BATCH
INLINE_BYTES = 64 * 1024  # of data within an item, such as an image; more is left out
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}


class MemorydSession:
    """
    A session: `Runner.run(agent, text, session=MemorydSession("chat-1", client))`.

    A session_id of more than 128 bytes is named by its hash. Of an item, text of 64 KiB or more without a space, as an
    inline image, is replaced by its digest and size; with `whole` it is kept, and refused where the item has more than
    1 MiB.

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
        self._thread_id = _thread_id(session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the last items in order: `limit` of them, or as many as the settings say, or all."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        found = await self._away.instead([], self._messages(limit))
        return cast("list[TResponseInputItem]", [_item(message) for message in found])

    async def _messages(self, most: int | None) -> list[Message]:
        found: list[Message] = []
        token = ""
        while most is None or len(found) < most:
            size = PAGE if most is None else min(PAGE, most - len(found))
            try:
                page: MessagePage = await self._client.messages(
                    self._thread_id, shared=self._shared, page_size=size, page_token=token
                )
            except ThreadNotFound:
                return []
            found[:0] = page.messages
            token = page.next_page_token
            if not token:
                break
        return found

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items; up to a hundred at once are stored all or none."""
        drafts = [self._draft(cast("Mapping[str, Any]", item)) for item in items]
        for first in range(0, len(drafts), AT_ONCE):
            call = self._client.append(self._thread_id, drafts[first : first + AT_ONCE], shared=self._shared)
            await self._away.instead(None, cast("Awaitable[Appended | None]", call))

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
        try:
            await self._client.delete_thread(self._thread_id, shared=self._shared)
        except ThreadNotFound:
            return

    def context_filter(self, **more: Any) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
        """
        Return what puts the context of the user's last words before a model's instructions.

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

    def _draft(self, item: Mapping[str, Any]) -> MessageDraft:
        kept = dict(item) if self._whole else _without_data(item)
        calls: tuple[ToolCall, ...] = ()
        text = clean(_text(kept), limits.MAX_MESSAGE_CONTENT_BYTES // 4)
        role = ROLES.get(str(kept.get("role", "")), Role.TOOL)
        if kept.get("type") == "function_call":
            role = Role.ASSISTANT
            calls = (ToolCall(str(kept["name"]), str(kept.get("arguments", "")), str(kept.get("call_id", ""))),)
        return MessageDraft(
            role=role,
            content=text if text.strip() or calls else f"[{kept.get('type', 'message')}]",
            tool_calls=calls,
            tool_call_id=str(kept.get("call_id", "")) if role is Role.TOOL else "",
            metadata=exact_json({"item": kept}),
        )


def _thread_id(session_id: str) -> str:
    if len(session_id.encode("utf-8", "surrogatepass")) <= limits.MAX_ID_BYTES:
        return session_id
    return "session-" + hashlib.blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _is_of_user(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("role") == "user"


def _item(message: Message) -> Any:
    """Return the item of a message; of one that came by another way what it says."""
    kept = json.loads(message.metadata or "{}").get("item")
    return kept if isinstance(kept, dict) else {"role": message.role.value, "content": message.content}


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


def _without_data(value: Any) -> Any:
    """Return a value with long texts that are data replaced by their digest and size."""
    if isinstance(value, Mapping):
        return {key: _without_data(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_data(one) for one in value]
    if isinstance(value, str) and len(value) >= INLINE_BYTES and " " not in value:
        data = value.encode("utf-8", "surrogatepass")
        return f"omitted: sha256:{hashlib.sha256(data).hexdigest()}, {len(data)} bytes"
    return value
