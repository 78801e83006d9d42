"""Threads, sessions and messages as rows: how they are written, and the SQL that reads them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from memoryd.errors import Contended
from memoryd.model.change import ConversationChange, Embedding, Entry, Snapshot
from memoryd.model.conversation import Message, Role, Session, SessionState, Thread, ToolCall
from memoryd.model.scope import Owner, Scope
from memoryd.model.times import from_us, to_us
from memoryd.model.trust import Trust
from memoryd.store.conversations import numbered, thread_mark, thread_name
from memoryd.store.duckdb import rows
from memoryd.store.duckdb.queries import of_owner
from memoryd.store.duckdb.vectors import column_of

__all__ = [
    "MESSAGE_COLUMNS", "SESSION_COLUMNS", "THREAD_COLUMNS", "message_of", "message_sizes", "read_episodes",
    "session_of", "thread_key", "thread_of", "write_conversation", "write_cursors",
]  # fmt: skip

T = TypeVar("T")
CHUNK = 4096  # messages that a load holds as rows at a time
Insert = Callable[[duckdb.DuckDBPyConnection, str, Sequence[dict[str, Any]]], None]

OWNER = ("agent_id", "user_id", "chat_id")
MESSAGE_COLUMNS = (*OWNER, "thread_id", "id", "seq", "content", "details", "metadata", "create_time", "grant_id")
THREAD_COLUMNS = (*OWNER, "thread_id", "create_time", "update_time", "session_id", "revision", "details")
SESSION_COLUMNS = (*OWNER, "thread_id", "session_id", "state", "start_time", "details")
_ROLES = {role.value: role for role in Role}
_TRUSTS = {trust.value: trust for trust in Trust}


def thread_key(owner: Owner, thread_id: str) -> int:
    """Return the number by which the messages of a thread are found: 63 bits of its name, which compare fast."""
    return int(thread_name(owner, thread_id)[:16], 16) >> 1


def _session_name(session: Session) -> str:
    return thread_name(session.owner, f"{session.thread_id}\x1f{session.id}")


def _owner_columns(agent_id: str, scope: Scope) -> dict[str, Any]:
    return {"agent_id": agent_id, "user_id": scope.user_id, "chat_id": scope.chat_id}


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in values.items() if value}, ensure_ascii=False)


def _us(time: datetime | None) -> int | None:
    return None if time is None else to_us(time)


# --- writing ---


def _message_row(message: Message, terms: str, number: int, commit_seq: int) -> dict[str, Any]:
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
        **_owner_columns(message.agent_id, message.scope),
        "thread_id": message.thread_id,
        "id": message.id,
        "seq": message.seq,
        "content": message.content,
        "details": _json(details),
        "metadata": message.metadata,
        "create_time": rows.naive(message.create_time),
        "grant_id": message.grant_id,
        "text_bytes": message.text_bytes,
        "terms": terms,
        "commit_seq": commit_seq,
    }


def write_conversation(
    con: duckdb.DuckDBPyConnection, change: ConversationChange, commit_seq: int, insert: Insert
) -> None:
    """Write what changes of an owner's conversations, in the open transaction; Contended where a thread has changed."""
    for thread in change.threads:
        _write_thread(con, thread, commit_seq)
    for session in change.sessions:
        _write_session(con, session)
    if change.messages:
        insert(
            con,
            "messages",
            [
                _message_row(message, terms, numbered(commit_seq, n), commit_seq)
                for n, (message, terms) in enumerate(change.messages)
            ],
        )
    if change.working_memory is not None:
        name = thread_name(change.owner, "")
        con.execute("DELETE FROM working_memories WHERE name = ?", [name])
        if change.working_memory.text:
            held = change.working_memory
            columns = _owner_columns(change.owner.agent_id, change.owner.scope)
            con.execute(
                "INSERT INTO working_memories VALUES (?, ?, ?, ?, ?, ?, ?)",
                [name, *columns.values(), held.text, rows.naive(held.update_time), held.trust.value],
            )
    if change.embeddings:
        _write_vectors(con, change, commit_seq)
    if change.purge_messages:
        gone = [message.id for message in change.purge_messages]
        keys = [thread_key(message.owner, message.thread_id) for message in change.purge_messages]
        for table in ("messages", "message_vectors"):
            con.execute(
                f"DELETE FROM {table} WHERE thread IN (SELECT unnest(?::BIGINT[]))"
                " AND id IN (SELECT unnest(?::VARCHAR[]))",
                [list(dict.fromkeys(keys)), gone],
            )
    for thread in change.purge_threads:
        where, params = of_owner(thread.owner)
        for table in ("messages", "message_vectors", "sessions", "threads"):
            con.execute(f"DELETE FROM {table} WHERE {where} AND thread_id = ?", [*params, thread.id])
        con.execute("DELETE FROM requests WHERE contains(answer, ?)", [thread_mark(thread.owner, thread.id)])


def message_sizes(con: duckdb.DuckDBPyConnection, thread: Thread) -> list[tuple[str, date, int]]:
    """Return the bytes of a thread's messages by grant and day, of those that came through a grant."""
    where, params = of_owner(thread.owner)
    return con.execute(
        f"SELECT grant_id, create_time::DATE, sum(text_bytes)::BIGINT FROM messages WHERE {where} AND thread_id = ?"
        " AND grant_id <> '' GROUP BY ALL",
        [*params, thread.id],
    ).fetchall()


def _write_thread(con: duckdb.DuckDBPyConnection, thread: Thread, commit_seq: int) -> None:
    details = _json(
        {
            "message_count": thread.message_count,
            "turn_count": thread.turn_count,
            "last_seq": thread.last_seq,
            "summary": thread.summary,
            "summary_seq": thread.summary_seq,
            "summary_time": _us(thread.summary_time),
            "view_seq": thread.view_seq,
            "working_memory": thread.working_memory,
            "working_memory_time": _us(thread.working_memory_time),
            "trust": thread.trust.value,
            "summary_trust": thread.summary_trust.value,
            "working_memory_trust": thread.working_memory_trust.value,
        }
    )
    name = thread_name(thread.owner, thread.id)
    if thread.revision > 1:
        updated = con.execute(
            "UPDATE threads SET update_time = ?, session_id = ?, revision = ?, details = ?, commit_seq = ?"
            " WHERE name = ? AND revision = ? AND create_time = ?",
            [rows.naive(thread.update_time), thread.session_id, thread.revision, details, commit_seq, name,
             thread.revision - 1, rows.naive(thread.create_time)],
        ).fetchall()  # fmt: skip
        if updated[0][0]:
            return
        raise Contended("others have changed the thread at the same time; nothing was written: try again")
    try:
        con.execute(
            f"INSERT INTO threads (name, {', '.join(THREAD_COLUMNS)}, commit_seq) VALUES (?{', ?' * 10})",
            [name, *_owner_columns(thread.agent_id, thread.scope).values(), thread.id,
             rows.naive(thread.create_time), rows.naive(thread.update_time), thread.session_id, thread.revision,
             details, commit_seq],
        )  # fmt: skip
    except duckdb.ConstraintException:
        raise Contended("others have begun the thread at the same time; nothing was written: try again") from None


def _write_session(con: duckdb.DuckDBPyConnection, session: Session) -> None:
    details = _json(
        {
            "update_time": _us(session.update_time),
            "end_time": _us(session.end_time),
            "end_reason": session.end_reason,
            "message_count": session.message_count,
            "turn_count": session.turn_count,
            "messages_before": session.messages_before,
            "turns_before": session.turns_before,
            "first_seq": session.first_seq,
            "last_seq": session.last_seq,
        }
    )
    con.execute(
        f"INSERT INTO sessions (name, {', '.join(SESSION_COLUMNS)}) VALUES (?{', ?' * 8})"
        " ON CONFLICT (name) DO UPDATE SET state = excluded.state, details = excluded.details",
        [_session_name(session), *_owner_columns(session.agent_id, session.scope).values(), session.thread_id,
         session.id, session.state.value, rows.naive(session.start_time), details],
    )  # fmt: skip


def _write_vectors(con: duckdb.DuckDBPyConnection, change: ConversationChange, commit_seq: int) -> None:
    """Write vectors of messages that are still there; they are looked up among those past `embedded_after` alone."""

    def size(one: Embedding) -> int:
        return len(one.vector)

    for dimensions, alike in groupby(sorted(change.embeddings, key=size), key=size):
        made = [
            {"id": one.memory_id, "vector": one.vector, "fingerprint": one.fingerprint, "commit_seq": commit_seq}
            for one in alike
        ]
        columns = rows.columns_of(made)  # noqa: F841  DuckDB finds it by its name
        where, params = of_owner(change.owner)
        con.execute(
            "INSERT INTO message_vectors"
            f" (id, thread, thread_id, {', '.join(OWNER)}, fingerprint, {column_of(dimensions)}, commit_seq)"
            f" SELECT m.id, m.thread, m.thread_id, m.agent_id, m.user_id, m.chat_id, columns.fingerprint,"
            f" columns.vector::FLOAT[{dimensions}], columns.commit_seq"
            f" FROM (SELECT * FROM messages WHERE number > ? AND {where}) AS m JOIN columns ON columns.id = m.id",
            [change.embedded_after, *params],
        )


def write_cursors(con: duckdb.DuckDBPyConnection, cursors: Mapping[str, int]) -> None:
    """Note how far work in the background has come; with another model's cursor go the vectors that it made."""
    for name, value in cursors.items():
        kind = name.partition(":")[0]
        others = con.execute(
            "SELECT count(*) FROM cursors WHERE name <> ? AND starts_with(name, ?)", [name, f"{kind}:"]
        ).fetchall()[0][0]
        if others:
            con.execute("DELETE FROM cursors WHERE starts_with(name, ?)", [f"{kind}:"])
            con.execute("DELETE FROM message_vectors")
        con.execute("INSERT INTO cursors VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                    [name, value])  # fmt: skip


# --- reading ---


def message_of(row: Sequence[Any]) -> Message:
    """Return the message of a row: MESSAGE_COLUMNS."""
    agent_id, user_id, chat_id, thread_id, message_id, seq, content, details, metadata, create_time, grant_id = row
    held = json.loads(details)
    return Message(
        id=message_id,
        agent_id=agent_id,
        scope=Scope(user_id, chat_id),
        thread_id=thread_id,
        seq=seq,
        session_id=held.get("session_id", ""),
        role=_ROLES[held["role"]],
        content=content,
        create_time=create_time.replace(tzinfo=UTC),
        name=held.get("name", ""),
        tool_calls=tuple(ToolCall(*call) for call in held.get("tool_calls", ())),
        tool_call_id=held.get("tool_call_id", ""),
        input_source=held.get("input_source", ""),
        metadata=metadata,
        masked=held.get("masked", False),
        trust=_TRUSTS[held["trust"]],
        grant_id=grant_id,
        author=held.get("author", ""),
    )


def _held(held: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: from_us(value) if name.endswith("_time") else _TRUSTS[value] if name.endswith("trust") else value
        for name, value in held.items()
    }


def thread_of(row: Sequence[Any]) -> Thread:
    """Return the thread of a row: THREAD_COLUMNS."""
    agent_id, user_id, chat_id, thread_id, create_time, update_time, session_id, revision, details = row
    held = json.loads(details)
    return Thread(
        id=thread_id,
        agent_id=agent_id,
        scope=Scope(user_id, chat_id),
        create_time=create_time.replace(tzinfo=UTC),
        update_time=update_time.replace(tzinfo=UTC),
        session_id=session_id,
        revision=revision,
        **_held(held),
    )


def session_of(row: Sequence[Any]) -> Session:
    """Return the session of a row: SESSION_COLUMNS."""
    agent_id, user_id, chat_id, thread_id, session_id, state, start_time, details = row
    held = json.loads(details)
    return Session(
        id=session_id,
        agent_id=agent_id,
        scope=Scope(user_id, chat_id),
        thread_id=thread_id,
        state=SessionState(state),
        start_time=start_time.replace(tzinfo=UTC),
        **_held(held),
    )


def read_episodes(
    cursor: duckdb.DuckDBPyConnection, owner: Owner, dimensions: Sequence[int], build: Callable[[Snapshot], T]
) -> T:
    """Call build with a snapshot of an owner's messages, and return its result; see ConversationStore."""
    cursor.execute("BEGIN")
    try:
        seq = cursor.execute("SELECT max(commit_seq) FROM commits").fetchall()[0][0]
        where, params = of_owner(owner)
        found = cursor.execute(
            f"SELECT number, strlen(content) + strlen(details) + strlen(terms) AS bytes FROM messages WHERE {where}"
            " ORDER BY number",
            params,
        ).fetchnumpy()
        numbers, text_bytes = found["number"], int(found["bytes"].sum())
        return build(Snapshot(seq, len(numbers), text_bytes, _chunks(cursor, where, params, numbers, dimensions)))
    finally:
        with contextlib.suppress(duckdb.Error):  # a dead database cannot roll back; the first error is told
            cursor.execute("ROLLBACK")


def _chunks(
    cursor: duckdb.DuckDBPyConnection,
    where: str,
    params: list[Any],
    numbers: NDArray[np.int64],
    dimensions: Sequence[int],
) -> Iterator[list[Entry]]:
    """Yield an owner's messages as entries, by windows of their numbers, which the zone maps make cheap to find."""
    vector = f"coalesce({', '.join(f'v.{column_of(size)}::FLOAT[]' for size in dimensions)})" if dimensions else "NULL"
    columns = ", ".join(f"m.{name}" if name != "metadata" else "'' AS metadata" for name in MESSAGE_COLUMNS)
    sql = (
        f"SELECT {columns}, m.terms, coalesce(v.fingerprint, '') AS fingerprint, {vector} AS vector"
        f" FROM (SELECT * FROM messages WHERE {where} AND number >= ? AND number <= ?) AS m"
        f" LEFT JOIN (SELECT * FROM message_vectors WHERE {where}) AS v ON v.id = m.id AND v.thread = m.thread"
        " ORDER BY m.number"
    )
    for n in range(0, len(numbers), CHUNK):
        window = numbers[n : n + CHUNK]
        found = cursor.execute(sql, [*params, int(window[0]), int(window[-1]), *params]).fetchnumpy()
        vectors = found.pop("vector")
        yield [
            Entry(message_of(row[:-2]).as_memory(), row[-2], _vector(made), row[-1])
            for row, made in zip(rows.rows_of(found), vectors, strict=True)
        ]


def _vector(value: Any) -> NDArray[np.float32] | None:
    return np.asarray(value, dtype=np.float32) if isinstance(value, np.ndarray) else None
