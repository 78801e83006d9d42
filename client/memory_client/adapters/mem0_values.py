"""Messages, metadata and memories in the forms of mem0."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from memoryd.model.memory import ShownMemory

__all__ = [
    "DEFAULT_USER",
    "IDS",
    "ValidationError",
    "checked_id",
    "expiry",
    "item_of",
    "messages_of",
    "without_ids",
]

DEFAULT_USER = "mem0"  # whose memories are that name no user, on the admin socket
IDS = ("user_id", "agent_id", "run_id")
PROMOTED = ("agent_id", "run_id", "actor_id", "role")

log = logging.getLogger("memory_client")


class ValidationError(ValueError):
    """What is asked for names no one, or is of no known form."""


def checked_id(value: object, name: str) -> str | None:
    """Return an id without outer spaces; ValueError for one that is empty or has spaces within."""
    if value is None:
        return None
    text = str(value).strip()
    if not text:
        raise ValueError(f"Invalid {name}: cannot be empty or whitespace-only. Provide a valid identifier.")
    if any(letter.isspace() for letter in text):
        raise ValueError(f"Invalid {name}: cannot contain whitespace. Provide a valid identifier without spaces.")
    return text


def messages_of(given: Any) -> list[dict[str, Any]]:
    """Return the messages that have a role and a content; ValidationError for what is none."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, list):
        raise ValidationError("messages must be str, dict, or list[dict]")
    kept = []
    for message in given:
        if isinstance(message, Mapping) and message.get("role") is not None and message.get("content") is not None:
            kept.append({**message, "content": _text_of(message["content"])})
        else:
            log.warning("a message without role or content is left out")
    return kept


def _text_of(content: Any) -> str:
    """Return what a message says, of parts as the APIs of models have them their text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, Mapping) else str(part) for part in parts)
    return "\n".join(text for text in texts if text)


def without_ids(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return metadata without what says whose it is: that is said by the arguments alone."""
    return {str(key): value for key, value in (metadata or {}).items() if key not in {*IDS, "actor_id"}}


def item_of(memory: ShownMemory) -> dict[str, Any]:
    """Return a memory in mem0's form."""
    payload = dict(memory.metadata)
    item: dict[str, Any] = {
        "id": memory.id,
        "memory": memory.content,
        "hash": hashlib.md5(memory.content.encode()).hexdigest(),  # noqa: S324  mem0's field, no secret
        "created_at": memory.create_time.isoformat(),
        "updated_at": (memory.reinforce_time or memory.create_time).isoformat(),
    }
    if memory.scope.user_id and memory.scope.user_id != DEFAULT_USER:
        item["user_id"] = memory.scope.user_id
    item |= {name: payload.pop(name) for name in PROMOTED if name in payload}
    if memory.expire_time is not None:
        item["expiration_date"] = (memory.expire_time - timedelta(days=1)).date().isoformat()
    return item | ({"metadata": payload} if payload else {})


def expiry(value: object) -> datetime | None:
    """Return the end of a day, as a date, a time or text says it; None for none."""
    if value is None:
        return None
    try:
        day = value.date() if isinstance(value, datetime) else value if isinstance(value, date) else None
        day = date.fromisoformat(value) if isinstance(value, str) else day
    except ValueError:
        raise ValueError("expiration_date must be a valid date in YYYY-MM-DD format.") from None
    if day is None:
        raise ValueError("expiration_date must be a date string in YYYY-MM-DD format.")
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
