"""Between the receipt of an erased user and its message; shared by the service and the client."""

from __future__ import annotations

from typing import Any

from memoryd.model.reports import ErasedUser
from memoryd.v1 import memory_pb2
from memoryd.wire.memory import set_time, time_from_pb

__all__ = ["erased_from_pb", "erased_to_pb"]

_OF_ERASED = ("agent_id", "memory_count", "message_count", "thread_count", "note_count", "dry_run")
_ERASED_LISTS = ("memory_ids", "message_ids", "backups")


def erased_to_pb(erased: ErasedUser) -> memory_pb2.ErasedUser:
    """Return the receipt of an erased user as message."""
    message = memory_pb2.ErasedUser(**{name: getattr(erased, name) for name in (*_OF_ERASED, *_ERASED_LISTS)})
    set_time(message, "purge_time", erased.purge_time)
    return message


def erased_from_pb(message: memory_pb2.ErasedUser) -> ErasedUser:
    """Return a message as the receipt of an erased user."""
    lists: dict[str, Any] = {name: tuple(getattr(message, name)) for name in _ERASED_LISTS}
    plain = {name: getattr(message, name) for name in _OF_ERASED}
    return ErasedUser(purge_time=time_from_pb(message, "purge_time"), **plain, **lists)
