"""Change sets as SQL, inside an open transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby
from typing import Any

import duckdb

from memoryd.model.change import ChangeSet, ConversationChange, Embedding, Tombstone
from memoryd.model.commits import Recalled
from memoryd.model.scope import Owner
from memoryd.store import rows
from memoryd.store.conversations import thread_name
from memoryd.store.duckdb.columns import columns_of, entry_row
from memoryd.store.duckdb.conversation_writes import message_sizes, stored_sizes, write_conversations
from memoryd.store.duckdb.granted_texts import texts_of_threads, texts_of_working_memories
from memoryd.store.duckdb.marks import write_marks
from memoryd.store.duckdb.note_writes import write_notes
from memoryd.store.duckdb.purges import purge, purge_owner
from memoryd.store.duckdb.receipts import forget_old_requests, write_requests
from memoryd.store.duckdb.usage import UsageChanges, sizes_of
from memoryd.store.duckdb.vectors import column_of
from memoryd.store.duckdb.work_writes import write_work

__all__ = ["add_recalls", "write"]

FEW_ROWS = 2  # below it, a row as parameters is cheaper than a scan of arrays (measured: 1.8 against 2.6 ms for one)
MANY_UPDATES = 16  # from it on, one statement that scans the ids is cheaper than a statement each


def _insert(con: duckdb.DuckDBPyConnection, target: str, inserted: Sequence[dict[str, Any]]) -> None:
    if len(inserted) < FEW_ROWS:
        for row in inserted:
            given = {name: value for name, value in row.items() if value is not None}
            insert = f"INSERT INTO {target} ({', '.join(given)}) VALUES ({', '.join('?' * len(given))})"
            con.execute(insert, list(given.values()))
        return
    names = list(inserted[0])
    columns = columns_of(inserted)  # noqa: F841  DuckDB finds it by its name
    casts = {name: f"{name}::FLOAT[{name.removeprefix('vector_')}]" for name in names if name.startswith("vector_")}
    select = ", ".join(casts.get(name, name) for name in names)
    con.execute(f"INSERT INTO {target} ({', '.join(names)}) SELECT {select} FROM columns")


def _update(con: duckdb.DuckDBPyConnection, updated: Sequence[dict[str, Any]]) -> None:
    if len(updated) < MANY_UPDATES:
        assigned = ", ".join(f"{name} = ?" for name in rows.UPDATED_COLUMNS)
        for row in updated:
            con.execute(
                f"UPDATE memories SET {assigned} WHERE id = ?",
                [*(row[name] for name in rows.UPDATED_COLUMNS), row["id"]],
            )
        return
    kept = [{name: row[name] for name in ("id", *rows.UPDATED_COLUMNS)} for row in updated]
    columns = columns_of(kept)  # noqa: F841  DuckDB finds it by its name
    assigned = ", ".join(f"{name} = columns.{name}" for name in rows.UPDATED_COLUMNS)
    con.execute(f"UPDATE memories SET {assigned} FROM columns WHERE memories.id = columns.id")


def _embed(
    con: duckdb.DuckDBPyConnection, embeddings: Sequence[tuple[int, Embedding]], dimensions: Sequence[int]
) -> None:
    """Give memories new vectors, by commit; `dimensions` are those of the columns; all others are emptied."""
    for size in {len(embedding.vector) for _, embedding in embeddings}:
        made = [
            {
                "id": embedding.memory_id,
                "vector": embedding.vector,
                "fingerprint": embedding.fingerprint,
                "token_vectors": embedding.tokens or None,
                "window_vectors": embedding.windows or None,
                "commit_seq": seq,
            }
            for seq, embedding in embeddings
            if len(embedding.vector) == size
        ]
        columns = columns_of(made)  # noqa: F841  DuckDB finds it by its name
        emptied = "".join(f", {column_of(other)} = NULL" for other in dimensions if other != size)
        con.execute(
            f"UPDATE memories SET {column_of(size)} = columns.vector::FLOAT[{size}],"
            " fingerprint = columns.fingerprint, token_vectors = columns.token_vectors::BLOB,"
            " window_vectors = columns.window_vectors::BLOB,"
            f" commit_seq = columns.commit_seq{emptied}"
            " FROM columns WHERE memories.id = columns.id"
        )


def write(
    con: duckdb.DuckDBPyConnection, changes: Sequence[ChangeSet], first_seq: int, dimensions: Sequence[int]
) -> UsageChanges:
    """
    Write change sets, numbered from `first_seq` on, in the open transaction; Contended as of Commits.write.

    `dimensions` are those of the vector columns. Returns what they change of the usage of grants.
    """
    usage = UsageChanges()
    inserts = [entry_row(entry, seq) for seq, change in enumerate(changes, first_seq) for entry in change.inserts]
    for _, alike in groupby(sorted(inserts, key=tuple), key=tuple):  # those with a vector have a column more
        _insert(con, "memories", list(alike))
    write_requests(con, changes, _insert)  # before what is purged, which may be named by them
    for seq, change in enumerate(changes, first_seq):
        _count(con, change, usage)
        updates = {entry.memory.id: entry for entry in change.updates}  # of two of one memory the last counts
        _update(con, [entry_row(entry, seq) for entry in updates.values()])
        if change.purges:
            purge(con, change.purges[0].owner, [memory.id for memory in change.purges])
        if change.forget_requests_before is not None:
            forget_old_requests(con, change.forget_requests_before)
            con.execute("DELETE FROM uses WHERE memory_id NOT IN (SELECT id FROM memories)")
        _write_grants(con, change)
        _write_knowledge(con, change)
        if change.purge_owner is not None:
            purge_owner(con, change.purge_owner, usage)
        if change.message_vectors_of:
            con.execute("DELETE FROM message_vectors WHERE fingerprint <> ?", [change.message_vectors_of])
        write_marks(con, change)
        write_work(con, change)
        write_notes(con, change, seq)
    talks = [(seq, change.conversation) for seq, change in enumerate(changes, first_seq) if change.conversation]
    write_conversations(con, talks, _insert)
    _embed(
        con,
        [(seq, embedding) for seq, change in enumerate(changes, first_seq) for embedding in change.embeddings],
        dimensions,
    )
    usage.write(con)
    return usage


def _write_grants(con: duckdb.DuckDBPyConnection, change: ChangeSet) -> None:
    for grant in change.grants:
        row = rows.grant_row(grant)
        con.execute(
            "INSERT INTO grants (id, details, create_time) VALUES (?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET details = excluded.details",
            [row["id"], row["details"], row["create_time"]],
        )
    if change.forget_grants:
        gone = list(change.forget_grants)
        con.execute("DELETE FROM grants WHERE id IN (SELECT unnest(?::VARCHAR[]))", [gone])
    for key in change.token_keys:
        con.execute(
            "INSERT INTO token_keys VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [key.id, key.secret.hex(), rows.naive(key.create_time)],
        )
    if change.drop_keys:
        con.execute("DELETE FROM token_keys WHERE id IN (SELECT unnest(?::VARCHAR[]))", [list(change.drop_keys)])


def _count(con: duckdb.DuckDBPyConnection, change: ChangeSet, usage: UsageChanges) -> None:
    """Count what a change adds, makes larger and purges, as long as its updates are not written."""
    for entry in change.inserts:
        usage.add(entry.memory, 1, entry.memory.text_bytes)
    updated = [entry.memory for entry in change.updates]
    sizes = sizes_of(con, [*updated, *change.purges])
    for memory in updated:
        if memory.id in sizes:
            usage.add(memory, 0, memory.text_bytes - sizes[memory.id])
            sizes[memory.id] = memory.text_bytes
    for memory in change.purges:
        if memory.id in sizes:
            usage.add(memory, -1, -sizes.pop(memory.id))
    for note in change.notes:
        for text in () if note.before is None else note.before.grant_texts:
            usage.add_row(note.owner, text.grant_id, text.day, 0, -text.size)
        for text in () if note.after is None else note.after.grant_texts:
            usage.add_row(note.owner, text.grant_id, text.day, 0, text.size)
    if change.conversation is not None:
        _count_messages(con, change.conversation, usage)


def _count_messages(con: duckdb.DuckDBPyConnection, change: ConversationChange, usage: UsageChanges) -> None:
    """Count the bytes of messages, which come through a grant as memories do."""
    for new_message in change.messages:
        usage.add_message(new_message.message)
    for owner, grant_id, day, size in _texts(con, change):
        usage.add_row(owner, grant_id, day, 0, size)
    for grant_id, day, size in stored_sizes(con, change.purge_messages):
        usage.add_row(change.owner, grant_id, day, 0, -size)
    for thread in change.purge_threads:
        for grant_id, day, size in message_sizes(con, thread):
            usage.add_row(thread.owner, grant_id, day, 0, -size)


def _texts(con: duckdb.DuckDBPyConnection, change: ConversationChange) -> Iterator[tuple[Owner, str, date, int]]:
    """Yield what summaries and working memories add to the quotas of grants, and less what was there before."""
    changed = {(thread.owner, thread.id) for thread in change.threads_before}
    for thread in change.threads_before:
        yield from ((thread.owner, *text[:2], -text.size) for text in thread.texts)
    for thread in change.threads:
        if (thread.owner, thread.id) in changed:
            yield from ((thread.owner, *text) for text in thread.texts)
    for thread in change.purge_threads:
        gone = texts_of_threads(con, "name = ?", [thread_name(thread.owner, thread.id)])
        yield from ((thread.owner, *text[:2], -text.size) for text in gone)
    if change.working_memory is not None:
        gone = texts_of_working_memories(con, "name = ?", [thread_name(change.owner, "")])
        yield from ((change.owner, *text[:2], -text.size) for text in gone)
        yield from ((change.owner, *text) for text in change.working_memory.texts)


def _write_knowledge(con: duckdb.DuckDBPyConnection, change: ChangeSet) -> None:
    for entity in change.entities:
        row = rows.entity_row(entity)
        con.execute(
            f"INSERT INTO entities ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
            " ON CONFLICT (id) DO UPDATE SET details = excluded.details",
            list(row.values()),
        )
    if change.forget_entities:
        gone = [entity.id for entity in change.forget_entities]
        con.execute("DELETE FROM entities WHERE id IN (SELECT unnest(?::VARCHAR[]))", [gone])
    for owner, digests in _by_owner(change.tombstones).items():
        con.execute(
            "INSERT INTO tombstones SELECT unnest(?::VARCHAR[]), ?, ?, ? ON CONFLICT DO NOTHING",
            [digests, owner.agent_id, owner.scope.user_id, owner.scope.chat_id],
        )
    if change.lift:
        digests = [tombstone.digest.hex() for tombstone in change.lift]
        con.execute("DELETE FROM tombstones WHERE digest IN (SELECT unnest(?::VARCHAR[]))", [digests])


def _by_owner(tombstones: Sequence[Tombstone]) -> dict[Owner, list[str]]:
    found: dict[Owner, list[str]] = {}
    for tombstone in dict.fromkeys(tombstones):
        found.setdefault(tombstone.owner, []).append(tombstone.digest.hex())
    return found


def add_recalls(con: duckdb.DuckDBPyConnection, recalls: Mapping[str, Recalled]) -> None:
    """Add to the counts of recalls, in a transaction of its own."""
    columns = columns_of(  # noqa: F841  DuckDB finds it by its name
        [
            {
                "memory_id": memory_id,
                "recall_time": rows.naive(time),
                "recall_count": count,
                "trusted_recall_time": rows.naive(trusted),
            }
            for memory_id, (time, count, trusted) in recalls.items()
        ]
    )
    con.execute(
        "INSERT INTO uses SELECT memory_id, recall_time, recall_count, trusted_recall_time FROM columns"
        " WHERE memory_id IN (SELECT id FROM memories)"  # what was purged meanwhile leaves nothing
        " ON CONFLICT (memory_id) DO UPDATE SET recall_time = excluded.recall_time,"
        " recall_count = uses.recall_count + excluded.recall_count,"
        " trusted_recall_time = coalesce(excluded.trusted_recall_time, uses.trusted_recall_time)"
    )
