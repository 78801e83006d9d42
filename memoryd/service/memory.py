"""MemoryService: one method an RPC."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memoryd.domain.conversation.search import search_everything
from memoryd.domain.forgetting import forget, sweep
from memoryd.domain.forgetting.everything import forget_user
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval import browse
from memoryd.domain.retrieval.history import history
from memoryd.domain.retrieval.profile import profile_of
from memoryd.domain.retrieval.withheld import memory_for, result_for
from memoryd.domain.scopes import Scopes
from memoryd.domain.transfer.import_memories import import_memories
from memoryd.domain.writing import add, restore
from memoryd.domain.writing.confirm import confirm
from memoryd.domain.writing.update import update
from memoryd.errors import InvalidArgument, NotFound, in_part
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.grant import Permission
from memoryd.model.memory import Draft
from memoryd.model.query import Query
from memoryd.model.results import AddResult
from memoryd.model.scope import EVERY_AGENT
from memoryd.model.validation import check_batch
from memoryd.service.gate import Call
from memoryd.turns import in_turns
from memoryd.v1 import memory_service_pb2 as pb
from memoryd.wire.erased import erased_to_pb
from memoryd.wire.imported import import_draft_from_pb, import_result_to_pb
from memoryd.wire.memory import (
    draft_from_pb,
    filter_from_pb,
    hit_to_pb,
    legs_to_pb,
    memory_to_pb,
    miss_to_pb,
    result_to_pb,
    set_time,
    source_from_pb,
)
from memoryd.wire.memory_update import update_from_pb
from memoryd.wire.profile import profile_to_pb
from memoryd.wire.stats import stats_to_pb

__all__ = ["MemoryService"]


class MemoryService:
    """The RPCs of memory_service.proto; the gate has checked the caller."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def _caller(self, request: Any, call: Call) -> Caller:
        """Return who asks; where the host names no one, it acts for whoever the memory of that id belongs to."""
        if not call.is_of_no_one:
            return call.caller
        owner = await browse.owner_of(request.id, self._ports.store)
        if request.agent_id not in {"", owner.agent_id}:
            raise NotFound(f"there is no memory {request.id}", field="id")
        return call.acting_for(owner)

    async def _lister(self, call: Call) -> Caller:
        """Return who asks for a list; of every agent, with all agents that the user has something with."""
        caller = call.caller
        if caller.agent_id != EVERY_AGENT:
            return caller
        if caller.user_id is None or caller.chat_id is not None:
            raise InvalidArgument("agent_id '*' lists what a user has: give user_id, and no chat_id", field="agent_id")
        owners = await self._ports.store.owners.of_user(caller.user_id)
        return replace(caller, agents=tuple(owner.agent_id for owner in owners))

    async def AddMemory(self, request: pb.AddMemoryRequest, call: Call) -> pb.AddMemoryResponse:
        result = await add.add(
            draft_from_pb(request), call.caller, self._ports, now=call.now, request_id=request.request_id
        )
        call.touched(_ids([result]))
        return pb.AddMemoryResponse(
            result=result_to_pb(result_for(result, call.session.permissions, call.caller.grant_id))
        )

    async def BatchAddMemories(self, request: pb.BatchAddMemoriesRequest, call: Call) -> pb.BatchAddMemoriesResponse:
        results = await add.add_batch(
            _drafts(request), call.caller, self._ports, now=call.now, request_id=request.request_id
        )
        call.touched(_ids(results))
        return pb.BatchAddMemoriesResponse(
            results=[
                result_to_pb(result_for(result, call.session.permissions, call.caller.grant_id))
                async for result in in_turns(results)
            ]
        )

    async def SearchMemories(self, request: pb.SearchMemoriesRequest, call: Call) -> pb.SearchMemoriesResponse:
        query = Query(
            text=request.query,
            limit=request.limit,
            filter=filter_from_pb(request),
            min_score=request.min_score if request.HasField("min_score") else None,
            explain=request.explain,
            why_not=request.why_not,
            without_recall=request.without_recall,
        )
        if query.asks_for_messages:
            call.session.require(Permission.SEARCH_MESSAGES)
        if query.asks_for_notes:
            call.session.require(Permission.NOTES)
        result = await search_everything(query, call.caller, self._ports, now=call.now)
        call.note_embedding(result.embedding_s)
        call.touched([hit.memory.id for hit in result.hits])
        return pb.SearchMemoriesResponse(
            hits=[hit_to_pb(hit) async for hit in in_turns(result.hits)],
            unavailable_legs=legs_to_pb(result.unavailable_legs),
            miss=None if result.miss is None else miss_to_pb(result.miss),
        )

    async def ListMemories(self, request: pb.ListMemoriesRequest, call: Call) -> pb.ListMemoriesResponse:
        page = await browse.page(
            await self._lister(call),
            self._ports,
            wanted=filter_from_pb(request),
            page_size=request.page_size,
            page_token=request.page_token,
            now=call.now,
        )
        call.touched([memory.id for memory in page.memories])
        return pb.ListMemoriesResponse(
            memories=[memory_to_pb(memory) async for memory in in_turns(page.memories)],
            next_page_token=page.next_page_token,
        )

    async def GetMemory(self, request: pb.GetMemoryRequest, call: Call) -> pb.GetMemoryResponse:
        memory = await browse.get(request.id, await self._caller(request, call), self._ports, now=call.now)
        call.touched([memory.id])
        return pb.GetMemoryResponse(memory=memory_to_pb(memory))

    async def DeleteMemory(self, request: pb.DeleteMemoryRequest, call: Call) -> pb.DeleteMemoryResponse:
        try:
            caller = await self._caller(request, call)
        except NotFound:
            if request.allow_missing:
                return pb.DeleteMemoryResponse()
            raise
        gone = await forget.forget(
            request.id,
            caller,
            self._ports,
            now=call.now,
            missing_ok=request.allow_missing,
            purge=request.purge,
            request_id=request.request_id,
        )
        call.touched(gone.deleted_ids)
        response = pb.DeleteMemoryResponse(deleted_ids=gone.deleted_ids)
        set_time(response, "purge_time", gone.purge_time)
        return response

    async def RestoreMemory(self, request: pb.RestoreMemoryRequest, call: Call) -> pb.RestoreMemoryResponse:
        memory = await restore.restore(
            request.id, await self._caller(request, call), self._ports, now=call.now, request_id=request.request_id
        )
        call.touched([memory.id])
        return pb.RestoreMemoryResponse(memory=memory_to_pb(memory_for(memory, call.session.permissions)))

    async def DeleteMemories(self, request: pb.DeleteMemoriesRequest, call: Call) -> pb.DeleteMemoriesResponse:
        match = sweep.Match(
            filter=filter_from_pb(request),
            text=request.text,
            source=source_from_pb(request.source),
            grant_id=request.grant_id,
            shared=request.shared if request.HasField("shared") else None,
        )
        gone = await sweep.forget_matching(
            match,
            call.caller,
            self._ports,
            now=call.now,
            dry_run=request.dry_run,
            purge=request.purge,
            request_id=request.request_id,
        )
        call.touched(gone.deleted_ids)
        response = pb.DeleteMemoriesResponse(
            deleted_ids=gone.deleted_ids[: limits.MAX_NAMED_IDS],
            deleted_count=gone.deleted_count,
            memories=[
                memory_to_pb(memory_for(memory, call.session.permissions)) async for memory in in_turns(gone.memories)
            ],
            dry_run=request.dry_run,
            backups=self._ports.copies() if request.purge and not request.dry_run else [],
        )
        set_time(response, "purge_time", gone.purge_time)
        return response

    async def GetMemoryHistory(self, request: pb.GetMemoryHistoryRequest, call: Call) -> pb.GetMemoryHistoryResponse:
        answer = await history(request.id, await self._caller(request, call), self._ports, now=call.now)
        call.touched([memory.id for memory in answer.memories])
        return pb.GetMemoryHistoryResponse(
            memories=[memory_to_pb(memory) async for memory in in_turns(answer.memories)],
            missing_ids=answer.missing_ids,
        )

    async def CorrectMemory(self, request: pb.CorrectMemoryRequest, call: Call) -> pb.CorrectMemoryResponse:
        result = await add.correct(
            request.id,
            request.content,
            await self._caller(request, call),
            self._ports,
            now=call.now,
            request_id=request.request_id,
        )
        call.touched([*_ids([result]), *result.superseded_ids])
        return pb.CorrectMemoryResponse(result=result_to_pb(result))

    async def ConfirmMemory(self, request: pb.ConfirmMemoryRequest, call: Call) -> pb.ConfirmMemoryResponse:
        protect = {"protect": request.protect} if request.HasField("protect") else {}
        done = await confirm(request.id, await self._caller(request, call), self._ports, now=call.now, **protect)
        call.touched([done.memory.id, *done.superseded_ids])
        return pb.ConfirmMemoryResponse(memory=memory_to_pb(done.memory), superseded_ids=done.superseded_ids)

    async def UpdateMemory(self, request: pb.UpdateMemoryRequest, call: Call) -> pb.UpdateMemoryResponse:
        wanted = update_from_pb(request)
        if wanted.ends:
            call.session.require(Permission.DELETE)
        memory = await update(request.id, wanted, await self._caller(request, call), self._ports, now=call.now)
        call.touched([memory.id])
        return pb.UpdateMemoryResponse(memory=memory_to_pb(memory_for(memory, call.session.permissions)))

    async def ImportMemories(self, request: pb.ImportMemoriesRequest, call: Call) -> pb.ImportMemoriesResponse:
        items = []
        async for n, message in in_turns(enumerate(request.memories)):
            with in_part(f"memories[{n}]"):
                items.append(import_draft_from_pb(message))
        done = await import_memories(
            items, request.import_id, call.caller, self._ports, now=call.now, dry_run=request.dry_run
        )
        call.touched([result.id for result in done.results if result.id])
        return pb.ImportMemoriesResponse(results=map(import_result_to_pb, done.results), dry_run=done.dry_run)

    async def GetMemoryStats(self, request: pb.GetMemoryStatsRequest, call: Call) -> pb.GetMemoryStatsResponse:  # noqa: ARG002  it only says who asks
        return stats_to_pb(await browse.stats(call.caller, self._ports.store, now=call.now))

    async def GetUserProfile(self, request: pb.GetUserProfileRequest, call: Call) -> pb.GetUserProfileResponse:  # noqa: ARG002  it only says who asks
        items = await profile_of(call.caller, Scopes(self._ports), call.now)
        call.touched([item.memory.id for item in items])
        return profile_to_pb(items)

    async def ForgetUser(self, request: pb.ForgetUserRequest, call: Call) -> pb.ForgetUserResponse:
        erased = await forget_user(call.caller, self._ports, now=call.now, dry_run=request.dry_run)
        call.touched([*erased.memory_ids, *erased.message_ids])
        return pb.ForgetUserResponse(erased=erased_to_pb(erased))


def _ids(results: list[AddResult]) -> list[str]:
    return [result.memory.id for result in results if result.memory is not None]


def _drafts(request: pb.BatchAddMemoriesRequest) -> list[Draft]:
    """Return the items of a batch, checked; errors name the item."""
    check_batch(len(request.requests), "requests", "send")
    drafts = []
    for n, item in enumerate(request.requests):
        with in_part(f"requests[{n}]"):
            drafts.append(draft_from_pb(item))
    return drafts
