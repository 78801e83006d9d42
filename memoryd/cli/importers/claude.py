"""The data export of Claude: `conversations.json`, alone or in its archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memoryd.cli.importers.conversations import conversations
from memoryd.cli.importers.items import Item, Skipped, digest, id_of, label, lines_of, objects, said, time_of, titled
from memoryd.cli.importers.source import Source

__all__ = ["read"]

ROLES = {"human": "user", "assistant": "assistant"}
OTHERS = ("projects.json", "memories.json", "design_chats.json")
"""What an export has besides, and is not read."""


def read(source: Source) -> Iterator[Item]:
    """Yield the messages of each conversation, and what is left out."""
    for name in source.names():
        if name.rpartition("/")[2] in OTHERS:
            yield Skipped(place=f"file {label(name)}", reason="it is no conversation, and is not read")
    yield from conversations(source, "chat_messages", list, _conversation)


def _conversation(talk: Mapping[str, Any]) -> Iterator[Item]:
    name = talk.get("uuid") or f"untitled-{digest(talk.get('created_at'), talk.get('name'))}"
    place = f"conversation {label(name)}"
    if not talk["chat_messages"]:
        yield Skipped(place=place, reason="it has no message")
    title, on_branch = talk.get("name"), _branch(talk)
    for n, message in enumerate(talk["chat_messages"]):
        if not isinstance(message, Mapping):
            yield Skipped(place=f"{place}, message {n + 1}", reason="it is no message")
            continue
        message_id = message.get("uuid") or f"{name}:{n}"
        there = f"{place}, message {label(message_id)}"
        if on_branch and message.get("uuid") not in on_branch:
            yield Skipped(place=there, reason="it is of another branch of the conversation")
            continue
        role, text = ROLES.get(str(message.get("sender"))), _text(message)
        if role is None or not text.strip():
            yield Skipped(place=there, reason="it is empty" if role else "its role is neither user nor assistant")
            continue
        time = time_of(message.get("created_at")) or time_of(talk.get("created_at"))
        metadata = titled(title)
        title = None  # it stands with the first message
        yield from said(
            f"claude:{id_of(name)}", message_id, text, there, role=role, create_time=time, metadata=metadata
        )


def _branch(talk: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the messages up to the last one that is named; none where the export knows no branches."""
    parents = {
        message.get("uuid"): message.get("parent_message_uuid")
        for message in talk["chat_messages"]
        if isinstance(message, Mapping) and isinstance(message.get("uuid"), str)
    }
    last, found = talk.get("current_leaf_message_uuid"), dict[str, None]()
    while isinstance(last, str) and last in parents and last not in found:
        found[last] = None
        last = parents[last]
    return frozenset(found)


def _text(message: Mapping[str, Any]) -> str:
    """Return what a message says: its texts, and the names of its files; no reasoning, and nothing of tools."""
    blocks = [block for block in objects(message, "content") if block.get("type") in {"text", "voice_note"}]
    texts = [str(block.get("text") or "") for block in blocks] or [str(message.get("text") or "")]
    for one in (one for name in ("attachments", "files") for one in objects(message, name)):
        if one.get("file_name"):
            texts.append(f"[file: {label(one['file_name'])}]")
        elif isinstance(one.get("extracted_content"), str):
            texts.append(one["extracted_content"])  # what was pasted as a text
    return lines_of(texts)
