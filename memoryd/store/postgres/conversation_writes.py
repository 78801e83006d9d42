"""What changes of conversations, as statements."""

from __future__ import annotations

import uuid
from collections import defaultdict
from typing import Any

from memoryd.model.change import ConversationChange
from memoryd.model.conversation import Thread, place_of
from memoryd.store import rows
from memoryd.store.conversation_rows import message_row, session_row, thread_row
from memoryd.store.postgres.arrays import array_of
from memoryd.store.postgres.receipts import forget_names
from memoryd.store.postgres.statements import MESSAGES, Statements, head_of, owner_columns, packed
from memoryd.store.postgres.usage import COUNT_OFF, count_gone, drop_empty

__all__ = ["purge_talk", "write_conversation"]

CHANGED_MEANWHILE = "others have changed the thread at the same time"
MESSAGE = (
    "thread_id", "id", "seq", "agent_id", "user_id", "chat_id", "content", "details", "metadata", "create_time",
    "grant_id", "text_bytes", "terms", "traits",
)  # fmt: skip
MESSAGE_TYPES = {"seq": "int8", "text_bytes": "int8", "create_time": "timestamp"}
_DAY = "(to_timestamp((details::json->>'{0}_time')::int8 / 1e6) AT TIME ZONE 'UTC')::date"
GRANTED_TEXTS = " UNION ALL ".join(
    f"SELECT details::json->>'{text}_grant_id' AS grant_id, {_DAY.format(text)} AS day,"
    f" octet_length(details::json->>'{text}') AS size FROM gone WHERE strpos(details, '{text}_grant_id') > 0"
    for text in ("summary", "working_memory")
)
"""What of the rows of threads in `gone` counts to the quotas of grants."""


def write_conversation(statements: Statements, key: uuid.UUID, talk: ConversationChange, place: int) -> int:
    """Write what changes; `place` is that of the next message among those of the transaction: return the next."""
    for thread in sorted(talk.threads, key=lambda one: one.id):  # locked in one order
        _write_thread(statements, key, thread)
    for session in sorted(talk.sessions, key=lambda one: (one.thread_id, one.id)):
        row = {"owner_id": key, **session_row(session)}
        del row["name"]
        statements.put(
            "sessions", [row], {"owner_id": "uuid", "start_time": "timestamp"},
            "ON CONFLICT (owner_id, thread_id, session_id) DO UPDATE SET state = excluded.state,"
            " details = excluded.details",
        )  # fmt: skip
    if talk.messages:
        _append(statements, key, talk, place)
    if talk.working_memory is not None:
        _set_working_memory(statements, key, talk)
    if talk.embeddings:
        _embed(statements, key, talk)
    _purge(statements, key, talk)
    return place + len(talk.messages)


def _write_thread(statements: Statements, key: uuid.UUID, thread: Thread) -> None:
    row = thread_row(thread, 0)
    ahead = thread.view_seq > thread.summed_up_seq
    if thread.revision == 1:
        names = [name for name in row if name not in {"name", "commit_seq"}]
        statements.add(
            f"INSERT INTO threads (owner_id, {', '.join(names)}, is_unsummarised)"
            f" VALUES ({', '.join(['%s'] * (len(names) + 2))})",
            key, *(row[name] for name in names), ahead,
        )  # fmt: skip
        return
    statements.add(
        "WITH changed AS (UPDATE threads SET update_time = %s, session_id = %s, revision = %s, details = %s,"
        " is_unsummarised = %s WHERE owner_id = %s AND thread_id = %s AND revision = %s AND create_time = %s"
        f" RETURNING 1) SELECT coalesce((SELECT 1 FROM changed), contended('{CHANGED_MEANWHILE}'))",
        row["update_time"], row["session_id"], row["revision"], row["details"], ahead,
        key, thread.id, thread.revision - 1, row["create_time"],
    )  # fmt: skip


def _append(statements: Statements, key: uuid.UUID, talk: ConversationChange, place: int) -> None:
    made = [message_row(new_message, 0, 0) for new_message in talk.messages]
    arrays = ", ".join(f"%s::{MESSAGE_TYPES.get(name, 'text')}[]" for name in MESSAGE)
    statements.add(
        f"INSERT INTO messages (owner_id, number, {', '.join(MESSAGE)}, commit_seq)"
        f" SELECT %s::uuid, f.number + t.n - 1, {', '.join(f't.{name}' for name in MESSAGE)}, h.seq"
        f" FROM feed_number(%s) AS f(number), {head_of(MESSAGES)} AS h(seq),"
        f" unnest({arrays}) WITH ORDINALITY AS t({', '.join(MESSAGE)}, n)",
        key, place, key,
        *(array_of(MESSAGE_TYPES.get(name, "text"), [row[name] for row in made]) for name in MESSAGE),
    )  # fmt: skip


def _set_working_memory(statements: Statements, key: uuid.UUID, talk: ConversationChange) -> None:
    statements.add(
        "WITH gone AS (DELETE FROM working_memories WHERE owner_id = %s RETURNING grant_id,"
        " update_time::date AS day, octet_length(text) AS size)" + count_gone("0", "-sum(size)", "gone"),
        key, key,
    )  # fmt: skip
    drop_empty(statements, key)
    held = talk.working_memory
    if held is not None and held.text:
        told = {"text": held.text, "update_time": rows.naive(held.update_time), "trust": held.trust.value}
        row = {**owner_columns(talk.owner), **told, "grant_id": held.grant_id, "author": held.author}
        statements.put("working_memories", [row], {"owner_id": "uuid", "update_time": "timestamp"})


def _embed(statements: Statements, key: uuid.UUID, talk: ConversationChange) -> None:
    """Give messages their vectors; another message in the place of one that was erased takes none of them."""
    made = talk.embeddings
    places = [place_of(embedding.memory_id) for embedding in made]
    statements.add(
        "INSERT INTO message_vectors SELECT %s::uuid, m.number, c.fingerprint, c.vector, c.tokens, c.windows,"
        f" {head_of(MESSAGES)} FROM unnest(%s::text[], %s::int8[], %s::text[], %s::text[], %s::bytea[], %s::bytea[],"
        " %s::bytea[]) AS c(thread_id, seq, id, fingerprint, vector, tokens, windows) JOIN messages AS m"
        " ON m.owner_id = %s AND m.thread_id = c.thread_id AND m.seq = c.seq AND m.id = c.id AND m.number > %s"
        " ON CONFLICT (owner_id, number) DO UPDATE SET fingerprint = excluded.fingerprint, vector = excluded.vector,"
        " token_vectors = excluded.token_vectors, window_vectors = excluded.window_vectors,"
        " commit_seq = excluded.commit_seq",
        key, key,
        [thread_id for thread_id, _ in places],
        [seq for _, seq in places],
        [embedding.message_id for embedding in made],
        [embedding.fingerprint for embedding in made],
        [packed(embedding.vector) for embedding in made],
        [embedding.tokens or None for embedding in made],
        [embedding.windows or None for embedding in made],
        key, talk.embedded_after,
    )  # fmt: skip


def _purge(statements: Statements, key: uuid.UUID, talk: ConversationChange) -> None:
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for message in talk.purge_messages:
        ids[message.thread_id].append(message.id)
    for thread_id, gone in ids.items():
        _purge_messages(statements, key, "thread_id = %s AND id = ANY(%s)", thread_id, gone)
        statements.add(
            "DELETE FROM proposals WHERE owner_id = %s AND thread_id = %s"
            " AND ARRAY(SELECT json_array_elements_text(message_ids::json)) && %s::text[]",
            key, thread_id, gone,
        )  # fmt: skip
        forget_names(statements, key, "thread_id = %s AND id = ANY(%s)", thread_id, gone)
    for thread in talk.purge_threads:
        _purge_messages(statements, key, "thread_id = %s", thread.id)
        _purge_threads(statements, key, "thread_id = %s", thread.id)
        for table in ("sessions", "work", "proposals"):
            statements.add(f"DELETE FROM {table} WHERE owner_id = %s AND thread_id = %s", key, thread.id)
        forget_names(statements, key, "thread_id = %s", thread.id)


def _purge_messages(statements: Statements, key: uuid.UUID, where: str, *params: Any) -> None:
    statements.add(
        f"WITH gone AS (DELETE FROM messages WHERE owner_id = %s AND {where}"
        " RETURNING number, grant_id, create_time::date AS day, text_bytes),"
        " vectors AS (DELETE FROM message_vectors WHERE owner_id = %s AND number IN (SELECT number FROM gone))"
        + COUNT_OFF.replace("-count(*)", "0"),
        key, *params, key, key,
    )  # fmt: skip
    drop_empty(statements, key)


def _purge_threads(statements: Statements, key: uuid.UUID, where: str, *params: Any) -> None:
    statements.add(
        f"WITH gone AS (DELETE FROM threads WHERE owner_id = %s AND {where} RETURNING details),"
        f" texts AS ({GRANTED_TEXTS})" + count_gone("0", "-sum(size)", "texts"),
        key, *params, key,
    )  # fmt: skip
    drop_empty(statements, key)


def purge_talk(statements: Statements, key: uuid.UUID) -> None:
    """Erase all that an owner has said, with what was kept of it."""
    _purge_messages(statements, key, "true")
    _purge_threads(statements, key, "true")
    statements.add(
        "WITH gone AS (DELETE FROM working_memories WHERE owner_id = %s RETURNING grant_id,"
        " update_time::date AS day, octet_length(text) AS size)" + count_gone("0", "-sum(size)", "gone"),
        key, key,
    )  # fmt: skip
    statements.add("DELETE FROM sessions WHERE owner_id = %s", key)
