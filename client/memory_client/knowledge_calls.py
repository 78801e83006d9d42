"""The RPCs of judgements, people and upkeep as values; see `calls`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_client.calls import Call, build, count, filter_of, memory_call, request_id_of
from memory_client.endpoint import Identity
from memoryd.errors import InvalidArgument
from memoryd.model.entity import EntityType, Profile
from memoryd.model.memory import ShownMemory, Source
from memoryd.model.memory_update import MemoryUpdate
from memoryd.model.query import Filter
from memoryd.model.reports import (
    EntityMemories,
    ErasedUser,
    ForgottenPerson,
    Merged,
    PeoplePage,
)
from memoryd.model.results import AddResult, Confirmed, DeletedMany, History
from memoryd.v1 import entity_service_pb2, memory_service_pb2
from memoryd.wire.conversation import message_from_pb
from memoryd.wire.entity import profile_from_pb, type_to_pb
from memoryd.wire.erased import erased_from_pb
from memoryd.wire.memory import filter_to_pb, memory_from_pb, result_from_pb, source_to_pb, time_from_pb
from memoryd.wire.memory_update import update_to_pb

__all__ = []

NEVER = "never"


def delete_matching(  # noqa: PLR0913  one argument for each field of the contract
    identity: Identity,
    *,
    wanted: Filter,
    text: str,
    source: Source | None,
    grant_id: str,
    shared: bool | None,
    dry_run: bool,
    purge: bool,
    request_id: str,
) -> Call[DeletedMany]:
    """DeleteMemories."""
    pb = memory_service_pb2

    def make() -> Any:
        return pb.DeleteMemoriesRequest(
            filter=filter_to_pb(filter_of(wanted)),
            text=text,
            source=None if source is None else source_to_pb(source),
            grant_id=grant_id,
            shared=shared,
            dry_run=dry_run,
            purge=purge,
            request_id=request_id_of(request_id),
        )

    def parse(answer: Any) -> DeletedMany:
        return DeletedMany(
            tuple(answer.deleted_ids),
            answer.deleted_count,
            time_from_pb(answer, "purge_time"),
            tuple(map(memory_from_pb, answer.memories)),
            answer.dry_run,
            tuple(answer.backups),
        )

    request = build(make, identity)
    return memory_call("DeleteMemories", request, pb.DeleteMemoriesResponse, parse, retryable=dry_run or not purge)


def history(identity: Identity, memory_id: str) -> Call[History]:
    """GetMemoryHistory."""
    pb = memory_service_pb2

    def parse(answer: Any) -> History:
        return History(tuple(map(memory_from_pb, answer.memories)), tuple(answer.missing_ids))

    request = build(lambda: pb.GetMemoryHistoryRequest(id=memory_id), identity)
    return memory_call("GetMemoryHistory", request, pb.GetMemoryHistoryResponse, parse)


def correct(identity: Identity, memory_id: str, content: str, request_id: str) -> Call[AddResult]:
    """CorrectMemory."""
    pb = memory_service_pb2
    request = build(
        lambda: pb.CorrectMemoryRequest(id=memory_id, content=content, request_id=request_id_of(request_id)), identity
    )
    return memory_call("CorrectMemory", request, pb.CorrectMemoryResponse, lambda answer: result_from_pb(answer.result))


def confirm(identity: Identity, memory_id: str, *, protect: bool) -> Call[Confirmed]:
    """ConfirmMemory."""
    pb = memory_service_pb2
    request = build(lambda: pb.ConfirmMemoryRequest(id=memory_id, protect=protect), identity)

    def parse(answer: Any) -> Confirmed:
        return Confirmed(memory_from_pb(answer.memory), tuple(answer.superseded_ids))

    return memory_call("ConfirmMemory", request, pb.ConfirmMemoryResponse, parse)


def update(identity: Identity, memory_id: str, given: Mapping[str, Any]) -> Call[ShownMemory]:
    """UpdateMemory; what is not given stays as it is, and an end of "never" is none."""
    pb = memory_service_pb2
    values = {name: value for name, value in given.items() if value is not None}

    def make() -> Any:
        ends = values.get("expire_time")
        if isinstance(ends, timedelta):
            ends = datetime.now(UTC) + ends
        elif isinstance(ends, str):
            if ends != NEVER:
                raise InvalidArgument(f"expire_time must be a datetime, a timedelta or {NEVER!r}", field="expire_time")
            ends = None
        set_values = {**values, "expire_time": ends} if "expire_time" in values else values
        return update_to_pb(memory_id, MemoryUpdate(mask=frozenset(values), **set_values))

    request = build(make, identity)
    return memory_call("UpdateMemory", request, pb.UpdateMemoryResponse, lambda answer: memory_from_pb(answer.memory))


def people(identity: Identity, *, page_size: int, page_token: str) -> Call[PeoplePage]:
    """ListPeople."""
    pb = entity_service_pb2

    def make() -> Any:
        return pb.ListPeopleRequest(page_size=count(page_size, "page_size"), page_token=page_token)

    def parse(answer: Any) -> PeoplePage:
        return PeoplePage(tuple(map(profile_from_pb, answer.people)), answer.next_page_token)

    return Call("EntityService", "ListPeople", build(make, identity), pb.ListPeopleResponse, parse)


def entity(identity: Identity, name: str, *, limit: int) -> Call[EntityMemories]:
    """GetEntity."""
    pb = entity_service_pb2
    request = build(lambda: pb.GetEntityRequest(name=name, limit=count(limit, "limit")), identity)

    def parse(answer: Any) -> EntityMemories:
        return EntityMemories(profile_from_pb(answer.entity), tuple(map(memory_from_pb, answer.memories)))

    return Call("EntityService", "GetEntity", request, pb.GetEntityResponse, parse)


def _decision(rpc: str, request: Any, response: Any) -> Call[Profile]:
    """Return the call of what is decided of an entity: it answers with the entity as it is then."""
    return Call("EntityService", rpc, request, response, lambda answer: profile_from_pb(answer.entity), retryable=False)


def rename_entity(identity: Identity, name: str, new_name: str) -> Call[Profile]:
    """RenameEntity."""
    pb = entity_service_pb2
    request = build(lambda: pb.RenameEntityRequest(name=name, new_name=new_name), identity)
    return _decision("RenameEntity", request, pb.RenameEntityResponse)


def set_entity_type(identity: Identity, name: str, given: EntityType) -> Call[Profile]:
    """SetEntityType."""
    pb = entity_service_pb2
    request = build(lambda: pb.SetEntityTypeRequest(name=name, type=type_to_pb(given)), identity)
    return _decision("SetEntityType", request, pb.SetEntityTypeResponse)


def merge_entities(identity: Identity, name: str, into: str) -> Call[Merged]:
    """MergeEntities."""
    pb = entity_service_pb2
    request = build(lambda: pb.MergeEntitiesRequest(name=name, into=into), identity)

    def parse(answer: Any) -> Merged:
        return Merged(profile_from_pb(answer.entity), answer.merged_id)

    return Call("EntityService", "MergeEntities", request, pb.MergeEntitiesResponse, parse, retryable=False)


def unmerge_entity(identity: Identity, entity_id: str) -> Call[Profile]:
    """UnmergeEntity."""
    pb = entity_service_pb2
    request = build(lambda: pb.UnmergeEntityRequest(id=entity_id), identity)
    return _decision("UnmergeEntity", request, pb.UnmergeEntityResponse)


def forget_person(identity: Identity, name: str, *, with_messages: bool, dry_run: bool) -> Call[ForgottenPerson]:
    """ForgetPerson."""
    pb = entity_service_pb2
    request = build(lambda: pb.ForgetPersonRequest(name=name, dry_run=dry_run, with_messages=with_messages), identity)

    def parse(answer: Any) -> ForgottenPerson:
        return ForgottenPerson(
            profile_from_pb(answer.entity),
            tuple(answer.purged_ids),
            answer.purged_count,
            tuple(answer.mentioning_ids),
            time_from_pb(answer, "purge_time"),
            tuple(answer.backups),
            answer.dry_run,
            tuple(map(memory_from_pb, answer.memories)),
            tuple(map(memory_from_pb, answer.mentioning_memories)),
            tuple(answer.message_ids),
            answer.message_count,
            tuple(answer.thread_ids),
            answer.in_working_memory,
            answer.with_messages,
            tuple(map(message_from_pb, answer.messages)),
            tuple(answer.note_paths),
        )

    return Call("EntityService", "ForgetPerson", request, pb.ForgetPersonResponse, parse, retryable=False)


def forget_user(identity: Identity, *, dry_run: bool) -> Call[ErasedUser]:
    """ForgetUser."""
    pb = memory_service_pb2
    request = build(lambda: pb.ForgetUserRequest(dry_run=dry_run), identity)
    return Call(
        "MemoryService", "ForgetUser", request, pb.ForgetUserResponse, lambda answer: erased_from_pb(answer.erased)
    )
