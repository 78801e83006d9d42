"""Between memories and the columns of the tables."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryd.model.change import Entry
from memoryd.model.entity import Entity, EntityType, Form, Mention
from memoryd.model.filter_terms import filter_terms_of
from memoryd.model.grant import Grant, Permission, Quota, permission_names
from memoryd.model.memory import Judgement, Kind, Memory, Source
from memoryd.model.scope import Owner, Scope
from memoryd.model.times import from_us, to_us
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest
from memoryd.store.duckdb.vectors import column_of

__all__ = [
    "MEMORY_COLUMNS",
    "UPDATED_COLUMNS",
    "aware",
    "columns_of",
    "details_of",
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

SEPARATOR = "\x1f"  # between filter terms; JSON strings never hold it
_EMPTY: Mapping[str, Any] = MappingProxyType({})
_NUMBERS = {"commit_seq", "recall_count", "text_bytes", "number", "thread", "seq", "place", "rank"}
_KINDS = {kind.value: kind for kind in Kind}
_TRUSTS = {trust.value: trust for trust in Trust}
_FORMS = {form.value: form for form in Form}
_TYPES = {kind.value: kind for kind in EntityType}

MEMORY_COLUMNS = (
    "id", "agent_id", "user_id", "chat_id", "content", "kind", "key", "details", "create_time", "event_time",
    "expire_time", "supersede_time", "delete_time", "purge_time", "grant_id",
)  # fmt: skip
"""What is read back; `uses` adds recall_time, recall_count and trusted_recall_time."""

UPDATED_COLUMNS = (
    "kind", "key", "facets", "details", "traits", "event_time", "expire_time", "supersede_time", "delete_time",
    "purge_time", "terms", "text_bytes", "commit_seq",
)  # fmt: skip
"""What an update may change: all but the id, the owner, the statement and its vector. No list is among them, so that
DuckDB updates in place."""


def naive(time: datetime | None) -> datetime | None:
    """Return the time as the columns hold it: UTC, without saying so."""
    return None if time is None else time.astimezone(UTC).replace(tzinfo=None)


def aware(time: datetime) -> datetime:
    """Return the time of a column: it is UTC."""
    return time.replace(tzinfo=UTC)


def filter_term_pattern(term: str) -> str:
    """Return what `facets` contains where a memory has this filter term."""
    return f"{SEPARATOR}{json.dumps(term, ensure_ascii=False)}{SEPARATOR}"


def _details(memory: Memory) -> str:
    """Return what no query compares, as JSON without what is at its default."""
    source, judgement = memory.source, memory.judgement
    details: dict[str, Any] = {
        "subjects": memory.subjects,
        "tags": memory.tags,
        "category": memory.category,
        "metadata": dict(memory.metadata),
        "source": {
            "speaker": source.speaker,
            "channel": source.channel,
            "thread_id": source.thread_id,
            "session_id": source.session_id,
            "message_ids": source.message_ids,
        }
        if source != Source()
        else None,
        "decay_rate": memory.decay_rate,
        "protected": memory.protected,
        "reinforce_time": None if memory.reinforce_time is None else to_us(memory.reinforce_time),
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "contested_with": memory.contested_with,
        "delete_trust": memory.delete_trust and memory.delete_trust.value,
        "supersede_trust": memory.supersede_trust and memory.supersede_trust.value,
        "delete_reason": memory.delete_reason,
        "claims": memory.claims,
        "mentions": [
            [mention.entity_id, mention.text, mention.form.value, mention.type.value, mention.about, mention.same_as]
            for mention in memory.mentions
        ],
        "enrich_time": None if memory.enrich_time is None else to_us(memory.enrich_time),
        "author": memory.author,
        "judgement": judgement and {
            "rule": judgement.rule,
            "reason": judgement.reason,
            "evidence": judgement.evidence,
        },
    }  # fmt: skip
    kept = {name: value for name, value in details.items() if value or (name == "decay_rate" and value is not None)}
    return details_of(memory.trust, memory.confidence, kept)


def details_of(trust: Trust, confidence: float, more: Mapping[str, Any] = _EMPTY) -> str:
    """Return what every memory has in `details`, and more."""
    return json.dumps({"confidence": confidence, "trust": trust.value, **more}, ensure_ascii=False)


def facets_text(memory: Memory) -> str:
    """Return what filters ask for of a memory, as the column `facets` holds it."""
    facets = filter_terms_of(memory)
    joined = SEPARATOR.join(json.dumps(term, ensure_ascii=False) for term in facets)
    return f"{SEPARATOR}{joined}{SEPARATOR}" if facets else ""


def entry_row(entry: Entry, commit_seq: int) -> dict[str, Any]:
    """Return an entry as column → value."""
    memory = entry.memory
    return {
        "id": memory.id,
        "agent_id": memory.agent_id,
        "user_id": memory.scope.user_id,
        "chat_id": memory.scope.chat_id,
        "content": memory.content,
        "text_digest": text_digest(memory.content).hex(),
        "kind": memory.kind.value,
        "key": memory.key,
        "facets": facets_text(memory),
        "details": _details(memory),
        "create_time": naive(memory.create_time),
        "event_time": naive(memory.event_time),
        "expire_time": naive(memory.expire_time),
        "supersede_time": naive(memory.supersede_time),
        "delete_time": naive(memory.delete_time),
        "purge_time": naive(memory.purge_time),
        "terms": entry.terms,
        "fingerprint": entry.fingerprint,
        "grant_id": memory.grant_id,
        "traits": entry.traits,
        "text_bytes": memory.text_bytes,
        "commit_seq": commit_seq,
        **({} if entry.vector is None else {column_of(len(entry.vector)): entry.vector}),
        **({"token_vectors": entry.tokens} if entry.tokens else {}),
        **({"window_vectors": entry.windows} if entry.windows else {}),
    }


def columns_of(rows: Sequence[dict[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return rows as arrays that DuckDB scans in place; of text and vectors one object an element."""
    columns: dict[str, NDArray[Any]] = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        if name.endswith("_time"):
            columns[name] = np.array(values, dtype="datetime64[us]")
        elif name in _NUMBERS:
            columns[name] = np.array(values, dtype=np.int64)
        else:
            columns[name] = np.empty(len(values), dtype=object)
            for n, value in enumerate(values):
                columns[name][n] = value
    return columns


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
    held = json.loads(details)
    expire, revoke = held["expire_time"], held["revoke_time"]
    return Grant(
        id=grant_id,
        listener=held["listener"],
        agent_id=held["agent_id"],
        user_id=held["user_id"],
        chat_ids=tuple(held["chat_ids"]),
        permissions=frozenset(map(Permission, held["permissions"])),
        quota=Quota(**held["quota"]),
        label=held["label"],
        create_time=create_time.replace(tzinfo=UTC),
        expire_time=None if expire is None else from_us(expire),
        revoke_time=None if revoke is None else from_us(revoke),
        host_id=held.get("host_id", ""),
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
    held = json.loads(details)
    return Entity(
        entity_id, owner, create_time.replace(tzinfo=UTC), Trust(held["trust"]), held.get("name", ""),
        held.get("merged_into", ""), tuple(held.get("apart", ())),
        EntityType(held["type"]) if "type" in held else None,
    )  # fmt: skip


def _utc(time: datetime | None) -> datetime | None:
    return None if time is None else time.replace(tzinfo=UTC)


_NO_SOURCE = Source()


def memory_of(row: Sequence[Any]) -> Memory:
    """Return the memory of a row: MEMORY_COLUMNS, then those of `uses`."""
    (
        memory_id, agent_id, user_id, chat_id, content, kind, key, details_json, create_time, event_time, expire_time,
        supersede_time, delete_time, purge_time, grant_id, recall_time, recall_count, trusted_recall_time,
    ) = row  # fmt: skip
    details: dict[str, Any] = json.loads(details_json)
    source, judgement, reinforced = details.get("source"), details.get("judgement"), details.get("reinforce_time")
    enriched = details.get("enrich_time")
    return Memory(
        id=memory_id,
        agent_id=agent_id,
        scope=Scope(user_id, chat_id),
        content=content,
        kind=_KINDS[kind],
        subjects=tuple(details.get("subjects", ())),
        tags=tuple(details.get("tags", ())),
        category=details.get("category", ""),
        metadata=details.get("metadata", {}),
        key=key,
        source=Source(**{**source, "message_ids": tuple(source["message_ids"])}) if source else _NO_SOURCE,
        confidence=details["confidence"],
        decay_rate=details.get("decay_rate"),
        trust=_TRUSTS[details["trust"]],
        grant_id=grant_id,
        protected=details.get("protected", False),
        create_time=create_time.replace(tzinfo=UTC),
        event_time=event_time.replace(tzinfo=UTC),
        reinforce_time=None if reinforced is None else from_us(reinforced),
        expire_time=_utc(expire_time),
        supersede_time=_utc(supersede_time),
        delete_time=_utc(delete_time),
        purge_time=_utc(purge_time),
        supersedes=tuple(details.get("supersedes", ())),
        superseded_by=details.get("superseded_by", ""),
        contested_with=tuple(details.get("contested_with", ())),
        judgement=Judgement(**judgement) if judgement else None,
        delete_trust=_TRUSTS.get(details.get("delete_trust", "")),
        supersede_trust=_TRUSTS.get(details.get("supersede_trust", "")),
        recall_time=_utc(recall_time),
        recall_count=recall_count or 0,
        trusted_recall_time=_utc(trusted_recall_time),
        delete_reason=details.get("delete_reason", ""),
        claims=tuple(details.get("claims", ())),
        mentions=tuple(
            Mention(entity_id, text, _FORMS[form], _TYPES[kind], about, same_as)
            for entity_id, text, form, kind, about, same_as in details.get("mentions", ())
        ),
        enrich_time=None if enriched is None else from_us(enriched),
        author=details.get("author", ""),
    )
