"""What the DuckDB store answers about owners, their people and grants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, date, datetime
from typing import Any

from memoryd.model.entity import Entity
from memoryd.model.grant import Grant, GrantUsage, TokenKey
from memoryd.model.reports import OwnerContents, OwnerSize, OwnerSizes
from memoryd.model.scope import Owner, Scope
from memoryd.model.trust import Trust
from memoryd.store import rows
from memoryd.store.duckdb import queries
from memoryd.store.duckdb.long_texts import CONTENT
from memoryd.store.duckdb.purges import OWNED
from memoryd.store.duckdb.queries import of_owner
from memoryd.store.duckdb.readers import Readers
from memoryd.store.duckdb.snapshot import entities_of
from memoryd.store.duckdb.writer import Writer

__all__ = ["DuckDBGrants", "DuckDBOwners", "DuckDBPeople"]

Rows = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
WITH_TRUST = ("memories", "entities", "messages", "threads")


class DuckDBPeople:
    """What was decided of entities, as rows."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def entities(self, owner: Owner) -> list[Entity]:
        return await self._readers.read(lambda: entities_of(self._readers.cursor(), owner))

    async def is_named(self, owner: Owner, entity_ids: Collection[str], *, but: Collection[str]) -> bool:
        where, params = queries.of_owner(owner)
        condition = " OR ".join("contains(json_extract(details, '$.mentions')::VARCHAR, ?)" for _ in entity_ids)
        found = await self._readers.read(
            self._readers.rows,
            f"SELECT 1 FROM memories WHERE {where} AND ({condition})"
            " AND id NOT IN (SELECT unnest(?::VARCHAR[])) LIMIT 1",
            [*params, *(f'"{entity_id}"' for entity_id in entity_ids), list(but)],
        )
        return bool(found)


class DuckDBGrants:
    """Grants, keys and usage as rows."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers, self._writer = readers, writer

    async def head(self) -> int:
        return self._writer.recent.heads.grants

    async def all(self) -> list[Grant]:
        found = await self._readers.read(
            self._readers.rows,
            "SELECT id, details, create_time FROM grants ORDER BY create_time, id",
        )
        return [rows.grant_of(*row) for row in found]

    async def token_keys(self) -> list[TokenKey]:
        found = await self._readers.read(
            self._readers.rows,
            "SELECT id, secret, create_time FROM token_keys ORDER BY create_time, id",
        )
        return [TokenKey(key_id, bytes.fromhex(secret), time.replace(tzinfo=UTC)) for key_id, secret, time in found]

    async def usage(self, grant_id: str, day: date) -> GrantUsage:
        if not self._writer.usage.knows(day):
            await self._writer.count_day(day)
        return self._writer.usage.of(grant_id, day)


class DuckDBOwners:
    """Whose rows there are."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def contents(self, owner: Owner, *, limit: int) -> OwnerContents:
        return await self._readers.read(contents_of, self._readers.rows, owner, limit)

    async def of_user(self, user_id: str, agent_id: str = "") -> list[Owner]:
        return await self._readers.read(owners_of_user, self._readers.rows, user_id, agent_id)

    async def sizes(self, agent_id: str = "", *, limit: int, new_since: datetime | None = None) -> OwnerSizes:
        return await self._readers.read(sizes_of_owners, self._readers.rows, agent_id, limit, new_since)

    async def active_since(self, time: datetime, *, least: int) -> list[Owner]:
        found = await self._readers.read(
            self._readers.rows,
            "SELECT agent_id, user_id, chat_id FROM memories WHERE create_time >= ? AND delete_time IS NULL"
            f" GROUP BY ALL HAVING count(*) >= {int(least)}",
            [rows.naive(time)],
        )
        return sorted((Owner(row[0], Scope(user_id=row[1], chat_id=row[2])) for row in found), key=repr)


def contents_of(read: Rows, owner: Owner, limit: int) -> OwnerContents:
    """Return what an owner has; see OwnerStore.contents."""
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
    trusts.append(f"SELECT unnest(json_extract_string(details, '$.versions[*][4]')) FROM notes WHERE {where}")
    found = read(" UNION ".join(trusts), params * len(trusts))
    return OwnerContents(
        count("memories"),
        count("messages"),
        count("threads"),
        ids("memories", "create_time DESC, id DESC"),
        ids("messages", "number"),
        frozenset(Trust(one) for (one,) in found),
        count("notes"),
    )


def owners_of_user(read: Rows, user_id: str, agent_id: str) -> list[Owner]:
    """Return the personal scopes of a user; see OwnerStore.of_user."""
    tables = " UNION ".join(f"SELECT agent_id FROM {table} WHERE user_id = ?" for table in OWNED)
    found = read(f"SELECT agent_id FROM ({tables}) ORDER BY agent_id", [user_id] * len(OWNED))
    return [Owner(one, Scope(user_id=user_id)) for (one,) in found if agent_id in {"", one}]


def sizes_of_owners(read: Rows, agent_id: str, limit: int, new_since: datetime | None) -> OwnerSizes:
    """Return how much is stored of each owner; see OwnerStore.sizes."""
    new = f"create_time >= TIMESTAMP '{rows.naive(new_since)}'" if new_since else "false"
    parts = [
        f"SELECT agent_id, coalesce(user_id, '') AS user_id, coalesce(chat_id, '') AS chat_id,"
        f" count(*) FILTER ({n} = 0) AS memories, count(*) FILTER ({n} = 1) AS messages,"
        f" sum(strlen(content)) AS size, count(*) FILTER ({n} = 0 AND {new}) AS new_memories,"
        f" count(*) FILTER ({n} = 1 AND {new}) AS new_messages FROM {table} WHERE ? IN ('', agent_id) GROUP BY ALL"
        for n, table in enumerate(("memories", "messages"))
    ]
    parts.append(
        "SELECT agent_id, coalesce(user_id, ''), coalesce(chat_id, ''), 0, 0, sum(strlen(text)), 0, 0 FROM long_texts"
        f" WHERE ? IN ('', agent_id) AND name = '{CONTENT}' GROUP BY ALL"
    )
    parts.append(
        "SELECT agent_id, coalesce(user_id, ''), coalesce(chat_id, ''), 0, 0, sum(text_bytes), 0, 0 FROM notes"
        " WHERE ? IN ('', agent_id) GROUP BY ALL"
    )
    parts += [
        f"SELECT agent_id, coalesce(user_id, ''), coalesce(chat_id, ''), 0, 0, 0, 0, 0 FROM {table}"
        " WHERE ? IN ('', agent_id) GROUP BY ALL"
        for table in OWNED
        if table not in {"memories", "messages", "long_texts", "notes", "note_texts"}
    ]
    found = read(
        "SELECT agent_id, user_id, chat_id, sum(memories)::BIGINT, sum(messages)::BIGINT, sum(size)::BIGINT AS size,"
        " sum(new_memories)::BIGINT, sum(new_messages)::BIGINT,"
        f" count(*) OVER () FROM ({' UNION ALL '.join(parts)}) GROUP BY agent_id, user_id, chat_id"
        f" ORDER BY size DESC, agent_id, user_id, chat_id LIMIT {int(limit)}",
        [agent_id] * len(parts),
    )
    return OwnerSizes(tuple(OwnerSize(*row[:-1]) for row in found), found[0][-1] if found else 0)
