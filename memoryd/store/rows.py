"""Between memories, grants and people and the columns of tables: what engines of SQL share."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from memoryd.model import memory_columns
from memoryd.model.change import Entry
from memoryd.model.entity import Entity, EntityType
from memoryd.model.filter_terms import filter_terms_of
from memoryd.model.grant import Grant, Permission, Quota, permission_names
from memoryd.model.memory import Memory
from memoryd.model.memory_columns import COLUMNS, PLAIN_DETAILS, RECALL_COLUMNS, row_of
from memoryd.model.scope import Owner, Scope
from memoryd.model.times import from_us, to_us
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest

__all__ = [
    "SEPARATOR",
    "TABLE_COLUMNS",
    "UPDATED_COLUMNS",
    "aware",
    "datetime_of",
    "entity_of",
    "entity_row",
    "entry_row",
    "facets_text",
    "filter_term_pattern",
    "grant_of",
    "grant_row",
    "memory_of",
    "naive",
    "request_name",
    "usage_name",
]

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  as the columns hold times
SEPARATOR = "\x1f"  # between filter terms; JSON strings never hold it

TABLE_COLUMNS = tuple(name for name in COLUMNS if name not in RECALL_COLUMNS)
"""Those of `memories`; `uses` holds the rest."""
_NEVER_UPDATED = {"id", "content", "create_time", "grant_id"}
UPDATED_COLUMNS = (
    *(name for name in TABLE_COLUMNS if name not in _NEVER_UPDATED),
    "facets", "traits", "terms", "text_bytes", "commit_seq",
)  # fmt: skip
"""What an update may change: all but the id, the owner, the statement and its vector. No list is among them, so that
DuckDB updates in place."""


def naive(time: datetime | None) -> datetime | None:
    """Return the time as the columns hold it: UTC, without saying so."""
    return None if time is None else time.astimezone(UTC).replace(tzinfo=None)


def datetime_of(value: int | None) -> datetime | None:
    """Return a time of so many microseconds since 1970 as the columns hold it."""
    return None if value is None else EPOCH + timedelta(microseconds=value)


def aware(time: datetime) -> datetime:
    """Return the time of a column: it is UTC."""
    return time.replace(tzinfo=UTC)


def filter_term_pattern(term: str) -> str:
    """Return what `facets` contains where a memory has this filter term."""
    return f"{SEPARATOR}{json.dumps(term, ensure_ascii=False)}{SEPARATOR}"


def facets_text(memory: Memory) -> str:
    """Return what filters ask for of a memory, as the column `facets` holds it."""
    facets = filter_terms_of(memory)
    joined = SEPARATOR.join(json.dumps(term, ensure_ascii=False) for term in facets)
    return f"{SEPARATOR}{joined}{SEPARATOR}" if facets else ""


def entry_row(entry: Entry, commit_seq: int) -> dict[str, Any]:
    """Return an entry as column → value, without its vectors."""
    memory = entry.memory
    stored = dict(zip(COLUMNS, row_of(memory), strict=True))
    stored["details"] = stored["details"] or PLAIN_DETAILS
    return {
        **{name: datetime_of(stored[name]) if name.endswith("_time") else stored[name] for name in TABLE_COLUMNS},
        "agent_id": memory.agent_id,
        "user_id": memory.scope.user_id,
        "chat_id": memory.scope.chat_id,
        "text_digest": text_digest(memory.content).hex(),
        "facets": facets_text(memory),
        "terms": entry.terms,
        "fingerprint": entry.fingerprint,
        "traits": entry.traits,
        "text_bytes": memory.text_bytes,
        "commit_seq": commit_seq,
    }


def request_name(owner: Owner, method: str, request_id: str) -> str:
    """Return the key of a request: a digest, as a short key keeps the index small and says nothing of users."""
    scope = owner.scope
    return _digest([owner.agent_id, scope.user_id, scope.chat_id, method, request_id])


def usage_name(owner: Owner, grant_id: str, day: date) -> str:
    """Return the key of a row of `usage`, a digest as well."""
    scope = owner.scope
    return _digest([owner.agent_id, scope.user_id, scope.chat_id, grant_id, day.isoformat()])


def _digest(parts: Sequence[str | None]) -> str:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def grant_row(grant: Grant) -> dict[str, Any]:
    """Return a grant as a row of `grants`."""
    details = {
        "listener": grant.listener,
        "agent_id": grant.agent_id,
        "user_id": grant.user_id,
        "chat_ids": grant.chat_ids,
        "permissions": permission_names(grant.permissions),
        "quota": dataclasses.asdict(grant.quota),
        "label": grant.label,
        "expire_time": None if grant.expire_time is None else to_us(grant.expire_time),
        "revoke_time": None if grant.revoke_time is None else to_us(grant.revoke_time),
        "host_id": grant.host_id,
    }
    return {
        "id": grant.id,
        "details": json.dumps(details, ensure_ascii=False),
        "create_time": naive(grant.create_time),
    }


def grant_of(grant_id: str, details: str, create_time: datetime) -> Grant:
    """Return the grant of a row."""
    values = json.loads(details)
    expire, revoke = values["expire_time"], values["revoke_time"]
    return Grant(
        id=grant_id,
        listener=values["listener"],
        agent_id=values["agent_id"],
        user_id=values["user_id"],
        chat_ids=tuple(values["chat_ids"]),
        permissions=frozenset(map(Permission, values["permissions"])),
        quota=Quota(**values["quota"]),
        label=values["label"],
        create_time=create_time.replace(tzinfo=UTC),
        expire_time=None if expire is None else from_us(expire),
        revoke_time=None if revoke is None else from_us(revoke),
        host_id=values.get("host_id", ""),
    )


def entity_row(entity: Entity) -> dict[str, Any]:
    """Return what was decided of an entity as a row of `entities`."""
    details = {
        "name": entity.name,
        "merged_into": entity.merged_into,
        "apart": entity.apart,
        "type": entity.type and entity.type.value,
        "trust": entity.trust.value,
    }
    return {
        "id": entity.id,
        "agent_id": entity.owner.agent_id,
        "user_id": entity.owner.scope.user_id,
        "chat_id": entity.owner.scope.chat_id,
        "details": json.dumps({name: value for name, value in details.items() if value}, ensure_ascii=False),
        "create_time": naive(entity.create_time),
    }


def entity_of(owner: Owner, entity_id: str, details: str, create_time: datetime) -> Entity:
    """Return the entity of a row."""
    values = json.loads(details)
    return Entity(
        entity_id, owner, create_time.replace(tzinfo=UTC), Trust(values["trust"]), values.get("name", ""),
        values.get("merged_into", ""), tuple(values.get("apart", ())),
        EntityType(values["type"]) if "type" in values else None,
    )  # fmt: skip


def memory_of(row: Sequence[Any]) -> Memory:
    """Return the memory of a row: MEMORY_COLUMNS."""
    return memory_columns.memory_of(Owner(row[0], Scope(row[1], row[2])), row[3:])
