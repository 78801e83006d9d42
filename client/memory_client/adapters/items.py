"""
What another library keeps of a conversation, as messages of a thread.

Each item is a message: its readable text is searched and learnt from as any message's, the item itself is kept as JSON
in the metadata and comes back as it was put, but for credentials, which are masked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memory_client.adapters.plans import Plan, ask
from memory_client.adapters.texts import clean, exact_json
from memoryd.errors import MemorydError, ThreadNotFound
from memoryd.model import limits
from memoryd.model.conversation import Message, Role, ToolCall
from memoryd.model.message_draft import MessageDraft
from memoryd.model.validation import check_id

__all__ = [
    "append_all",
    "call_of",
    "clear",
    "draft_of",
    "id_of",
    "item_of",
    "last_messages",
    "role_of",
    "thread_id_of",
    "without_data",
]

PAGE = 1000
INLINE_BYTES = 64 * 1024  # of data within an item, such as an image; more is left out
INLINE = frozenset({"image_url", "file_data", "data", "base64", "url", "uri"})
"""What fields with inline data are called."""


def thread_id_of(name: str) -> str:
    """Return the thread of a session: its name, or a hash of one that is longer than an id may be."""
    data = name.encode("utf-8", "surrogatepass")
    if len(data) <= limits.MAX_ID_BYTES:
        return name
    return "session-" + hashlib.blake2b(data, digest_size=16).hexdigest()


def draft_of(
    role: Role,
    text: str,
    item: Mapping[str, Any],
    *,
    otherwise: str,
    calls: Sequence[ToolCall] = (),
    tool_call_id: str = "",
) -> MessageDraft:
    """Return the message of an item: what it says to people, `otherwise` where that is nothing, and the item."""
    said = clean(text, limits.MAX_MESSAGE_CONTENT_BYTES // 4)
    return MessageDraft(
        role=role,
        content=said if said.strip() or calls else otherwise,
        tool_calls=tuple(calls),
        tool_call_id=tool_call_id,
        metadata=exact_json({"item": item}),
    )


def item_of(message: Message, again: Callable[[dict[str, Any]], MessageDraft]) -> dict[str, Any] | None:
    """
    Return the item that a message was made of; None where it came by another way, or does not say what its item says.

    `again` makes the message of an item. Who appends a message may put anything into its metadata: what people see of
    it, and what a model gets, has to be the same. And what a sandbox says is no instruction of the system.
    """
    kept = json.loads(message.metadata or "{}").get("item")
    if not isinstance(kept, dict) or (message.role is Role.SYSTEM and message.trust.is_sandbox):
        return None
    try:
        draft = again(kept)
    except (MemorydError, KeyError, TypeError, ValueError, AttributeError):
        return None
    is_same = (draft.role, draft.content, draft.tool_calls) == (message.role, message.content, message.tool_calls)
    return kept if is_same else None


def role_of(message: Message) -> Role:
    """Return the role of a message for a model: what a sandbox says is no instruction of the system."""
    return Role.USER if message.role is Role.SYSTEM and message.trust.is_sandbox else message.role


def call_of(name: object, arguments: object, call_id: object) -> ToolCall:
    """Return a tool call as it can be stored: what is too long or not printable is cut; the item keeps it whole."""
    text = clean(str(arguments), limits.MAX_TOOL_ARGUMENT_BYTES // 4)
    return ToolCall(id_of(name) or "tool", text, id_of(call_id))


def id_of(value: object) -> str:
    """Return an id as it can be stored; "" for one that is too long or not printable."""
    try:
        return check_id(str(value), "id")
    except MemorydError:
        return ""


def append_all(thread_id: str, drafts: Sequence[MessageDraft], *, shared: bool = False, **more: Any) -> Plan[None]:
    """Append messages; up to a hundred at once are stored all or none."""
    for first in range(0, len(drafts), limits.MAX_BATCH):
        yield from ask("append", thread_id, drafts[first : first + limits.MAX_BATCH], shared=shared, **more)


def last_messages(thread_id: str, most: int | None = None, *, shared: bool = False) -> Plan[list[Message]]:
    """Return the last messages of a thread in order, or all; none of a thread that is not there."""
    found: list[Message] = []
    token = ""
    while most is None or len(found) < most:
        size = PAGE if most is None else min(PAGE, most - len(found))
        try:
            page = yield from ask("messages", thread_id, shared=shared, page_size=size, page_token=token)
        except ThreadNotFound:
            return []
        found[:0] = page.messages
        token = page.next_page_token
        if not token:
            break
    return found


def clear(thread_id: str, *, shared: bool = False) -> Plan[None]:
    """Erase a thread for good, where there is one."""
    try:
        yield from ask("delete_thread", thread_id, shared=shared)
    except ThreadNotFound:
        return


def without_data(value: Any, key: str = "") -> Any:
    """Return a value without long inline data, as images and files: its digest and size stand for it."""
    if isinstance(value, Mapping):
        return {name: without_data(one, str(name)) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_data(one, key) for one in value]
    if isinstance(value, str) and len(value) >= INLINE_BYTES and (key in INLINE or value.startswith("data:")):
        data = value.encode("utf-8", "surrogatepass")
        return f"omitted: sha256:{hashlib.sha256(data).hexdigest()}, {len(data)} bytes"
    return value
