"""Change sets as the statements of one transaction, which are sent together: one round trip a commit."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from memoryd.model.change import ChangeSet
from memoryd.model.scope import Owner
from memoryd.store import rows
from memoryd.store.postgres.arrays import array_of
from memoryd.store.postgres.conversation_writes import purge_talk, write_conversation
from memoryd.store.postgres.heads import Moved, move_heads
from memoryd.store.postgres.note_writes import purge_notes, write_notes
from memoryd.store.postgres.receipts import forget_names, forget_old_requests, write_request
from memoryd.store.postgres.skew import Skew
from memoryd.store.postgres.statements import MEMORIES, Statements, head_of, owner_key, packed
from memoryd.store.postgres.usage import COUNT_MEMORIES, COUNT_OFF, count_change, drop_empty, forget_written
from memoryd.store.postgres.work_writes import purge_work, write_work

__all__ = ["planned"]

VECTORS = ("vector", "token_vectors", "window_vectors")
MEMORY_COLUMNS = (
    "id", "agent_id", "user_id", "chat_id", "content", "text_digest", "kind", "key", "facets", "details", "create_time",
    "event_time", "expire_time", "supersede_time", "delete_time", "purge_time", "terms", "traits", "fingerprint",
    "grant_id", "text_bytes", *VECTORS,
)  # fmt: skip
UPDATED = tuple(name for name in rows.UPDATED_COLUMNS if name != "commit_seq")
TYPES = {
    **{name: "timestamp" for name in MEMORY_COLUMNS if name.endswith("_time")},
    **dict.fromkeys(VECTORS, "bytea"),
    "text_bytes": "int8",
}


def planned(changes: Sequence[ChangeSet], skew: Skew) -> tuple[Statements, list[Moved]]:
    """
    Return the statements of change sets, and which of them return what number; Contended as of Commits.write.

    Leases are written in the server's time.
    """
    statements = Statements()
    moved = move_heads(statements, changes)
    place = 0
    for change in changes:
        owner = change.owner
        if owner is not None:
            place = _write_owned(statements, owner, change, place)
        write_work(statements, change, skew)
        _write_grants(statements, change)
        if change.forget_requests_before is not None:
            forget_old_requests(statements, change.forget_requests_before)
            forget_written(statements, change.forget_requests_before)
        if change.message_vectors_of:
            statements.add("DELETE FROM message_vectors WHERE fingerprint <> %s", change.message_vectors_of)
    return statements, moved


def _write_owned(statements: Statements, owner: Owner, change: ChangeSet, place: int) -> int:
    """Write what is an owner's; `place` is that of the next message among those of the transaction: return the next."""
    key = owner_key(owner)
    if change.request is not None:
        write_request(statements, change.request)
    count_change(statements, key, change)
    if change.inserts:
        _insert(statements, key, change)
    if change.updates:
        _update(statements, key, change)
    if change.purges:
        ids = [memory.id for memory in change.purges]
        _purge(statements, key, "id = ANY(%s)", ids)
        forget_names(statements, key, "thread_id = '' AND id = ANY(%s)", ids)
    _write_knowledge(statements, key, change)
    if change.purge_owner is not None:
        _purge_owner(statements, key)
    write_notes(statements, key, change)
    if change.conversation is not None:
        place = write_conversation(statements, key, change.conversation, place)
    if change.embeddings:
        _embed(statements, key, change)
    return place


def _insert(statements: Statements, key: uuid.UUID, change: ChangeSet) -> None:
    made = []
    for entry in change.inserts:
        row = rows.entry_row(entry, 0)
        row |= {"vector": packed(entry.vector)}
        row |= {"token_vectors": entry.tokens or None, "window_vectors": entry.windows or None}
        made.append([row[name] for name in MEMORY_COLUMNS])
    names = ", ".join(MEMORY_COLUMNS)
    into = f"INSERT INTO memories (owner_id, {names}, insert_seq, vector_seq, commit_seq)"
    head = f"{head_of(MEMORIES)} AS h(seq)"
    if len(made) == 1:
        marks = ", ".join(f"%s::{TYPES.get(name, 'text')}" for name in MEMORY_COLUMNS)
        statements.add(f"{into} SELECT %s::uuid, {marks}, h.seq, h.seq, h.seq FROM {head}", key, *made[0], key)
        return
    arrays = ", ".join(f"%s::{TYPES.get(name, 'text')}[]" for name in MEMORY_COLUMNS)
    values = zip(MEMORY_COLUMNS, zip(*made, strict=True), strict=True)
    columns = (array_of(TYPES.get(name, "text"), column) for name, column in values)
    statements.add(
        f"{into} SELECT %s::uuid, t.*, h.seq, h.seq, h.seq FROM {head}, unnest({arrays}) AS t", key, key, *columns
    )


def _update(statements: Statements, key: uuid.UUID, change: ChangeSet) -> None:
    entries = {entry.memory.id: entry for entry in change.updates}  # of two of one memory the last counts
    made = [rows.entry_row(entry, 0) for entry in entries.values()]
    columns = ("id", *UPDATED)
    assigned = ", ".join(f"{name} = c.{name}" for name in UPDATED)
    values = (array_of(TYPES.get(name, "text"), [row[name] for row in made]) for name in columns)
    arrays = ", ".join(f"%s::{TYPES.get(name, 'text')}[]" for name in columns)
    statements.add(
        "WITH old AS (SELECT id, text_bytes FROM memories WHERE owner_id = %s AND id = ANY(%s)),"
        f" new AS (UPDATE memories AS m SET {assigned}, commit_seq = {head_of(MEMORIES)}"
        f" FROM unnest({arrays}) AS c({', '.join(columns)}) WHERE m.owner_id = %s AND m.id = c.id"
        " RETURNING m.id, m.grant_id, m.create_time::date AS day, m.text_bytes)" + COUNT_MEMORIES,
        key, list(entries), key, *values, key, key,
    )  # fmt: skip


def _embed(statements: Statements, key: uuid.UUID, change: ChangeSet) -> None:
    made = change.embeddings
    statements.add(
        "UPDATE memories AS m SET vector = c.vector, fingerprint = c.fingerprint, token_vectors = c.tokens,"
        f" window_vectors = c.windows, commit_seq = h.seq, vector_seq = h.seq FROM {head_of(MEMORIES)} AS h(seq),"
        " unnest(%s::text[], %s::bytea[], %s::text[], %s::bytea[], %s::bytea[])"
        " AS c(id, vector, fingerprint, tokens, windows) WHERE m.owner_id = %s AND m.id = c.id",
        key,
        [embedding.memory_id for embedding in made],
        [packed(embedding.vector) for embedding in made],
        [embedding.fingerprint for embedding in made],
        [embedding.tokens or None for embedding in made],
        [embedding.windows or None for embedding in made],
        key,
    )


def _purge(statements: Statements, key: uuid.UUID, where: str, *params: Any) -> None:
    """Erase memories of an owner and what counts their recalls, and count them off the usage of grants."""
    statements.add(
        f"WITH gone AS (DELETE FROM memories WHERE owner_id = %s AND {where}"
        " RETURNING id, grant_id, create_time::date AS day, text_bytes),"
        " used AS (DELETE FROM uses WHERE owner_id = %s AND memory_id IN (SELECT id FROM gone))" + COUNT_OFF,
        key, *params, key, key,
    )  # fmt: skip
    drop_empty(statements, key)


def _purge_owner(statements: Statements, key: uuid.UUID) -> None:
    """Erase all that an owner has, whether a grant wrote it or not; only what a day has used stays counted."""
    _purge(statements, key, "true")
    purge_talk(statements, key)
    purge_notes(statements, key)
    purge_work(statements, key)
    forget_names(statements, key, "true")
    for table in ("entities", "tombstones", "uses"):
        statements.add(f"DELETE FROM {table} WHERE owner_id = %s", key)
    drop_empty(statements, key)


def _write_knowledge(statements: Statements, key: uuid.UUID, change: ChangeSet) -> None:
    for entity in change.entities:
        row = {"owner_id": key, **rows.entity_row(entity)}
        statements.add(
            f"INSERT INTO entities ({', '.join(row)}, commit_seq) SELECT %s::uuid, %s, %s, %s, %s, %s, %s::timestamp,"
            f" {head_of(MEMORIES)} ON CONFLICT (owner_id, id) DO UPDATE SET details = excluded.details,"
            " commit_seq = excluded.commit_seq",
            *row.values(), key,
        )  # fmt: skip
    if change.forget_entities:
        gone = [entity.id for entity in change.forget_entities]
        statements.add("DELETE FROM entities WHERE owner_id = %s AND id = ANY(%s)", key, gone)
    for stones, is_lifted in ((change.tombstones, False), (change.lift, True)):
        digests = list(dict.fromkeys(stone.digest for stone in stones))
        if digests:  # a lifted one stays as a row that says so, for daemons that follow
            statements.add(
                f"INSERT INTO tombstones SELECT %s::uuid, digest, %s::bool, {head_of(MEMORIES)}"
                " FROM unnest(%s::bytea[]) AS t(digest) ON CONFLICT (owner_id, digest) DO UPDATE SET"
                " is_lifted = excluded.is_lifted, commit_seq = excluded.commit_seq",
                key, is_lifted, key, digests,
            )  # fmt: skip


def _write_grants(statements: Statements, change: ChangeSet) -> None:
    for grant in change.grants:
        statements.add(
            "INSERT INTO grants (id, details, create_time) VALUES (%s, %s, %s)"
            " ON CONFLICT (id) DO UPDATE SET details = excluded.details",
            *rows.grant_row(grant).values(),
        )
    if change.forget_grants:
        statements.add("DELETE FROM grants WHERE id = ANY(%s)", list(change.forget_grants))
    for key in change.token_keys:
        statements.add(
            "INSERT INTO token_keys VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            key.id, key.secret.hex(), rows.naive(key.create_time),
        )  # fmt: skip
    if change.drop_keys:
        statements.add("DELETE FROM token_keys WHERE id = ANY(%s)", list(change.drop_keys))
