"""Between the values of `note` and the messages of the contract; shared by the service and the client."""

from __future__ import annotations

from typing import Any

from memoryd.errors import InvalidArgument
from memoryd.model.note import Note, NoteVersion
from memoryd.model.scope import Scope
from memoryd.v1 import memory_pb2, note_pb2
from memoryd.wire.memory import TRUST, set_time, time_from_pb

__all__ = ["content_from_pb", "note_from_pb", "note_to_pb", "version_from_pb", "version_to_pb"]

_NOTE = ("id", "agent_id", "path", "expire_after_access_s", "is_searched")
_VERSION = ("revision", "text_bytes", "author")


def note_to_pb(note: Note, version: NoteVersion, *, with_content: bool) -> note_pb2.Note:
    """Return a note, as it is or was in a version, as message."""
    scope = memory_pb2.Scope(user_id=note.scope.user_id or "", chat_id=note.scope.chat_id or "")
    message = note_pb2.Note(
        scope=scope,
        trust=TRUST.to_pb(version.trust),
        is_value=version.is_json,
        **{name: getattr(note, name) for name in _NOTE},
        **{name: getattr(version, name) for name in _VERSION},
    )
    if with_content:
        setattr(message, "value" if version.is_json else "text", note.text)
    set_time(message, "create_time", note.create_time)
    set_time(message, "update_time", version.update_time)
    set_time(message, "expire_time", note.expire_time)
    return message


def note_from_pb(message: note_pb2.Note, versions: Any = ()) -> Note:
    """Return a message as note, with the version that it has, and the others."""
    own = version_from_pb(message)
    others = [one for one in map(version_from_pb, versions) if one.revision != own.revision]
    return Note(
        scope=Scope(message.scope.user_id or None, message.scope.chat_id or None),
        create_time=_time(message, "create_time"),
        expire_time=time_from_pb(message, "expire_time"),
        versions=(own, *others),
        text=message.value if message.is_value else message.text,
        **{name: getattr(message, name) for name in _NOTE},
    )


def version_to_pb(version: NoteVersion) -> note_pb2.NoteVersion:
    """Return a version as message."""
    message = note_pb2.NoteVersion(
        trust=TRUST.to_pb(version.trust),
        is_value=version.is_json,
        **{name: getattr(version, name) for name in _VERSION},
    )
    set_time(message, "update_time", version.update_time)
    return message


def version_from_pb(message: Any) -> NoteVersion:
    """Return a version, or the version of a note, as value."""
    return NoteVersion(
        update_time=_time(message, "update_time"),
        is_json=message.is_value,
        trust=TRUST.from_pb(message.trust),
        **{name: getattr(message, name) for name in _VERSION},
    )


def content_from_pb(request: Any) -> tuple[str, bool]:
    """Return the text that a request puts, and whether it is JSON; InvalidArgument where it has none."""
    which = request.WhichOneof("content")
    if which is None:
        raise InvalidArgument("text or value is missing; give one of them", field="text")
    return getattr(request, which), which == "value"


def _time(message: Any, name: str) -> Any:
    found = time_from_pb(message, name)
    if found is None:
        raise InvalidArgument(f"{name} is unset", field=name)
    return found
