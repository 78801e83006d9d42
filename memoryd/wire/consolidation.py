"""What an agent of the host's learns, as messages and back."""

from __future__ import annotations

from typing import Any

from memoryd.errors import InvalidArgument, in_part
from memoryd.model.caller import DEFAULT_AGENT
from memoryd.model.learnt import MemoryConflict, Proposal, Resolution, SaidFact, SessionKey, Stands
from memoryd.model.scope import Owner, Scope
from memoryd.model.validation import check_id, check_share
from memoryd.v1 import consolidation_service_pb2 as pb
from memoryd.v1 import memory_pb2
from memoryd.wire.memory import KIND, TRUST, EnumCodes, memory_from_pb, memory_to_pb, set_time, time_from_pb

__all__ = [
    "conflict_from_pb",
    "conflict_to_pb",
    "fact_from_pb",
    "fact_to_pb",
    "key_from_pb",
    "key_to_pb",
    "owner_from_pb",
    "proposal_from_pb",
    "proposal_to_pb",
    "resolution_from_pb",
    "resolution_to_pb",
]

STANDS = EnumCodes(Stands, pb, "CONFLICT_RELATION")
RESOLUTION = EnumCodes(Resolution, pb, "CONFLICT_RESOLUTION")


def owner_from_pb(agent_id: str, scope: memory_pb2.Scope, name: str) -> Owner:
    """Return the owner that a request names; InvalidArgument names the field below `name`."""
    ids = [check_id(getattr(scope, part), f"{name}.{part}") for part in ("user_id", "chat_id")]
    if bool(ids[0]) == bool(ids[1]):
        raise InvalidArgument(f"{name} must name exactly one of user_id and chat_id", field=name)
    agent = check_id(agent_id, "agent_id") or DEFAULT_AGENT
    return Owner(agent, Scope(user_id=ids[0] or None, chat_id=ids[1] or None))


def key_from_pb(message: pb.SessionRef) -> SessionKey:
    """Return the session that a request names."""
    owner = owner_from_pb(message.agent_id, message.scope, "session.scope")
    named = {part: check_id(getattr(message, part), f"session.{part}") for part in ("thread_id", "session_id")}
    for part, value in named.items():
        if not value:
            raise InvalidArgument(f"session.{part} is empty; say which one is meant", field=f"session.{part}")
    return SessionKey(owner, **named)


def key_to_pb(key: SessionKey) -> pb.SessionRef:
    """Return a session as a request names it."""
    scope = memory_pb2.Scope(user_id=key.owner.scope.user_id or "", chat_id=key.owner.scope.chat_id or "")
    return pb.SessionRef(agent_id=key.owner.agent_id, scope=scope, thread_id=key.thread_id, session_id=key.session_id)


def fact_from_pb(message: pb.LearntFact, n: int) -> SaidFact:
    """Return the fact of a message, the n-th of its request."""
    with in_part(f"facts[{n}]"):
        confidence = message.confidence if message.HasField("confidence") else 1.0
        check_share(confidence, "confidence")
        return SaidFact(
            content=message.content,
            message_ids=tuple(
                check_id(message_id, f"message_ids[{at}]") for at, message_id in enumerate(message.message_ids)
            ),
            kind=KIND.from_pb(message.kind),
            category=message.category,
            confidence=confidence,
            event_time=time_from_pb(message, "event_time"),
            expire_time=time_from_pb(message, "expire_time"),
            subjects=tuple(message.subjects),
            tags=tuple(message.tags),
        )


def fact_to_pb(fact: SaidFact) -> pb.LearntFact:
    """Return a fact as a message."""
    message = pb.LearntFact(
        content=fact.content,
        message_ids=fact.message_ids,
        kind=KIND.to_pb(fact.kind),
        category=fact.category,
        confidence=fact.confidence,
        subjects=fact.subjects,
        tags=fact.tags,
    )
    set_time(message, "event_time", fact.event_time)
    set_time(message, "expire_time", fact.expire_time)
    return message


_PLAIN = ("id", "agent_id", "thread_id", "session_id", "content", "category", "confidence", "speaker")
_LISTS = ("message_ids", "subjects", "tags")
_TIMES = ("event_time", "expire_time", "create_time")


def proposal_to_pb(proposal: Proposal) -> pb.Proposal:
    """Return a proposal as a message."""
    message = pb.Proposal(
        scope=memory_pb2.Scope(user_id=proposal.scope.user_id or "", chat_id=proposal.scope.chat_id or ""),
        kind=KIND.to_pb(proposal.kind),
        trust=TRUST.to_pb(proposal.trust),
        metadata=proposal.metadata,
        **{name: getattr(proposal, name) for name in (*_PLAIN, *_LISTS)},
    )
    for name in _TIMES:
        set_time(message, name, getattr(proposal, name))
    return message


def _named(message: pb.Proposal) -> dict[str, Any]:
    lists = {name: tuple(getattr(message, name)) for name in _LISTS}
    return {**lists, **{name: getattr(message, name) for name in _PLAIN}, **_times(message)}


def _times(message: pb.Proposal) -> dict[str, Any]:
    return {name: time_from_pb(message, name) for name in _TIMES}


def proposal_from_pb(message: pb.Proposal) -> Proposal:
    """Return the proposal of a message."""
    scope = message.scope
    return Proposal(
        scope=Scope(user_id=scope.user_id or None, chat_id=scope.chat_id or None),
        kind=KIND.from_pb(message.kind),
        trust=TRUST.from_pb(message.trust),
        metadata=dict(message.metadata),
        **_named(message),
    )


def conflict_to_pb(conflict: MemoryConflict) -> pb.MemoryConflict:
    """Return a conflict as a message."""
    return pb.MemoryConflict(
        memory=memory_to_pb(conflict.memory),
        relation=STANDS.to_pb(conflict.relation),
        similarity=conflict.similarity,
        rule=conflict.rule,
        reason=conflict.reason,
    )


def conflict_from_pb(message: pb.MemoryConflict) -> MemoryConflict:
    """Return the conflict of a message."""
    return MemoryConflict(
        memory_from_pb(message.memory),
        STANDS.from_pb(message.relation),
        message.similarity,
        message.rule,
        message.reason,
    )


def resolution_from_pb(code: int) -> Resolution:
    """Return what is decided; InvalidArgument where it is not said."""
    known = RESOLUTION.known(code)
    if known is None:
        raise InvalidArgument("resolution is not said; it must be SUPERSEDE or KEEP_BOTH", field="resolution")
    return known


def resolution_to_pb(resolution: Resolution) -> Any:
    """Return what is decided as its code."""
    return RESOLUTION.to_pb(resolution)
