"""EntityService: one method an RPC."""

from __future__ import annotations

from dataclasses import replace

from memoryd.domain.people import decide, profiles
from memoryd.domain.people.forget import forget_person
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.withheld import memory_for, profile_for
from memoryd.model import limits
from memoryd.model.conversation import Message
from memoryd.model.grant import Permission
from memoryd.service.gate import Call
from memoryd.turns import in_turns
from memoryd.v1 import entity_service_pb2 as pb
from memoryd.wire.conversation import message_to_pb
from memoryd.wire.entity import profile_to_pb, type_from_pb
from memoryd.wire.memory import memory_to_pb, set_time

__all__ = ["EntityService"]

MOST_SHOWN = 1000  # characters of a message that a dry run shows


class EntityService:
    """The RPCs of entity_service.proto; the gate has checked the caller."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def ListPeople(self, request: pb.ListPeopleRequest, call: Call) -> pb.ListPeopleResponse:
        page = await profiles.list_people(
            call.caller, self._ports, page_size=request.page_size, page_token=request.page_token, now=call.now
        )
        call.touched([profile.id for profile in page.people])
        return pb.ListPeopleResponse(
            people=[profile_to_pb(profile) async for profile in in_turns(page.people)],
            next_page_token=page.next_page_token,
        )

    async def GetEntity(self, request: pb.GetEntityRequest, call: Call) -> pb.GetEntityResponse:
        memories = await profiles.get_entity(request.name, call.caller, self._ports, limit=request.limit, now=call.now)
        call.touched([memories.entity.id, *(memory.id for memory in memories.memories)])
        return pb.GetEntityResponse(
            entity=profile_to_pb(memories.entity),
            memories=[memory_to_pb(memory) async for memory in in_turns(memories.memories)],
        )

    async def RenameEntity(self, request: pb.RenameEntityRequest, call: Call) -> pb.RenameEntityResponse:
        profile = await decide.rename(request.name, request.new_name, call.caller, self._ports, now=call.now)
        call.touched([profile.id])
        shown = profile_for(profile, request.name, call.session.permissions)
        return pb.RenameEntityResponse(entity=profile_to_pb(shown))

    async def SetEntityType(self, request: pb.SetEntityTypeRequest, call: Call) -> pb.SetEntityTypeResponse:
        profile = await decide.set_type(
            request.name, type_from_pb(request.type), call.caller, self._ports, now=call.now
        )
        call.touched([profile.id])
        return pb.SetEntityTypeResponse(
            entity=profile_to_pb(profile_for(profile, request.name, call.session.permissions))
        )

    async def MergeEntities(self, request: pb.MergeEntitiesRequest, call: Call) -> pb.MergeEntitiesResponse:
        merged = await decide.merge(request.name, request.into, call.caller, self._ports, now=call.now)
        call.touched([merged.entity.id, merged.merged_id])
        entity = profile_for(merged.entity, request.into, call.session.permissions)
        return pb.MergeEntitiesResponse(entity=profile_to_pb(entity), merged_id=merged.merged_id)

    async def UnmergeEntity(self, request: pb.UnmergeEntityRequest, call: Call) -> pb.UnmergeEntityResponse:
        profile = await decide.unmerge(request.id, call.caller, self._ports, now=call.now)
        call.touched([profile.id])
        return pb.UnmergeEntityResponse(
            entity=profile_to_pb(profile_for(profile, request.id, call.session.permissions))
        )

    async def ForgetPerson(self, request: pb.ForgetPersonRequest, call: Call) -> pb.ForgetPersonResponse:
        receipt = await forget_person(
            request.name,
            call.caller,
            self._ports,
            now=call.now,
            dry_run=request.dry_run,
            with_messages=request.with_messages,
        )
        call.touched([*receipt.purged_ids, *(receipt.message_ids if receipt.with_messages else ())])
        may_read = Permission.READ_MESSAGES in call.session.permissions
        response = pb.ForgetPersonResponse(
            entity=profile_to_pb(profile_for(receipt.entity, request.name, call.session.permissions)),
            purged_ids=receipt.purged_ids[: limits.MAX_NAMED_IDS],
            purged_count=receipt.purged_count,
            mentioning_ids=receipt.mentioning_ids[: limits.MAX_NAMED_IDS],
            backups=self._ports.copies(),
            dry_run=request.dry_run,
            memories=[
                memory_to_pb(memory_for(memory, call.session.permissions))
                async for memory in in_turns(receipt.memories)
            ],
            mentioning_memories=[
                memory_to_pb(memory_for(memory, call.session.permissions))
                async for memory in in_turns(receipt.mentioning_memories)
            ],
            message_ids=receipt.message_ids,
            message_count=receipt.message_count,
            thread_ids=receipt.thread_ids,
            in_working_memory=receipt.in_working_memory,
            note_paths=receipt.note_paths if Permission.NOTES in call.session.permissions else (),
            with_messages=receipt.with_messages,
            messages=[message_to_pb(_short(message)) for message in receipt.messages if may_read],
        )
        set_time(response, "purge_time", receipt.purge_time)
        return response


def _short(message: Message) -> Message:
    """Return the beginning of a message: enough to see what it is."""
    return replace(message, content=message.content[:MOST_SHOWN], tool_calls=(), metadata="")
