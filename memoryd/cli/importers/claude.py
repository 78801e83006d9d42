"""The data export of Claude: `conversations.json`, alone or in its archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memoryd.cli.importers.items import Item, Skipped, id_of, label, lines_of, said, time_of
from memoryd.cli.importers.source import Source

__all__ = ["read"]

ROLES = {"human": "user", "assistant": "assistant"}


def read(source: Source) -> Iterator[Item]:
    """Yield the messages of each conversation, and what is left out."""
    with source.opened("conversations.json", "conversations-*.json") as files:
        for _, file in files:
            for number, talk in source.records(file):
                if isinstance(talk, Mapping) and isinstance(talk.get("chat_messages"), list):
                    yield from _conversation(talk, number)
                else:
                    yield Skipped(place=f"item {number}", reason="it is no conversation")


def _conversation(talk: Mapping[str, Any], number: int) -> Iterator[Item]:
    name = talk.get("uuid") or f"item {number}"
    place = f"conversation {label(name)}"
    if not talk["chat_messages"]:
        yield Skipped(place=place, reason="it has no message")
    title = talk.get("name")
    for n, message in enumerate(talk["chat_messages"]):
        if not isinstance(message, Mapping):
            yield Skipped(place=f"{place}, message {n + 1}", reason="it is no message")
            continue
        message_id = message.get("uuid") or f"{name}:{n}"
        there = f"{place}, message {label(message_id)}"
        role, text = ROLES.get(str(message.get("sender"))), _text(message)
        if role is None or not text.strip():
            yield Skipped(place=there, reason="it is empty" if role else "its role is neither user nor assistant")
            continue
        time = time_of(message.get("created_at")) or time_of(talk.get("created_at"))
        metadata = {"title": label(title, 500)} if isinstance(title, str) and title.strip() else ""
        title = None  # it stands with the first message
        yield from said(
            f"claude:{id_of(name)}", message_id, text, there, role=role, create_time=time, metadata=metadata
        )


def _text(message: Mapping[str, Any]) -> str:
    """Return what a message says: its texts, and the names of its files; no reasoning, and nothing of tools."""
    blocks = [block for block in _list(message, "content") if block.get("type") == "text"]
    texts = [str(block.get("text") or "") for block in blocks] or [str(message.get("text") or "")]
    names = [one.get("file_name") for name in ("attachments", "files") for one in _list(message, name)]
    return lines_of((*texts, *(f"[file: {label(name)}]" for name in names if name)))


def _list(message: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = message.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
