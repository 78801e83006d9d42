"""Between the values of `model` and the messages of the contract; shared by the service and the client."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from memoryd.errors import InvalidArgument, in_part
from memoryd.model.entity import EntityRef
from memoryd.model.memory import Draft, Judgement, Kind, Outcome, ShownMemory, Source, State
from memoryd.model.open_enum import OpenEnum
from memoryd.model.query import Filter
from memoryd.model.results import AddResult, Hit, Leg, LegScore, Miss
from memoryd.model.scope import Scope
from memoryd.model.times import from_us, to_us
from memoryd.model.trust import Trust
from memoryd.v1 import memory_pb2, memory_service_pb2
from memoryd.wire.metadata import metadata_from_pb, texts_of, values_to_json

__all__ = [
    "EnumCodes",
    "draft_from_pb",
    "draft_to_pb",
    "filter_from_pb",
    "filter_to_pb",
    "hit_from_pb",
    "hit_to_pb",
    "legs_from_pb",
    "legs_to_pb",
    "memory_from_pb",
    "memory_to_pb",
    "result_from_pb",
    "result_to_pb",
    "set_time",
    "source_from_pb",
    "source_to_pb",
    "time_from_pb",
]

NANOS_A_SECOND = 1_000_000_000
E = TypeVar("E", bound=OpenEnum)


class EnumCodes(Generic[E]):
    """The members of an enum of the model and their codes in a generated module; other codes are kept as strangers."""

    def __init__(self, enum: type[E], module: Any, prefix: str, *, unset: E | None = None) -> None:
        """`unset` is the member that a message without the field means."""
        self._enum = enum
        self._unset = unset
        self._codes = {member: getattr(module, f"{prefix}_{member.name}") for member in enum}
        self._members: dict[int, E] = {code: member for member, code in self._codes.items()}

    def to_pb(self, member: E) -> Any:
        """Return the code of a member, or of a stranger."""
        return self._codes.get(member, member.code)

    def from_pb(self, code: int) -> E:
        """Return the member of a code; of one that this version does not know what stands for it."""
        known = self._members.get(code) if code else self._unset
        return self._enum.stranger(code) if known is None else known

    def known(self, code: int) -> E | None:
        """Return the member of a code; None where this version does not know it, or it says nothing."""
        return self._members.get(code)


KIND = EnumCodes(Kind, memory_pb2, "MEMORY_KIND", unset=Kind.FACT)
STATE = EnumCodes(State, memory_pb2, "MEMORY_STATE", unset=State.LIVE)
TRUST = EnumCodes(Trust, memory_pb2, "TRUST_CLASS", unset=Trust.SANDBOX)
OUTCOME = EnumCodes(Outcome, memory_pb2, "OUTCOME")
LEG = EnumCodes(Leg, memory_pb2, "SEARCH_LEG")

_TIMES = (
    "create_time", "event_time", "recall_time", "reinforce_time", "expire_time", "supersede_time", "delete_time",
    "purge_time", "said_time",
)  # fmt: skip
_FILTER_TIMES = ("event_time_from", "event_time_to", "create_time_from", "create_time_to")


def time_from_pb(message: Any, field: str) -> datetime | None:
    """Return a time of a message, None where it is unset; InvalidArgument where it is none."""
    if not message.HasField(field):
        return None
    stamp: Timestamp = getattr(message, field)
    if not 0 <= stamp.nanos < NANOS_A_SECOND:
        raise InvalidArgument(f"{field} has {stamp.nanos} nanoseconds", field=field)
    try:
        return from_us(stamp.seconds * 1_000_000 + stamp.nanos // 1000)
    except OverflowError:
        raise InvalidArgument(f"{field} is out of range", field=field) from None


def set_time(message: Any, field: str, time: datetime | None) -> None:
    """Set a time of a message, where there is one."""
    if time is not None:
        stamp = getattr(message, field)
        stamp.seconds, microseconds = divmod(to_us(time), 1_000_000)  # a third of the cost of FromDatetime
        stamp.nanos = microseconds * 1000


def _kind(code: int, field: str) -> Kind:
    kind = KIND.known(code)
    if kind is None:
        raise InvalidArgument(f"{field} is {code}, which is no kind of memory", field=field)
    return kind


def memory_to_pb(memory: ShownMemory) -> memory_pb2.Memory:
    """Return a memory as message."""
    message = memory_pb2.Memory(
        id=memory.id,
        agent_id=memory.agent_id,
        scope=memory_pb2.Scope(user_id=memory.scope.user_id or "", chat_id=memory.scope.chat_id or ""),
        content=memory.content,
        kind=KIND.to_pb(memory.kind),
        state=STATE.to_pb(memory.state),
        subjects=memory.subjects,
        tags=memory.tags,
        category=memory.category,
        metadata=texts_of(memory.metadata),
        metadata_json=values_to_json(memory.metadata),
        key=memory.key,
        source=source_to_pb(memory.source),
        confidence=memory.confidence,
        decay_rate=memory.decay_rate,
        trust=TRUST.to_pb(memory.trust),
        grant_id=memory.grant_id,
        protected=memory.protected,
        recall_count=memory.recall_count,
        supersedes=memory.supersedes,
        superseded_by=memory.superseded_by,
        contested_with=memory.contested_with,
        delete_reason=memory.delete_reason,
        said_by=memory.said_by,
        import_id=memory.import_id,
        external_id=memory.external_id,
        entities=[memory_pb2.EntityRef(id=ref.id, name=ref.name, about=ref.about) for ref in memory.entities],
    )
    for field in _TIMES:
        set_time(message, field, getattr(memory, field))
    if memory.judgement is not None:
        message.judgement.rule = memory.judgement.rule
        message.judgement.reason = memory.judgement.reason
        message.judgement.evidence = memory.judgement.evidence
    return message


def memory_from_pb(message: memory_pb2.Memory) -> ShownMemory:
    """Return a message as memory."""
    created = time_from_pb(message, "create_time") or datetime.fromtimestamp(0, UTC)
    judgement = message.judgement
    return ShownMemory(
        id=message.id,
        agent_id=message.agent_id,
        scope=Scope(message.scope.user_id or None, message.scope.chat_id or None),
        content=message.content,
        kind=KIND.from_pb(message.kind),
        state=STATE.from_pb(message.state),
        subjects=tuple(message.subjects),
        tags=tuple(message.tags),
        category=message.category,
        metadata=metadata_from_pb(message),
        key=message.key,
        source=source_from_pb(message.source),
        confidence=message.confidence,
        decay_rate=message.decay_rate if message.HasField("decay_rate") else None,
        trust=TRUST.from_pb(message.trust),
        grant_id=message.grant_id,
        protected=message.protected,
        create_time=created,
        event_time=time_from_pb(message, "event_time") or created,
        recall_time=time_from_pb(message, "recall_time"),
        recall_count=message.recall_count,
        reinforce_time=time_from_pb(message, "reinforce_time"),
        expire_time=time_from_pb(message, "expire_time"),
        supersede_time=time_from_pb(message, "supersede_time"),
        delete_time=time_from_pb(message, "delete_time"),
        purge_time=time_from_pb(message, "purge_time"),
        supersedes=tuple(message.supersedes),
        superseded_by=message.superseded_by,
        contested_with=tuple(message.contested_with),
        judgement=Judgement(judgement.rule, judgement.reason, judgement.evidence) if judgement.rule else None,
        delete_reason=message.delete_reason,
        said_by=message.said_by,
        import_id=message.import_id,
        external_id=message.external_id,
        said_time=time_from_pb(message, "said_time"),
        entities=tuple(EntityRef(ref.id, ref.name, ref.about) for ref in message.entities),
    )


def source_to_pb(source: Source) -> memory_pb2.Source:
    """Return who stated something and where as message."""
    return memory_pb2.Source(
        speaker=source.speaker,
        channel=source.channel,
        thread_id=source.thread_id,
        session_id=source.session_id,
        message_ids=source.message_ids,
    )


def source_from_pb(message: memory_pb2.Source) -> Source:
    """Return a message as who stated something and where, checked."""
    return Source(message.speaker, message.channel, message.thread_id, message.session_id, tuple(message.message_ids))


def draft_to_pb(draft: Draft) -> memory_service_pb2.AddMemoryRequest:
    """Return a statement as request, without who asks."""
    request = memory_service_pb2.AddMemoryRequest(
        shared=draft.shared,
        content=draft.content,
        kind=KIND.to_pb(draft.kind),
        subjects=draft.subjects,
        tags=draft.tags,
        category=draft.category,
        metadata=texts_of(draft.metadata),
        metadata_json=values_to_json(draft.metadata),
        key=draft.key,
        source=source_to_pb(draft.source),
        confidence=draft.confidence,
        decay_rate=draft.decay_rate,
        expires_days=draft.expires_days,
    )
    set_time(request, "event_time", draft.event_time)
    set_time(request, "expire_time", draft.expire_time)
    return request


def draft_from_pb(request: memory_service_pb2.AddMemoryRequest) -> Draft:
    """Return a request as statement, checked."""
    return Draft(
        content=request.content,
        kind=_kind(request.kind, "kind") if request.kind else Kind.FACT,
        shared=request.shared,
        subjects=tuple(request.subjects),
        tags=tuple(request.tags),
        category=request.category,
        metadata=metadata_from_pb(request),
        key=request.key,
        source=source_from_pb(request.source) if request.HasField("source") else Source(),
        event_time=time_from_pb(request, "event_time"),
        confidence=request.confidence if request.HasField("confidence") else 1.0,
        decay_rate=request.decay_rate if request.HasField("decay_rate") else None,
        expires_days=request.expires_days if request.HasField("expires_days") else None,
        expire_time=time_from_pb(request, "expire_time"),
    )


def filter_to_pb(wanted: Filter) -> memory_pb2.MemoryFilter:
    """Return a filter as message; include_expired and include_superseded stand in the request itself."""
    message = memory_pb2.MemoryFilter(
        kinds=sorted(KIND.to_pb(kind) for kind in wanted.kinds),
        subjects=wanted.subjects,
        tags=wanted.tags,
        metadata=texts_of(wanted.metadata),
        metadata_json=values_to_json(wanted.metadata),
        where=wanted.where,
        category=wanted.category,
        path_prefix=wanted.path_prefix,
        import_id=wanted.import_id,
        contested=wanted.contested,
        source_thread_id=wanted.source_thread_id,
    )
    for field in _FILTER_TIMES:
        set_time(message, field, getattr(wanted, field))
    return message


def filter_from_pb(request: Any) -> Filter:
    """Return the filter of a search, list or delete request, checked."""
    message: memory_pb2.MemoryFilter = request.filter
    with in_part("filter"):
        times: dict[str, Any] = {field: time_from_pb(message, field) for field in _FILTER_TIMES}
        kinds = frozenset(_kind(code, f"kinds[{n}]") for n, code in enumerate(message.kinds))
    return Filter(
        kinds=kinds,
        subjects=tuple(message.subjects),
        tags=tuple(message.tags),
        metadata=metadata_from_pb(message),
        where=message.where,
        category=message.category,
        path_prefix=message.path_prefix,
        import_id=message.import_id,
        contested=message.contested,
        source_thread_id=message.source_thread_id,
        include_expired=getattr(request, "include_expired", True),
        include_superseded=getattr(request, "include_superseded", True),
        as_of=time_from_pb(request, "as_of") if hasattr(request, "as_of") else None,
        **times,
    )


def hit_to_pb(hit: Hit) -> memory_pb2.SearchHit:
    """Return a hit as message."""
    return memory_pb2.SearchHit(
        memory=memory_to_pb(hit.memory),
        score=hit.score,
        similarity=hit.similarity,
        lexical=hit.lexical,
        explanation=_explanation_to_pb(hit.explanation),
        same_ids=hit.same_ids,
        said_by_other=hit.said_by_other,
        newer=None if hit.newer is None else memory_to_pb(hit.newer),
    )


def hit_from_pb(message: memory_pb2.SearchHit) -> Hit:
    """Return a message as hit."""
    return Hit(
        memory_from_pb(message.memory),
        message.score,
        message.similarity,
        message.lexical,
        _explanation_from_pb(message.explanation),
        tuple(message.same_ids),
        message.said_by_other,
        memory_from_pb(message.newer) if message.HasField("newer") else None,
    )


def miss_to_pb(miss: Miss) -> memory_pb2.Miss:
    """Return a miss as message."""
    return memory_pb2.Miss(
        id=miss.id,
        place=miss.place,
        score=miss.score,
        reasons=miss.reasons,
        explanation=_explanation_to_pb(miss.explanation),
    )


def miss_from_pb(message: memory_pb2.Miss) -> Miss:
    """Return a message as miss."""
    explanation = _explanation_from_pb(message.explanation)
    return Miss(message.id, message.place, message.score, tuple(message.reasons), explanation)


def _explanation_to_pb(legs: Iterable[LegScore]) -> list[memory_pb2.LegScore]:
    return [
        memory_pb2.LegScore(leg=LEG.to_pb(leg.leg), rank=leg.rank, score=leg.score, weight=leg.weight) for leg in legs
    ]


def _explanation_from_pb(legs: Iterable[memory_pb2.LegScore]) -> tuple[LegScore, ...]:
    return tuple(LegScore(LEG.from_pb(leg.leg), leg.rank, leg.score, leg.weight) for leg in legs)


def legs_to_pb(legs: tuple[Leg, ...]) -> list[Any]:
    """Return legs as codes."""
    return [LEG.to_pb(leg) for leg in legs]


def legs_from_pb(codes: Any) -> tuple[Leg, ...]:
    """Return codes as legs."""
    return tuple(map(LEG.from_pb, codes))


def result_to_pb(result: AddResult) -> memory_pb2.AddResult:
    """Return the result of an add as message."""
    return memory_pb2.AddResult(
        outcome=OUTCOME.to_pb(result.outcome),
        memory=None if result.memory is None else memory_to_pb(result.memory),
        superseded_ids=result.superseded_ids,
        contested_ids=result.contested_ids,
        untaken_fields=result.untaken_fields,
        rejection=result.rejection,
    )


def result_from_pb(message: memory_pb2.AddResult) -> AddResult:
    """Return a message as the result of an add."""
    return AddResult(
        OUTCOME.from_pb(message.outcome),
        memory_from_pb(message.memory) if message.HasField("memory") else None,
        tuple(message.superseded_ids),
        tuple(message.contested_ids),
        message.rejection,
        tuple(message.untaken_fields),
    )
