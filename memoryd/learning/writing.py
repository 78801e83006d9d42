"""What was learnt, on its way to memories: judged in order, with the trust and the quota of its messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memoryd.domain.decay import EXTRACTION
from memoryd.domain.ports import Guards, Ports
from memoryd.domain.writing.add import texts_of
from memoryd.domain.writing.session import WriteSession
from memoryd.embedding.base import Embedder
from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.index.analysis import embedded_text
from memoryd.learning.extractor import Learnt
from memoryd.model.call_context import CallContext
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet
from memoryd.model.conversation import Message
from memoryd.model.embedding import Embedded
from memoryd.model.grant import GrantUsage
from memoryd.model.memory import Draft, Source
from memoryd.model.message_draft import MASK
from memoryd.model.receipt import Rejection, StatementOutcome
from memoryd.model.scope import Owner
from memoryd.turns import in_turns

__all__ = ["EMBEDDING_LINE", "Judged", "Offered", "daemon_call", "embedded", "judged", "offered", "quota_locks"]

CALL_ID = 12  # characters by which a line of the audit is known
EMBEDDING_LINE = "learning"  # the caller by whose name the texts wait
Offered = tuple[Draft, Message]
"""A statement, and the message whose trust and speaker hold for it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of statements, and what is written; `session` has the memories."""

    change: ChangeSet
    outcomes: tuple[StatementOutcome, ...]
    session: WriteSession


def offered(fact: Learnt, now: datetime, *, is_strict: bool = False) -> Offered | None:
    """
    Return what is offered as a memory, and the message that says it; None for what is over, or was masked.

    What cannot be a memory is None too; if strict, InvalidArgument or LimitExceeded say why.
    """
    message = fact.message
    expire_time = None if fact.lasts is None else message.create_time + fact.lasts
    if (expire_time is not None and expire_time <= now) or MASK in fact.content:
        return None
    source = Source(
        speaker=message.speaker,
        channel=EXTRACTION,
        thread_id=message.thread_id,
        session_id=message.session_id,
        message_ids=tuple(dict.fromkeys([message.id, *(other.id for other in fact.also)])),
    )
    try:
        draft = Draft(
            content=fact.content,
            kind=fact.kind,
            shared=message.scope.chat_id is not None,
            subjects=fact.subjects,
            tags=fact.tags,
            metadata=dict(fact.metadata),
            category=fact.category,
            source=source,
            event_time=fact.event_time or message.create_time,
            confidence=fact.confidence,
            expire_time=expire_time,
        )
    except (InvalidArgument, LimitExceeded):  # what an extractor makes need not be well-formed
        if is_strict:
            raise
        return None
    return draft, message


async def embedded(offers: Sequence[Offered], embedder: Embedder) -> list[Embedded | None]:
    """Return the vectors of statements; queries and adds go first."""
    texts = [embedded_text(draft.source.speaker, draft.content) for draft, _ in offers]
    return await embedder.documents(texts, caller=EMBEDDING_LINE, background=True) if texts else []


def _grant_of(offers: Sequence[Offered]) -> str:
    """Return the grant through which any of it came; empty where there is none, or are several."""
    grants = {message.grant_id for _, message in offers if message.grant_id}
    return grants.pop() if len(grants) == 1 else ""


def quota_locks(offers: Sequence[Offered], guards: Guards) -> list[tuple[str, str]]:
    """Return what is held besides the owner, where the quota of a grant counts."""
    grant_id = _grant_of(offers)
    quota = guards.grants.quota(grant_id)
    return [("grant", grant_id)] if quota.stored_memories or quota.stored_bytes else []


async def judged(
    offers: Sequence[Offered],
    vectors: Sequence[Embedded | None],
    owner: Owner,
    ports: Ports,
    *,
    now: datetime,
) -> Judged:
    """
    Judge statements of one owner, each in the name of who said it; the owner's lock is held.

    What holds a credential, exceeds a quota, or finds a full scope is rejected, and keeps nothing else from being
    stored.
    """
    grant_id = _grant_of(offers)
    quota = ports.guards.grants.quota(grant_id)
    counted = bool(quota.stored_memories or quota.stored_bytes)
    indexes = {owner: await ports.indexes.get(owner)}
    used = await ports.store.grants.usage(grant_id, now.date()) if counted else GrantUsage()
    heads = [await ports.store.commits.memories.head(owner)]
    session = WriteSession(ports, indexes, now, heads=heads, used=used, count=max(1, len(offers)))
    outcomes: list[StatementOutcome] = []
    try:
        async for (draft, message), vector in in_turns(zip(offers, vectors, strict=True)):
            if ports.guards.secrets(texts_of(draft)):
                outcomes.append(StatementOutcome.rejected(Rejection.SECRET))
                continue
            caller = speaker_of(message)
            caller = replace(caller, quota=quota) if message.grant_id == grant_id else caller
            try:
                outcomes.append(await session.consider(draft, owner, caller, vector, said_time=message.create_time))
            except LimitExceeded:  # a full scope, all of it protected
                outcomes.append(StatementOutcome.rejected(Rejection.FULL))
    finally:
        session.end()
    return Judged(await session.change(None), tuple(outcomes), session)


def speaker_of(message: Message) -> Caller:
    """Return in whose name a message was said: never with more trust than it."""
    return Caller(
        agent_id=message.agent_id,
        user_id=message.scope.user_id or message.author or None,
        chat_id=message.scope.chat_id,
        trust=message.trust,
        grant_id=message.grant_id,
    )


def daemon_call(owner: Owner, kind: str, ports: Ports, now: datetime) -> CallContext:
    """Return what the audit says of what the daemon writes by itself: who it does so for."""
    return CallContext(
        time=now,
        call=ports.new_id()[:CALL_ID],
        rpc=kind,
        door="daemon",
        agent_id=owner.agent_id,
        user_id=owner.scope.user_id or "",
        chat_id=owner.scope.chat_id or "",
    )
