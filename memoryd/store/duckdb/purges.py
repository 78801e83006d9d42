"""What is erased for good: rows, and what other rows say of them; and what an owner has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import duckdb

from memoryd.model.reports import OwnerContents, OwnerSize, OwnerSizes
from memoryd.model.scope import Owner, Scope
from memoryd.model.trust import Trust
from memoryd.store.duckdb.granted_texts import texts_of_threads, texts_of_working_memories
from memoryd.store.duckdb.queries import of_owner
from memoryd.store.duckdb.receipts import forget_names
from memoryd.store.duckdb.usage import UsageChanges

__all__ = ["contents_of", "owners_of_user", "purge", "purge_owner", "sizes_of_owners"]

Rows = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
OWNED = (
    "memories", "entities", "tombstones", "threads", "sessions", "messages", "message_vectors", "working_memories",
    "work", "proposals",
)  # fmt: skip
"""Every table whose rows belong to an owner."""
WITH_TRUST = ("memories", "entities", "messages", "threads")


def purge(con: duckdb.DuckDBPyConnection, owner: Owner, ids: list[str]) -> None:
    """Erase memories of an owner by id, and what counts of recalls and receipts of requests say of them."""
    con.execute("DELETE FROM memories WHERE id IN (SELECT unnest(?::VARCHAR[]))", [ids])
    con.execute("DELETE FROM uses WHERE memory_id IN (SELECT unnest(?::VARCHAR[]))", [ids])
    forget_names(con, owner, "thread_id = '' AND id IN (SELECT unnest(?::VARCHAR[]))", [ids])


def purge_owner(con: duckdb.DuckDBPyConnection, owner: Owner, usage: UsageChanges) -> None:
    """Erase all that an owner has, and count it off the usage of grants."""
    where, params = of_owner(owner)
    for table, count in (("memories", "count(*)"), ("messages", "0")):
        for grant_id, day, stored, size in con.execute(
            f"SELECT grant_id, create_time::DATE, {count}, sum(text_bytes)::BIGINT FROM {table}"
            f" WHERE {where} AND grant_id <> '' GROUP BY ALL",
            params,
        ).fetchall():
            usage.add_row(owner, grant_id, day, -stored, -size)
    for grant_id, day, size in (*texts_of_threads(con, where, params), *texts_of_working_memories(con, where, params)):
        usage.add_row(owner, grant_id, day, 0, -size)
    ids = [one for (one,) in con.execute(f"SELECT id FROM memories WHERE {where}", params).fetchall()]
    purge(con, owner, ids)
    forget_names(con, owner, "true", [])
    for table in OWNED:
        con.execute(f"DELETE FROM {table} WHERE {where}", params)


def contents_of(read: Rows, owner: Owner, limit: int) -> OwnerContents:
    """Return what an owner has; see MaintenanceStore.contents."""
    where, params = of_owner(owner)

    def count(table: str) -> int:
        return int(read(f"SELECT count(*) FROM {table} WHERE {where}", params)[0][0])

    def ids(table: str, order: str) -> tuple[str, ...]:
        found = read(f"SELECT id FROM {table} WHERE {where} ORDER BY {order} LIMIT {int(limit)}", params)
        return tuple(one for (one,) in found)

    trust = "coalesce(json_extract_string(details, '$.trust'), 'host')"
    trusts = [f"SELECT {trust} FROM {table} WHERE {where}" for table in WITH_TRUST]
    trusts += [
        f"SELECT coalesce(json_extract_string(details, '$.{text}_trust'), 'host') FROM threads"
        f" WHERE {where} AND json_extract_string(details, '$.{text}') <> ''"
        for text in ("summary", "working_memory")
    ]
    trusts.append(f"SELECT trust FROM working_memories WHERE {where}")
    found = read(" UNION ".join(trusts), params * len(trusts))
    return OwnerContents(
        count("memories"),
        count("messages"),
        count("threads"),
        ids("memories", "create_time DESC, id DESC"),
        ids("messages", "number"),
        frozenset(Trust(one) for (one,) in found),
    )


def owners_of_user(read: Rows, user_id: str, agent_id: str) -> list[Owner]:
    """Return the personal scopes of a user; see MaintenanceStore.owners_of_user."""
    tables = " UNION ".join(f"SELECT agent_id FROM {table} WHERE user_id = ?" for table in OWNED)
    found = read(f"SELECT agent_id FROM ({tables}) ORDER BY agent_id", [user_id] * len(OWNED))
    return [Owner(one, Scope(user_id=user_id)) for (one,) in found if agent_id in {"", one}]


def sizes_of_owners(read: Rows, agent_id: str, limit: int) -> OwnerSizes:
    """Return how much is stored of each owner; see MaintenanceStore.sizes_of_owners."""
    parts = [
        f"SELECT agent_id, coalesce(user_id, '') AS user_id, coalesce(chat_id, '') AS chat_id,"
        f" count(*) FILTER ({n} = 0) AS memories, count(*) FILTER ({n} = 1) AS messages,"
        f" sum(strlen(content)) AS size FROM {table} WHERE ? IN ('', agent_id) GROUP BY ALL"
        for n, table in enumerate(("memories", "messages"))
    ]
    parts += [
        f"SELECT agent_id, coalesce(user_id, ''), coalesce(chat_id, ''), 0, 0, 0 FROM {table}"
        " WHERE ? IN ('', agent_id) GROUP BY ALL"
        for table in OWNED
        if table not in {"memories", "messages"}
    ]
    found = read(
        "SELECT agent_id, user_id, chat_id, sum(memories)::BIGINT, sum(messages)::BIGINT, sum(size)::BIGINT AS size,"
        f" count(*) OVER () FROM ({' UNION ALL '.join(parts)}) GROUP BY agent_id, user_id, chat_id"
        f" ORDER BY size DESC, agent_id, user_id, chat_id LIMIT {int(limit)}",
        [agent_id] * len(parts),
    )
    return OwnerSizes(tuple(OwnerSize(*row[:-1]) for row in found), found[0][-1] if found else 0)
