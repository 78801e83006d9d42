"""
Memories as compact bytes: a hundred thousand of them as objects would cost the collector and the cache.

The format lives and dies with the process; the store's columns are what lasts.
"""

from __future__ import annotations

import marshal
from datetime import datetime
from functools import lru_cache

from memoryd.model.change import Recalled
from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.memory import Judgement, Kind, Memory, Source
from memoryd.model.scope import Scope
from memoryd.model.times import from_us, to_us
from memoryd.model.trust import Trust

__all__ = ["forget_unpacked", "pack", "unpack", "unpack_once", "with_recalls"]

_NO_SOURCE = Source()
_KINDS = {kind.value: kind for kind in Kind}
_TRUSTS = {trust.value: trust for trust in Trust}


_FORMS = {form.value: form for form in Form}
_TYPES = {kind.value: kind for kind in EntityType}


def mention_of(entity_id: str, text: str, form: str, kind: str, about: bool, same_as: str) -> Mention:
    """Return the mention of these values."""
    return Mention(entity_id, text, _FORMS[form], _TYPES[kind], about, same_as)


def _us(time: datetime | None) -> int | None:
    return None if time is None else to_us(time)


def _time(value: int | None) -> datetime | None:
    return None if value is None else from_us(value)


def pack(memory: Memory) -> bytes:
    """Return a memory as bytes."""
    source, judgement = memory.source, memory.judgement
    return marshal.dumps((
        memory.id, memory.agent_id, memory.scope.user_id, memory.scope.chat_id, memory.content,
        to_us(memory.create_time), to_us(memory.event_time), memory.kind.value, memory.subjects, memory.tags,
        memory.category, dict(memory.metadata), memory.key,
        (source.speaker, source.channel, source.thread_id, source.session_id, source.message_ids),
        memory.confidence, memory.decay_rate, memory.trust.value, memory.grant_id, memory.protected,
        _us(memory.recall_time), memory.recall_count, _us(memory.reinforce_time), _us(memory.expire_time),
        _us(memory.supersede_time), memory.supersedes, memory.superseded_by, memory.contested_with,
        None if judgement is None else (judgement.rule, judgement.reason, judgement.evidence),
        _us(memory.trusted_recall_time), memory.claims,
        tuple((m.entity_id, m.text, m.form.value, m.type.value, m.about, m.same_as) for m in memory.mentions),
        _us(memory.enrich_time), memory.author,
        None if memory.supersede_trust is None else memory.supersede_trust.value,
    ))  # fmt: skip


RECALL_TIME, RECALL_COUNT, TRUSTED_RECALL_TIME = 19, 20, 28  # their places in a record


def with_recalls(packed: bytes, recalled: Recalled) -> bytes:
    """Return a record with more recalls, a tenth of the work of making the memory of it."""
    values = list(marshal.loads(packed))  # noqa: S302  made by pack() in this process
    time, count, trusted = recalled
    values[RECALL_TIME] = to_us(time)
    values[RECALL_COUNT] += count
    if trusted is not None:
        values[TRUSTED_RECALL_TIME] = to_us(trusted)
    return marshal.dumps(tuple(values))


MOST_KEPT_BYTES = 1024  # of a record that is kept unpacked: 4,096 of them are 10 MB


def unpack(packed: bytes) -> Memory:
    """
    Return the memory that was packed, a short one of the last few thousand without unpacking it again.

    Deleted memories are not packed, so it has no delete_time.
    """
    return _kept(packed) if len(packed) <= MOST_KEPT_BYTES else unpack_once(packed)


def forget_unpacked() -> None:
    """Drop what is kept unpacked."""
    _kept.cache_clear()


def unpack_once(packed: bytes) -> Memory:
    """Return the memory that was packed, and keep nothing of it."""
    (
        memory_id, agent_id, user_id, chat_id, content, created, happened, kind, subjects, tags, category, metadata,
        key, source, confidence, decay_rate, trust, grant_id, protected, recalled, recall_count, reinforced, expires,
        superseded, supersedes, superseded_by, contested_with, judgement, trusted, claims, mentions, enriched,
        author, supersede_trust,
    ) = marshal.loads(packed)  # noqa: S302  made by pack() in this process, never read from outside  # fmt: skip
    return Memory(
        id=memory_id,
        agent_id=agent_id,
        scope=Scope(user_id, chat_id),
        content=content,
        create_time=from_us(created),
        event_time=from_us(happened),
        kind=_KINDS[kind],
        subjects=subjects,
        tags=tags,
        category=category,
        metadata=metadata,
        key=key,
        source=Source(*source) if any(source) else _NO_SOURCE,
        confidence=confidence,
        decay_rate=decay_rate,
        trust=_TRUSTS[trust],
        grant_id=grant_id,
        protected=protected,
        recall_time=_time(recalled),
        recall_count=recall_count,
        reinforce_time=_time(reinforced),
        expire_time=_time(expires),
        supersede_time=_time(superseded),
        supersedes=supersedes,
        superseded_by=superseded_by,
        contested_with=contested_with,
        judgement=None if judgement is None else Judgement(*judgement),
        trusted_recall_time=_time(trusted),
        claims=claims,
        mentions=tuple(mention_of(*mention) for mention in mentions) if mentions else (),
        enrich_time=_time(enriched),
        author=author,
        supersede_trust=None if supersede_trust is None else _TRUSTS[supersede_trust],
    )


_kept = lru_cache(maxsize=4096)(unpack_once)
