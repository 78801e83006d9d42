"""Threads, sessions and messages as rows, and rows as what they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memoryd.model.change import NewMessage
from memoryd.model.conversation import Message, Role, Session, SessionState, Thread, ToolCall, WorkingMemory
from memoryd.model.scope import Owner, Scope
from memoryd.model.times import from_us, to_us
from memoryd.model.trust import Trust
from memoryd.store import rows
from memoryd.store.conversations import thread_name

__all__ = [
    "MESSAGE_COLUMNS",
    "OWNER",
    "SESSION_COLUMNS",
    "THREAD_COLUMNS",
    "WORKING_COLUMNS",
    "message_of",
    "message_row",
    "owner_columns",
    "session_name",
    "session_of",
    "session_row",
    "thread_key",
    "thread_of",
    "thread_row",
    "working_memory_of",
]  # fmt: skip

OWNER = ("agent_id", "user_id", "chat_id")
MESSAGE_COLUMNS = (
    *OWNER, "thread_id", "id", "seq", "content", "details", "metadata", "create_time", "grant_id", "number",
    "piece_count",
)  # fmt: skip
THREAD_COLUMNS = (*OWNER, "thread_id", "create_time", "update_time", "session_id", "revision", "details")
SESSION_COLUMNS = (*OWNER, "thread_id", "session_id", "state", "start_time", "details")
WORKING_COLUMNS = ("text", "update_time", "trust", "grant_id", "author")
_ROLES = {role.value: role for role in Role}
_TRUSTS = {trust.value: trust for trust in Trust}


def thread_key(owner: Owner, thread_id: str) -> int:
    """Return the number by which the messages of a thread are found: 63 bits of its name, which compare fast."""
    return int(thread_name(owner, thread_id)[:16], 16) >> 1


def session_name(owner: Owner, thread_id: str, session_id: str) -> str:
    """Return the key of a session."""
    return thread_name(owner, f"{thread_id}\x1f{session_id}")


def owner_columns(agent_id: str, scope: Scope) -> dict[str, Any]:
    """Return the columns that say whose a row is."""
    return {"agent_id": agent_id, "user_id": scope.user_id, "chat_id": scope.chat_id}


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in values.items() if value}, ensure_ascii=False)


def _us(time: datetime | None) -> int | None:
    return None if time is None else to_us(time)


def message_row(new_message: NewMessage, number: int, commit_seq: int) -> dict[str, Any]:
    """Return the row of a message with its analysed words, and with its long texts; see `long_texts.divided`."""
    message = new_message.message
    details = {
        "role": message.role.value,
        "session_id": message.session_id,
        "name": message.name,
        "tool_calls": [[call.name, call.arguments, call.id] for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
        "input_source": message.input_source,
        "masked": message.masked,
        "trust": message.trust.value,
        "author": message.author,
    }
    return {
        "number": number,
        "thread": thread_key(message.owner, message.thread_id),
        **owner_columns(message.agent_id, message.scope),
        "thread_id": message.thread_id,
        "id": message.id,
        "seq": message.seq,
        "content": message.content,
        "details": _json(details),
        "metadata": message.metadata,
        "create_time": rows.naive(message.create_time),
        "grant_id": message.grant_id,
        "text_bytes": message.text_bytes,
        "terms": new_message.terms,
        "traits": new_message.traits,
        "commit_seq": commit_seq,
    }


def thread_row(thread: Thread, commit_seq: int) -> dict[str, Any]:
    """Return the row of a thread."""
    details = {
        "message_count": thread.message_count,
        "turn_count": thread.turn_count,
        "last_seq": thread.last_seq,
        "summary": thread.summary,
        "summary_seq": thread.summary_seq,
        "summary_time": _us(thread.summary_time),
        "summary_by": thread.summary_by,
        "view_seq": thread.view_seq,
        "working_memory": thread.working_memory,
        "working_memory_time": _us(thread.working_memory_time),
        "trust": thread.trust.value,
        "summary_trust": thread.summary_trust.value,
        "working_memory_trust": thread.working_memory_trust.value,
        "summary_author": thread.summary_author,
        "working_memory_author": thread.working_memory_author,
        "summary_grant_id": thread.summary_grant_id,
        "working_memory_grant_id": thread.working_memory_grant_id,
    }
    return {
        "name": thread_name(thread.owner, thread.id),
        **owner_columns(thread.agent_id, thread.scope),
        "thread_id": thread.id,
        "create_time": rows.naive(thread.create_time),
        "update_time": rows.naive(thread.update_time),
        "session_id": thread.session_id,
        "revision": thread.revision,
        "details": _json(details),
        "commit_seq": commit_seq,
    }


def session_row(session: Session) -> dict[str, Any]:
    """Return the row of a session."""
    details = {
        "update_time": _us(session.update_time),
        "end_time": _us(session.end_time),
        "end_reason": session.end_reason,
        "lease_by": session.lease_by,
        "lease_time": _us(session.lease_time),
        "message_count": session.message_count,
        "turn_count": session.turn_count,
        "messages_before": session.messages_before,
        "turns_before": session.turns_before,
        "trust": session.trust.value,
        "first_seq": session.first_seq,
        "last_seq": session.last_seq,
    }
    return {
        "name": session_name(session.owner, session.thread_id, session.id),
        **owner_columns(session.agent_id, session.scope),
        "thread_id": session.thread_id,
        "session_id": session.id,
        "state": session.state.value,
        "start_time": rows.naive(session.start_time),
        "details": _json(details),
    }


def message_of(row: Sequence[Any]) -> Message:
    """Return the message of a row: MESSAGE_COLUMNS, with its long texts."""
    agent_id, user_id, chat_id, thread_id, message_id, seq, content, details, metadata, create_time, grant_id, *_ = row
    values = json.loads(details)
    return Message(
        id=message_id,
        agent_id=agent_id,
        scope=Scope(user_id, chat_id),
        thread_id=thread_id,
        seq=seq,
        session_id=values.get("session_id", ""),
        role=_ROLES[values["role"]],
        content=content,
        create_time=create_time.replace(tzinfo=UTC),
        name=values.get("name", ""),
        tool_calls=tuple(ToolCall(*call) for call in values.get("tool_calls", ())),
        tool_call_id=values.get("tool_call_id", ""),
        input_source=values.get("input_source", ""),
        metadata=metadata,
        masked=values.get("masked", False),
        trust=_TRUSTS[values["trust"]],
        grant_id=grant_id,
        author=values.get("author", ""),
    )


def _held(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: from_us(value) if name.endswith("_time") else _TRUSTS[value] if name.endswith("trust") else value
        for name, value in values.items()
    }


def thread_of(row: Sequence[Any]) -> Thread:
    """Return the thread of a row: THREAD_COLUMNS."""
    agent_id, user_id, chat_id, thread_id, create_time, update_time, session_id, revision, details = row
    values = json.loads(details)
    return Thread(
        id=thread_id,
        agent_id=agent_id,
        scope=Scope(user_id, chat_id),
        create_time=create_time.replace(tzinfo=UTC),
        update_time=update_time.replace(tzinfo=UTC),
        session_id=session_id,
        revision=revision,
        **_held(values),
    )


def working_memory_of(row: Sequence[Any]) -> WorkingMemory:
    """Return the working memory of a row: WORKING_COLUMNS."""
    text, update_time, trust, grant_id, author = row
    return WorkingMemory(text, update_time.replace(tzinfo=UTC), _TRUSTS[trust], grant_id, author)


def session_of(row: Sequence[Any]) -> Session:
    """Return the session of a row: SESSION_COLUMNS."""
    agent_id, user_id, chat_id, thread_id, session_id, state, start_time, details = row
    values = {
        "trust": Trust.SANDBOX.value,
        **json.loads(details),
    }  # of earlier versions it is not known: anybody ends it
    return Session(
        id=session_id,
        agent_id=agent_id,
        scope=Scope(user_id, chat_id),
        thread_id=thread_id,
        state=SessionState(state),
        start_time=start_time.replace(tzinfo=UTC),
        **_held(values),
    )
