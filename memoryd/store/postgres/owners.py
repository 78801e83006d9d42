"""What the store answers about owners, their people and grants."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, date, datetime

from memoryd.model.entity import Entity
from memoryd.model.grant import Grant, GrantUsage, TokenKey
from memoryd.model.reports import OwnerContents, OwnerSize, OwnerSizes
from memoryd.model.scope import Owner, Scope
from memoryd.model.trust import Trust
from memoryd.store import rows
from memoryd.store.postgres.connect import Connections
from memoryd.store.postgres.heads import GRANTS, NO_OWNER
from memoryd.store.postgres.statements import owner_key

__all__ = ["PostgresGrants", "PostgresOwners", "PostgresPeople"]

WITH_TRUST = ("memories", "entities", "messages", "threads")
NAMED = ("heads", "threads", "notes", "working_memories", "entities", "work", "proposals")
"""Tables with few rows an owner: whoever has anything stands in one of them."""
OWNED = (
    "memories", "entities", "tombstones", "threads", "sessions", "messages", "message_vectors", "working_memories",
    "work", "proposals", "notes", "note_texts",
)  # fmt: skip
"""Every table whose rows are a thing of an owner, and go with it."""


class PostgresPeople:
    """What was decided of entities, as rows."""

    def __init__(self, connections: Connections) -> None:
        self._rows = connections.rows

    async def entities(self, owner: Owner) -> list[Entity]:
        found = await self._rows(
            "SELECT id, details, create_time FROM entities WHERE owner_id = %s ORDER BY id", [owner_key(owner)]
        )
        return [rows.entity_of(owner, *row) for row in found]

    async def is_named(self, owner: Owner, entity_ids: Collection[str], *, but: Collection[str]) -> bool:
        if not entity_ids:
            return False
        condition = " OR ".join("strpos(details::json->>'mentions', %s) > 0" for _ in entity_ids)
        found = await self._rows(
            f"SELECT 1 FROM memories WHERE owner_id = %s AND strpos(details, '\"mentions\"') > 0 AND ({condition})"
            " AND NOT id = ANY(%s) LIMIT 1",
            [owner_key(owner), *(f'"{entity_id}"' for entity_id in entity_ids), list(but)],
        )
        return bool(found)


class PostgresGrants:
    """Grants, keys and usage as rows."""

    def __init__(self, connections: Connections) -> None:
        self._rows = connections.rows

    async def head(self) -> int:
        select = "SELECT commit_seq FROM heads WHERE owner_id = %s AND feed = %s"
        found = await self._rows(select, [NO_OWNER, GRANTS])
        return int(found[0][0]) if found else 0

    async def all(self) -> list[Grant]:
        found = await self._rows('SELECT id, details, create_time FROM grants ORDER BY create_time, id COLLATE "C"')
        return [rows.grant_of(*row) for row in found]

    async def token_keys(self) -> list[TokenKey]:
        found = await self._rows('SELECT id, secret, create_time FROM token_keys ORDER BY create_time, id COLLATE "C"')
        return [TokenKey(key_id, bytes.fromhex(secret), time.replace(tzinfo=UTC)) for key_id, secret, time in found]

    async def usage(self, grant_id: str, day: date) -> GrantUsage:
        found = await self._rows(
            "SELECT coalesce(sum(stored_memories + written_messages) FILTER (WHERE day = %s), 0)::int8,"
            " coalesce(sum(stored_memories), 0)::int8, coalesce(sum(stored_bytes), 0)::int8"
            " FROM usage WHERE grant_id = %s",
            [day, grant_id],
        )
        return GrantUsage(*found[0])


class PostgresOwners:
    """Whose rows there are."""

    def __init__(self, connections: Connections) -> None:
        self._rows = connections.rows

    async def contents(self, owner: Owner, *, limit: int) -> OwnerContents:
        key, where = owner_key(owner), "WHERE owner_id = %s"
        counts = ", ".join(
            f"(SELECT count(*) FROM {table} {where})" for table in ("memories", "messages", "threads", "notes")
        )
        memories, messages, threads, notes = (await self._rows(f"SELECT {counts}", [key] * 4))[0]
        ids = [
            tuple(
                one
                for (one,) in await self._rows(
                    f"SELECT id FROM {table} {where} ORDER BY {order} LIMIT {int(limit)}", [key]
                )
            )
            for table, order in (("memories", "create_time DESC, id DESC"), ("messages", "number"))
        ]
        trust = "coalesce(details::json->>'trust', 'host')"
        trusts = [f"SELECT {trust} FROM {table} {where}" for table in WITH_TRUST]
        trusts += [
            f"SELECT coalesce(details::json->>'{text}_trust', 'host') FROM threads"
            f" {where} AND details::json->>'{text}' <> ''"
            for text in ("summary", "working_memory")
        ]
        trusts.append(f"SELECT trust FROM working_memories {where}")
        trusts.append(f"SELECT v->>4 FROM notes, json_array_elements(details::json->'versions') AS v {where}")
        found = await self._rows(" UNION ".join(trusts), [key] * len(trusts))
        return OwnerContents(
            memories, messages, threads, ids[0], ids[1], frozenset(Trust(one) for (one,) in found), notes
        )

    async def of_user(self, user_id: str, agent_id: str = "") -> list[Owner]:
        named = " UNION ".join(f"SELECT owner_id, agent_id FROM {table} WHERE user_id = %s" for table in NAMED)
        there = " OR ".join(f"EXISTS (SELECT 1 FROM {table} AS t WHERE t.owner_id = n.owner_id)" for table in OWNED)
        found = await self._rows(f"SELECT DISTINCT agent_id FROM ({named}) AS n WHERE {there}", [user_id] * len(NAMED))
        names = sorted(one for (one,) in found if agent_id in {"", one})
        return [Owner(one, Scope(user_id=user_id)) for one in names]

    async def sizes(self, agent_id: str = "", *, limit: int, new_since: datetime | None = None) -> OwnerSizes:
        since = rows.naive(new_since) if new_since else datetime.max  # noqa: DTZ901  as the columns hold times
        whose, of_agent = (
            "agent_id, coalesce(user_id, '') AS user_id, coalesce(chat_id, '') AS chat_id",
            "%s IN ('', agent_id)",
        )
        new = "count(*) FILTER (WHERE create_time >= %s)"
        size = "sum(octet_length(content))"
        parts = [
            (
                f"SELECT {whose}, count(*) AS memories, 0 AS messages, {size} AS size, {new} AS new_memories,"
                f" 0 AS new_messages FROM memories WHERE {of_agent} GROUP BY 1, 2, 3"
            ),
            f"SELECT {whose}, 0, count(*), {size}, 0, {new} FROM messages WHERE {of_agent} GROUP BY 1, 2, 3",
            f"SELECT {whose}, 0, 0, sum(text_bytes), 0, 0 FROM notes WHERE {of_agent} GROUP BY 1, 2, 3",
        ]
        params: list[object] = [since, agent_id, since, agent_id, agent_id]
        for table in ("threads", "working_memories", "entities", "sessions", "work", "proposals"):
            parts.append(f"SELECT {whose}, 0, 0, 0, 0, 0 FROM {table} WHERE {of_agent} GROUP BY 1, 2, 3")
            params.append(agent_id)
        found = await self._rows(
            "SELECT agent_id, user_id, chat_id, sum(memories)::int8, sum(messages)::int8, sum(size)::int8 AS bytes,"
            " sum(new_memories)::int8, sum(new_messages)::int8, count(*) OVER ()"
            f" FROM ({' UNION ALL '.join(parts)}) AS parts GROUP BY agent_id, user_id, chat_id"
            ' ORDER BY bytes DESC, agent_id COLLATE "C", user_id COLLATE "C", chat_id COLLATE "C"'
            f" LIMIT {int(limit)}",
            params,
        )
        return OwnerSizes(tuple(OwnerSize(*row[:-1]) for row in found), found[0][-1] if found else 0)

    async def active_since(self, time: datetime, *, least: int) -> list[Owner]:
        found = await self._rows(
            "SELECT agent_id, user_id, chat_id FROM memories WHERE create_time >= %s AND delete_time IS NULL"
            f" GROUP BY 1, 2, 3 HAVING count(*) >= {int(least)}",
            [rows.naive(time)],
        )
        return sorted((Owner(row[0], Scope(user_id=row[1], chat_id=row[2])) for row in found), key=repr)
