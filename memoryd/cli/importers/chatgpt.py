"""The data export of ChatGPT: `conversations.json`, alone or in its archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memoryd.cli.importers.conversations import conversations
from memoryd.cli.importers.items import Item, Skipped, digest, id_of, label, lines_of, said, time_of, titled
from memoryd.cli.importers.source import Source

__all__ = ["read"]

ROLES = frozenset({"user", "assistant"})
TEXTS = frozenset({"text", "multimodal_text"})
REASONING = frozenset({"thoughts", "reasoning_recap"})
MEDIA = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "[audio]",
    "real_time_user_audio_video_asset_pointer": "[audio]",
}
"""What stands for a part that is no text."""


def read(source: Source) -> Iterator[Item]:
    """Yield the messages of each conversation as it was when it was left, and what is left out."""
    yield from conversations(source, "mapping", Mapping, _conversation)


def _conversation(talk: Mapping[str, Any]) -> Iterator[Item]:
    nodes = talk["mapping"]
    name = talk.get("conversation_id") or talk.get("id") or f"untitled-{digest(talk.get('create_time'), *nodes)}"
    place = f"conversation {label(name)}"
    branch = _branch(nodes, talk.get("current_node"))
    if not any(_message(nodes.get(node)) for node in branch):
        yield Skipped(place=place, reason="it has no message")
        return
    title, on_branch = talk.get("title"), set(branch)
    for node in branch:
        message = _message(nodes.get(node))
        if message:
            for item in _said(message, node, f"chatgpt:{id_of(name)}", place, talk, title):
                yield item
                title = title if isinstance(item, Skipped) else None  # it stands with the first message
    for node in nodes:
        if node not in on_branch and _message(nodes[node]):
            yield Skipped(place=f"{place}, message {label(node)}", reason="it is of another branch of the conversation")


def _branch(nodes: Mapping[str, Any], last: object) -> list[str]:
    """Return the ids from the root to the last node; of a conversation that names none, to the last that has none."""
    if not isinstance(last, str) or last not in nodes:
        leaves = [name for name, node in nodes.items() if isinstance(node, Mapping) and not node.get("children")]
        last = leaves[-1] if leaves else None
    found: dict[str, None] = {}
    while isinstance(last, str) and last in nodes and last not in found:
        found[last] = None
        node = nodes[last]
        last = node.get("parent") if isinstance(node, Mapping) else None
    return list(reversed(found))


def _message(node: object) -> Mapping[str, Any] | None:
    message = node.get("message") if isinstance(node, Mapping) else None
    return message if isinstance(message, Mapping) else None


def _said(
    message: Mapping[str, Any], node: str, thread_id: str, place: str, talk: Mapping[str, Any], title: object
) -> Iterator[Item]:
    place = f"{place}, message {label(node)}"
    content, author = _object(message, "content"), _object(message, "author")
    kind, role = str(content.get("content_type") or ""), str(author.get("role") or "")
    reason = ""
    if role == "system" or _object(message, "metadata").get("is_visually_hidden_from_conversation"):
        reason = "it is hidden, or the system's"
    elif role == "tool" or kind in {"code", "execution_output"} or message.get("recipient") not in (None, "all"):
        reason = "it is a tool's, or for one"
    elif kind in REASONING:
        reason = "it is reasoning"
    elif role not in ROLES:
        reason = "its role is neither user nor assistant"
    elif kind not in TEXTS:
        reason = f"it is of the type {label(kind) or 'unknown'}"
    text = _text(content)
    if reason or not text.strip():
        yield Skipped(place=place, reason=reason or "it is empty")
        return
    time = time_of(message.get("create_time")) or time_of(talk.get("create_time"))
    yield from said(thread_id, node, text, place, role=role, create_time=time, metadata=titled(title))


def _object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    return lines_of(map(_part, parts)) if isinstance(parts, list) else str(content.get("text") or "")


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    kind = part.get("content_type")
    if kind == "audio_transcription":
        return str(part.get("text") or "")
    return MEDIA.get(str(kind), f"[{label(kind)}]")
