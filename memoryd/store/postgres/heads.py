"""
How far the commits of each owner have come, as rows that are number, lock and fence at once.

The row of an owner is moved on where its number is that on which a change was decided; else the server raises, and all
that follows in the transaction is skipped. Owners are locked in the order of their keys, so that no two wait for each
other. Grants and keys have a row too; who only looks at it holds a shared lock until the transaction ends, so that
nothing is written on a grant that was revoked before.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memoryd.errors import Contended
from memoryd.model.change import ChangeSet
from memoryd.model.scope import Owner
from memoryd.store import rows
from memoryd.store.notes import searched_notes
from memoryd.store.postgres.statements import MEMORIES, MESSAGES, NOTES, Statements, owner_columns, owner_key

__all__ = ["GRANTS", "LOCKS", "NO_OWNER", "Moved", "move_heads"]

LOCKS = {"migrations": 1, "grants": 2, "work": 3, "filter terms": 4}
"""The advisory locks of a store, by what is locked; all of one class."""
LOCK_CLASS = 0x6D656D6F
NO_OWNER = uuid.UUID(int=0)
GRANTS = "grants"
SCOPE_CHANGED = "others have changed the scope at the same time"
_MOVE = (
    "WITH moved AS (INSERT INTO heads AS h (owner_id, feed, agent_id, user_id, chat_id, commit_seq, purge_seq,"
    " newest_create_time) VALUES (%s, %s, %s, %s, %s, 1, CASE WHEN %s::bool THEN 1 ELSE 0 END, %s)"
    " ON CONFLICT (owner_id, feed) DO UPDATE SET commit_seq = h.commit_seq + 1,"
    " purge_seq = CASE WHEN excluded.purge_seq > 0 THEN h.commit_seq + 1 ELSE h.purge_seq END,"
    " newest_create_time = greatest(h.newest_create_time, excluded.newest_create_time)"
    " WHERE %s::bigint IS NULL OR h.commit_seq <= %s RETURNING commit_seq)"
    f" SELECT coalesce((SELECT commit_seq FROM moved), contended('{SCOPE_CHANGED}'))"
)
_MOVE_GRANTS = (
    "INSERT INTO heads AS h (owner_id, feed, agent_id, commit_seq, purge_seq) VALUES (%s, %s, '', 1, 0)"
    " ON CONFLICT (owner_id, feed) DO UPDATE SET commit_seq = h.commit_seq + 1"
)
_CHECK_GRANTS = (
    "SELECT CASE WHEN coalesce((SELECT commit_seq FROM heads WHERE owner_id = %s AND feed = %s), 0) = %s THEN 0"
    " ELSE contended('grants have changed at the same time') END"
)


class Moved(NamedTuple):
    """A statement that returns the number that a change set has got in a feed."""

    place: int
    """Of the statement among those of the transaction."""
    feed: str
    change: int
    """Which of the change sets."""


def locked(what: str, *, shared: bool = False) -> str:
    """Return the SQL that holds a lock until the transaction ends."""
    return f"SELECT pg_advisory_xact_lock{'_shared' if shared else ''}({LOCK_CLASS}, {LOCKS[what]})"


def move_heads(statements: Statements, changes: Sequence[ChangeSet]) -> list[Moved]:
    """Lock and number all that the change sets are decided on, first of all; return where the numbers come from."""
    _move_grants(statements, changes)
    wanted: list[tuple[str, uuid.UUID, int, Owner, Mapping[str, object]]] = []
    seen: set[Owner] = set()
    for n, change in enumerate(changes):
        owner, talk, notes = change.decided_of, change.conversation, searched_notes(change)
        if owner is not None:
            if change.based_on is not None and owner in seen:
                raise Contended(f"{SCOPE_CHANGED}; nothing was written: try again")
            seen.add(owner)
            newest = rows.naive(max((entry.memory.create_time for entry in change.inserts), default=None))
            told: dict[str, object] = {"erases": change.erases, "newest": newest, "based_on": change.based_on}
            wanted.append((MEMORIES, owner_key(owner), n, owner, told))
        if talk is not None and talk.is_found_anew:
            wanted.append((MESSAGES, owner_key(talk.owner), n, talk.owner, {"erases": talk.episodes.erases}))
        if notes is not None:
            whose = next(owner for owner in change.owners)
            wanted.append((NOTES, owner_key(whose), n, whose, {"erases": notes.erases}))
    moved = []
    for feed, key, n, whose, more in sorted(wanted, key=lambda one: one[:3]):
        moved.append(Moved(len(statements), feed, n))
        columns = owner_columns(whose)
        based_on = more.get("based_on")
        statements.add(
            _MOVE, key, feed, columns["agent_id"], columns["user_id"], columns["chat_id"], more["erases"],
            more.get("newest"), based_on, based_on,
        )  # fmt: skip
    return moved


def _move_grants(statements: Statements, changes: Sequence[ChangeSet]) -> None:
    looks, moves = (any(names) for names in zip(
        *((change.grants_seen is not None, change.changes_grants) for change in changes), strict=True
    ))  # fmt: skip
    if looks or moves:
        statements.add(locked("grants", shared=not moves))
    for change in changes:
        if change.grants_seen is not None:
            statements.add(_CHECK_GRANTS, NO_OWNER, GRANTS, change.grants_seen)
        if change.changes_grants:
            statements.add(_MOVE_GRANTS, NO_OWNER, GRANTS)
