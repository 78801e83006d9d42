"""What brings an index from one number of an owner to now, read from the rows: there is no log of commits."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import numpy as np
import psycopg

from memoryd.model.change import ChangeSet, Embedding, Entry, Tombstone
from memoryd.model.commits import Applied
from memoryd.model.conversation import message_key
from memoryd.model.scope import Owner
from memoryd.store import rows
from memoryd.store.conversation_rows import MESSAGE_COLUMNS, message_of
from memoryd.store.postgres.connect import Row
from memoryd.store.postgres.note_entries import SELECT_ENTRIES, note_entry
from memoryd.store.postgres.queries import ENTRY, MESSAGE, entry_of, select_memories
from memoryd.store.postgres.statements import MEMORIES, MESSAGES, NOTES, owner_key

__all__ = ["FOLLOWED"]

Connection = psycopg.AsyncConnection[Row]


async def _fetch(con: Connection, sql: str, *params: Any) -> list[Row]:
    cursor = con.cursor(binary=True)
    await cursor.execute(sql.encode(), params)
    return await cursor.fetchall()


async def _followed(
    con: Connection,
    owner: Owner,
    feed: str,
    since: int,
    read: Callable[[Connection, Owner, uuid.UUID, int], Awaitable[ChangeSet]],
) -> Applied | None:
    """Return what was committed since a number; None where something was purged since, or the number is ahead."""
    key = owner_key(owner)
    async with con.transaction():
        await con.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        found = await _fetch(
            con, "SELECT commit_seq, purge_seq FROM heads WHERE owner_id = %s AND feed = %s", key, feed
        )
        seq, purge_seq = found[0] if found else (0, 0)
        if since > seq or purge_seq > since:
            return None
        change = await read(con, owner, key, since) if seq > since else ChangeSet()
    return Applied(seq, change, since)


async def _memories(con: Connection, owner: Owner, since: int) -> Applied | None:
    return await _followed(con, owner, MEMORIES, since, _changed_memories)


async def _changed_memories(con: Connection, owner: Owner, key: uuid.UUID, since: int) -> ChangeSet:
    found = await _fetch(
        con,
        select_memories("memories", *ENTRY, "m.insert_seq", "m.vector_seq")
        + " WHERE m.owner_id = %s AND m.commit_seq > %s ORDER BY m.create_time, m.id",
        key, since,
    )  # fmt: skip
    entities = await _fetch(
        con, "SELECT id, details, create_time FROM entities WHERE owner_id = %s AND commit_seq > %s", key, since
    )
    stones = await _fetch(
        con, "SELECT digest, is_lifted FROM tombstones WHERE owner_id = %s AND commit_seq > %s", key, since
    )
    inserts, updates, embeddings = [], [], []
    for *row, insert_seq, vector_seq in found:
        entry = entry_of(row)
        if insert_seq > since:
            inserts += [entry] if entry.memory.delete_time is None else []
            continue
        updates.append(Entry(entry.memory, entry.terms))
        if vector_seq > since and entry.vector is not None:
            embeddings.append(_embedding(owner, entry))
    return ChangeSet(
        inserts=tuple(inserts),
        updates=tuple(updates),
        embeddings=tuple(embeddings),
        entities=tuple(rows.entity_of(owner, *row) for row in entities),
        tombstones=tuple(Tombstone(owner, bytes(digest)) for digest, is_lifted in stones if not is_lifted),
        lift=tuple(Tombstone(owner, bytes(digest)) for digest, is_lifted in stones if is_lifted),
    )


def _embedding(owner: Owner, entry: Entry) -> Embedding:
    assert entry.vector is not None  # noqa: S101  who calls has looked
    return Embedding(owner, entry.memory.id, entry.vector, entry.fingerprint, entry.tokens, entry.windows)


async def _messages(con: Connection, owner: Owner, since: int) -> Applied | None:
    return await _followed(con, owner, MESSAGES, since, _changed_messages)


async def _changed_messages(con: Connection, owner: Owner, key: uuid.UUID, since: int) -> ChangeSet:
    said = await _fetch(
        con,
        f"SELECT {', '.join(MESSAGE)}, terms FROM messages AS m"
        " WHERE owner_id = %s AND commit_seq > %s ORDER BY number",
        key, since,
    )  # fmt: skip
    made = await _fetch(
        con,
        "SELECT m.thread_id, m.seq, m.id, v.fingerprint, v.vector, v.token_vectors, v.window_vectors"
        " FROM message_vectors AS v JOIN messages AS m USING (owner_id, number)"
        " WHERE v.owner_id = %s AND v.commit_seq > %s ORDER BY number",
        key, since,
    )  # fmt: skip
    size = len(MESSAGE_COLUMNS)
    return ChangeSet(
        inserts=tuple(Entry(message_of(row[:size]).as_memory(), row[size]) for row in said),
        embeddings=tuple(
            Embedding(
                owner, message_key(thread_id, seq), np.frombuffer(vector, dtype="<f4"), fingerprint,
                bytes(tokens or b""), bytes(windows or b""), message_id,
            )
            for thread_id, seq, message_id, fingerprint, vector, tokens, windows in made
        ),
    )  # fmt: skip


async def _notes(con: Connection, owner: Owner, since: int) -> Applied | None:
    return await _followed(con, owner, NOTES, since, _changed_notes)


async def _changed_notes(con: Connection, owner: Owner, key: uuid.UUID, since: int) -> ChangeSet:
    found = await _fetch(con, f"{SELECT_ENTRIES} AND n.commit_seq > %s ORDER BY n.commit_seq", key, since)
    inserts, updates, embeddings = [], [], []
    for row in found:
        entry, (insert_seq, vector_seq) = note_entry(row), row[-2:]
        if insert_seq > since:
            inserts.append(entry)
            continue
        updates.append(Entry(entry.memory, entry.terms))
        if vector_seq > since and entry.vector is not None:
            embeddings.append(_embedding(owner, entry))
    return ChangeSet(inserts=tuple(inserts), updates=tuple(updates), embeddings=tuple(embeddings))


FOLLOWED: Mapping[str, Callable[[Connection, Owner, int], Awaitable[Applied | None]]] = {
    MEMORIES: _memories,
    MESSAGES: _messages,
    NOTES: _notes,
}
"""What reads the changes of each feed."""
