"""The file of a Letta agent (`.af`): its blocks as notes, its messages as a thread, its passages as statements."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from memoryd.cli.importers.items import (
    Item,
    Skipped,
    digest,
    guarded,
    id_of,
    kept,
    label,
    lines_of,
    objects,
    said,
    stated,
    time_of,
)
from memoryd.cli.importers.source import Damaged, Source

__all__ = ["read"]

ROLES = frozenset({"user", "assistant"})
PASSAGES = ("passages", "archival_memory", "archival_passages")


def read(source: Source) -> Iterator[Item]:
    """Yield what the agents of a file know, and what is left out."""
    whole = source.whole()
    if not isinstance(whole, Mapping) or not isinstance(whole.get("agents"), list):
        raise Damaged(f"{source.path} is no file of a Letta agent: it has no agents")
    blocks = {str(block.get("id")): block for block in objects(whole, "blocks")}
    for n, agent in enumerate(objects(whole, "agents")):
        yield from guarded(_agent(agent, blocks, n), f"agent {n + 1}")


def _agent(agent: Mapping[str, Any], blocks: Mapping[str, Mapping[str, Any]], n: int) -> Iterator[Item]:
    name = label(agent.get("name") or agent.get("id") or f"agent {n + 1}")
    ids = agent.get("block_ids")
    for block_id in ids if isinstance(ids, list) else ():
        block = blocks.get(block_id) if isinstance(block_id, str) else None
        if block is not None:
            place = f"agent {name}, block {label(block.get('label'))}"
            yield from kept(f"letta/{_part(name)}/{_part(block.get('label'))}", _text(block.get("value")), place)
    for message in objects(agent, "messages"):
        yield from _message(message, name)
    for passage in (one for field in PASSAGES for one in objects(agent, field)):
        place = f"agent {name}, passage {label(passage.get('id'))}"
        made = time_of(passage.get("created_at"))
        there = passage.get("id") or f"passage:{digest(passage.get('text'))}"
        yield from stated(passage.get("text"), there, place, create_time=made, event_time=made)


def _message(message: Mapping[str, Any], name: str) -> Iterator[Item]:
    place = f"agent {name}, message {label(message.get('id'))}"
    role = str(message.get("role"))
    if role not in ROLES:
        yield Skipped(place=place, reason="it is the system's, or a tool's")
        return
    content = message.get("content")
    texts = (
        [_text(part.get("text")) for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    )
    sent = [_sent(call) for call in objects(message, "tool_calls")]
    text = lines_of(sent) or (lines_of(texts) if texts else _text(content))
    if role == "user":
        text = _unwrapped(text)
    if not text.strip():
        yield Skipped(place=place, reason="it says nothing to people")
        return
    yield from said(
        f"letta:{id_of(name)}",
        message.get("id") or digest(role, text, message.get("created_at")),
        text,
        place,
        role=role,
        create_time=time_of(message.get("created_at")),
    )


def _sent(call: Mapping[str, Any]) -> str:
    """Return what a call sends to the user: with it, what else an assistant writes is what it thinks."""
    function = call.get("function")
    if not isinstance(function, Mapping) or function.get("name") != "send_message":
        return ""
    try:
        arguments = json.loads(_text(function.get("arguments")))
    except (ValueError, RecursionError):
        return ""
    return _text(arguments.get("message")) if isinstance(arguments, Mapping) else ""


def _unwrapped(text: str) -> str:
    """Return what a user has said, which Letta wraps into an object; nothing of its own events."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(value, Mapping) or "type" not in value:
        return text
    return _text(value.get("message")) if value["type"] == "user_message" else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _part(value: object) -> str:
    """Return a name as a part of a path."""
    return label(value).replace("/", "-").strip(". ") or "unnamed"
