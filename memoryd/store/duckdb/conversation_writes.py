"""How changes of conversations are written, inside an open transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import groupby
from typing import Any

import duckdb
import numpy as np

from memoryd.errors import Contended
from memoryd.model.change import ConversationChange, Embedding
from memoryd.model.conversation import Message, Session, Thread, place_of
from memoryd.model.scope import Owner
from memoryd.store import rows
from memoryd.store.conversation_rows import (
    OWNER,
    message_row,
    owner_columns,
    session_row,
    thread_key,
    thread_row,
)
from memoryd.store.conversations import numbered, thread_name
from memoryd.store.duckdb.columns import columns_of
from memoryd.store.duckdb.long_texts import divided
from memoryd.store.duckdb.queries import of_owner
from memoryd.store.duckdb.receipts import forget_names
from memoryd.store.duckdb.vectors import column_of

__all__ = ["message_sizes", "stored_sizes", "write_conversations"]

Insert = Callable[[duckdb.DuckDBPyConnection, str, Sequence[dict[str, Any]]], None]


OF_MESSAGES = ("messages", "long_texts", "message_vectors")  # tables with `thread` and `id`
CHANGED = ("update_time", "session_id", "revision", "details", "commit_seq")
CHANGED_MEANWHILE = "others have changed the thread at the same time; nothing was written: try again"
WINDOWS_A_ROW = 16  # later windows of a message: DuckDB reads 2,048 rows at once, however long
MANY_THREADS = 3  # from it on, one statement that scans rows is cheaper than a statement each


def write_conversations(
    con: duckdb.DuckDBPyConnection, changes: Sequence[tuple[int, ConversationChange]], insert: Insert
) -> None:
    """
    Write what changes of conversations, by commit, in the open transaction; Contended where a thread has changed.

    What several commits append is written at once, unless one of them erases.
    """
    if any(change.purge_messages or change.purge_threads for _, change in changes):
        for new in changes:
            _write_some(con, [new], insert)
    elif changes:
        _write_some(con, changes, insert)


def _write_some(
    con: duckdb.DuckDBPyConnection, changes: Sequence[tuple[int, ConversationChange]], insert: Insert
) -> None:
    _write_threads(con, [(thread, seq) for seq, change in changes for thread in change.threads])
    for _, change in changes:
        for session in change.sessions:
            _write_session(con, session)
    made = [
        message_row(new_message, numbered(seq, n), seq)
        for seq, change in changes
        for n, new_message in enumerate(change.messages)
    ]
    divided_rows = [divided(row) for row in made]
    if divided_rows:
        insert(con, "messages", [row for row, _ in divided_rows])
    if pieces := [piece for _, some in divided_rows for piece in some]:
        insert(con, "long_texts", pieces)
    for seq, change in changes:
        _write_more(con, change, seq)


def _write_more(con: duckdb.DuckDBPyConnection, change: ConversationChange, commit_seq: int) -> None:
    if change.working_memory is not None:
        name = thread_name(change.owner, "")
        con.execute("DELETE FROM working_memories WHERE name = ?", [name])
        if change.working_memory.text:
            working_memory = change.working_memory
            owned = owner_columns(change.owner.agent_id, change.owner.scope).values()
            told = (
                working_memory.text,
                rows.naive(working_memory.update_time),
                working_memory.trust.value,
                working_memory.grant_id,
                working_memory.author,
            )
            con.execute("INSERT INTO working_memories VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [name, *owned, *told])
    if change.embeddings:
        _write_vectors(con, change, commit_seq)
    if change.purge_messages:
        _purge_messages(con, change.purge_messages)
    for thread in change.purge_threads:
        where, params = of_owner(thread.owner)
        for table in (*OF_MESSAGES, "sessions", "threads"):
            con.execute(f"DELETE FROM {table} WHERE {where} AND thread_id = ?", [*params, thread.id])
        forget_names(con, thread.owner, "thread_id = ?", [thread.id])


def _purge_messages(con: duckdb.DuckDBPyConnection, messages: Sequence[Message]) -> None:
    """Erase messages, thread by thread, with their vectors and what notes of requests say of them."""
    ids: dict[tuple[Owner, str], list[str]] = {}
    for message in messages:
        ids.setdefault((message.owner, message.thread_id), []).append(message.id)
    for (owner, thread_id), gone in ids.items():
        for table in OF_MESSAGES:
            con.execute(
                f"DELETE FROM {table} WHERE thread = ? AND id IN (SELECT unnest(?::VARCHAR[]))",
                [thread_key(owner, thread_id), gone],
            )
        forget_names(con, owner, "thread_id = ? AND id IN (SELECT unnest(?::VARCHAR[]))", [thread_id, gone])


def stored_sizes(con: duckdb.DuckDBPyConnection, messages: Sequence[Message]) -> list[tuple[str, date, int]]:
    """Return the bytes of messages as they were counted, by grant and day, of those that came through a grant."""
    ids: dict[int, list[str]] = {}
    for message in messages:
        if message.grant_id:
            ids.setdefault(thread_key(message.owner, message.thread_id), []).append(message.id)
    rowses = (
        con.execute(
            "SELECT grant_id, create_time::DATE, sum(text_bytes)::BIGINT FROM messages WHERE thread = ?"
            " AND id IN (SELECT unnest(?::VARCHAR[])) AND grant_id <> '' GROUP BY ALL",
            [key, some],
        ).fetchall()
        for key, some in ids.items()
    )
    return [row for some in rowses for row in some]


def message_sizes(con: duckdb.DuckDBPyConnection, thread: Thread) -> list[tuple[str, date, int]]:
    """Return the bytes of a thread's messages by grant and day, of those that came through a grant."""
    where, params = of_owner(thread.owner)
    return con.execute(
        f"SELECT grant_id, create_time::DATE, sum(text_bytes)::BIGINT FROM messages WHERE {where} AND thread_id = ?"
        " AND grant_id <> '' GROUP BY ALL",
        [*params, thread.id],
    ).fetchall()


def _write_threads(con: duckdb.DuckDBPyConnection, threads: Sequence[tuple[Thread, int]]) -> None:
    """
    Write threads; each must be the next revision of what is there; else Contended.

    Threads are looked up by their names alone: any further condition makes DuckDB scan the whole table (measured
    with 300,000 threads: 9 ms for one thread and 12 for several; so .7 and 1.7).
    """
    made = [thread_row(thread, seq) for thread, seq in threads]
    known = [row for row in made if row["revision"] > 1]
    if len(known) >= MANY_THREADS and len({row["name"] for row in known}) == len(known):
        _update_threads(con, known)
    else:
        for row in known:
            _update_thread(con, row)
    for row in made:
        if row["revision"] == 1:
            _insert_thread(con, row)


def _update_threads(con: duckdb.DuckDBPyConnection, made: Sequence[Mapping[str, Any]]) -> None:
    """Update different threads, by the places of their rows."""
    names = [row["name"] for row in made]
    marks = ", ".join("?" * len(names))
    found = con.execute(
        f"SELECT name, revision, create_time, rowid FROM threads WHERE name IN ({marks})", names
    ).fetchall()
    places = {(name, revision + 1, create_time): place for name, revision, create_time, place in found}
    at = [places.get((row["name"], row["revision"], row["create_time"])) for row in made]
    if None in at:
        raise Contended(CHANGED_MEANWHILE)
    kept = [{name: row[name] for name in CHANGED} for row in made]
    columns = columns_of(kept) | {"place": np.array(at, dtype=np.int64)}  # noqa: F841  found by its name
    assigned = ", ".join(f"{name} = columns.{name}" for name in CHANGED)
    con.execute(f"UPDATE threads SET {assigned} FROM columns WHERE threads.rowid = columns.place")


def _update_thread(con: duckdb.DuckDBPyConnection, row: Mapping[str, Any]) -> None:
    """Update one thread: one statement, which fails where the revision is another."""
    assigned = ", ".join(f"{name} = ?" for name in CHANGED if name != "revision")
    values = [row[name] for name in CHANGED if name != "revision"]
    try:
        count = con.execute(
            f"UPDATE threads SET {assigned}, revision = CASE WHEN revision = ? AND create_time = ? THEN ?"
            " ELSE error('changed') END WHERE name = ?",
            [*values, row["revision"] - 1, row["create_time"], row["revision"], row["name"]],
        ).fetchall()[0][0]
    except duckdb.InvalidInputException:
        raise Contended(CHANGED_MEANWHILE) from None
    if not count:
        raise Contended(CHANGED_MEANWHILE)


def _insert_thread(con: duckdb.DuckDBPyConnection, row: Mapping[str, Any]) -> None:
    try:
        con.execute(f"INSERT INTO threads ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
    except duckdb.ConstraintException:
        raise Contended("others have begun the thread at the same time; nothing was written: try again") from None


def _write_session(con: duckdb.DuckDBPyConnection, session: Session) -> None:
    row = session_row(session)
    con.execute(
        f"INSERT INTO sessions ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        " ON CONFLICT (name) DO UPDATE SET state = excluded.state, details = excluded.details",
        list(row.values()),
    )


def _write_vectors(con: duckdb.DuckDBPyConnection, change: ConversationChange, commit_seq: int) -> None:
    """
    Write vectors of messages that are still there; they are looked up among those past `embedded_after` alone.

    A thread that is erased and begun again has other messages in the same places: these take none of them.

    Those of later windows come when a message has its vector already; they get rows of their own, some windows each.
    """

    def size(embedding: Embedding) -> int:
        return len(embedding.vector)

    for dimensions, alike in groupby(sorted(change.embeddings, key=size), key=size):
        made = [
            {
                "thread": thread_key(embedding.owner, place_of(embedding.memory_id)[0]),
                "seq": place_of(embedding.memory_id)[1],
                "id": embedding.message_id,
                "vector": None if embedding.windows else embedding.vector,
                "fingerprint": embedding.fingerprint,
                "token_vectors": None if embedding.windows else embedding.tokens or None,
                "window_vectors": windows,
                "commit_seq": commit_seq,
            }
            for embedding in alike
            for windows in _pieces_of(embedding.windows, WINDOWS_A_ROW * dimensions)
        ]
        columns = columns_of(made)  # noqa: F841  DuckDB finds it by its name
        where, params = of_owner(change.owner)
        con.execute(
            "INSERT INTO message_vectors"
            f" (id, thread, thread_id, {', '.join(OWNER)}, fingerprint, {column_of(dimensions)}, token_vectors,"
            " window_vectors, commit_seq)"
            f" SELECT m.id, m.thread, m.thread_id, m.agent_id, m.user_id, m.chat_id, columns.fingerprint,"
            f" columns.vector::FLOAT[{dimensions}], columns.token_vectors::BLOB, columns.window_vectors::BLOB,"
            " columns.commit_seq"
            f" FROM (SELECT * FROM messages WHERE number > ? AND {where}) AS m"
            " JOIN columns ON columns.thread = m.thread AND columns.seq = m.seq AND columns.id = m.id",
            [change.embedded_after, *params],
        )


def _pieces_of(codes: bytes, size: int) -> Sequence[bytes | None]:
    return [codes[n : n + size] for n in range(0, len(codes), size)] or [None]
