"""MemoryService: one method an RPC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from memoryd import limits
from memoryd.domain import add, browse, forget
from memoryd.domain.ports import Ports
from memoryd.domain.recall import recall
from memoryd.domain.settle import settle
from memoryd.errors import InvalidArgument, LimitExceeded, MemorydError
from memoryd.model import Draft, Query
from memoryd.service.caller import caller_of, check_item_identity
from memoryd.service.calls import answer, note_embedding
from memoryd.v1 import memory_service_pb2 as pb
from memoryd.v1 import memory_service_pb2_grpc
from memoryd.wire import (
    draft_from_pb,
    filter_from_pb,
    hit_to_pb,
    legs_to_pb,
    memory_to_pb,
    result_to_pb,
    set_time,
    stats_to_pb,
)

__all__ = ["MemoryService"]


class MemoryService(memory_service_pb2_grpc.MemoryServiceServicer):
    """The admin socket's memory RPCs."""

    def __init__(self, ports: Ports, clock: Callable[[], datetime]) -> None:
        self._ports = ports
        self._clock = clock

    async def AddMemory(self, request: pb.AddMemoryRequest, context: Any) -> pb.AddMemoryResponse:
        async def work() -> pb.AddMemoryResponse:
            result = await add.add(
                draft_from_pb(request),
                caller_of(request),
                self._ports,
                now=self._clock(),
                request_id=request.request_id,
            )
            return pb.AddMemoryResponse(result=result_to_pb(result))

        return await answer("AddMemory", context, work())

    async def BatchAddMemories(self, request: pb.BatchAddMemoriesRequest, context: Any) -> pb.BatchAddMemoriesResponse:
        async def work() -> pb.BatchAddMemoriesResponse:
            results = await add.add_batch(
                _drafts(request),
                caller_of(request),
                self._ports,
                now=self._clock(),
                request_id=request.request_id,
            )
            return pb.BatchAddMemoriesResponse(results=[result_to_pb(result) for result in results])

        return await answer("BatchAddMemories", context, work())

    async def SearchMemories(self, request: pb.SearchMemoriesRequest, context: Any) -> pb.SearchMemoriesResponse:
        async def work() -> pb.SearchMemoriesResponse:
            query = Query(
                text=request.query,
                limit=request.limit,
                filter=filter_from_pb(request),
                min_score=request.min_score,
                explain=request.explain,
            )
            found = await recall(query, caller_of(request), self._ports, now=self._clock())
            note_embedding(context, found.embedding_s)
            return pb.SearchMemoriesResponse(
                hits=[hit_to_pb(hit) for hit in found.hits], unavailable_legs=legs_to_pb(found.unavailable)
            )

        return await answer("SearchMemories", context, work())

    async def ListMemories(self, request: pb.ListMemoriesRequest, context: Any) -> pb.ListMemoriesResponse:
        async def work() -> pb.ListMemoriesResponse:
            page = await browse.page(
                caller_of(request),
                self._ports,
                wanted=filter_from_pb(request),
                page_size=request.page_size,
                page_token=request.page_token,
                now=self._clock(),
            )
            return pb.ListMemoriesResponse(
                memories=[memory_to_pb(memory) for memory in page.memories], next_page_token=page.next_page_token
            )

        return await answer("ListMemories", context, work())

    async def GetMemory(self, request: pb.GetMemoryRequest, context: Any) -> pb.GetMemoryResponse:
        async def work() -> pb.GetMemoryResponse:
            memory = await browse.get(request.id, caller_of(request), self._ports, now=self._clock())
            return pb.GetMemoryResponse(memory=memory_to_pb(memory))

        return await answer("GetMemory", context, work())

    async def DeleteMemory(self, request: pb.DeleteMemoryRequest, context: Any) -> pb.DeleteMemoryResponse:
        async def work() -> pb.DeleteMemoryResponse:
            gone = await settle(
                forget.forget(
                    request.id,
                    caller_of(request),
                    self._ports,
                    now=self._clock(),
                    missing_ok=request.allow_missing,
                    purge=request.purge,
                    request_id=request.request_id,
                )
            )
            response = pb.DeleteMemoryResponse(deleted_ids=gone.ids)
            set_time(response, "purge_time", gone.purge_time)
            return response

        return await answer("DeleteMemory", context, work())

    async def RestoreMemory(self, request: pb.RestoreMemoryRequest, context: Any) -> pb.RestoreMemoryResponse:
        async def work() -> pb.RestoreMemoryResponse:
            memory = await settle(
                forget.restore(
                    request.id, caller_of(request), self._ports, now=self._clock(), request_id=request.request_id
                )
            )
            return pb.RestoreMemoryResponse(memory=memory_to_pb(memory))

        return await answer("RestoreMemory", context, work())

    async def GetMemoryStats(self, request: pb.GetMemoryStatsRequest, context: Any) -> pb.GetMemoryStatsResponse:
        async def work() -> pb.GetMemoryStatsResponse:
            return stats_to_pb(await browse.stats(caller_of(request), self._ports, now=self._clock()))

        return await answer("GetMemoryStats", context, work())


def _drafts(request: pb.BatchAddMemoriesRequest) -> list[Draft]:
    """Return the items of a batch, checked; errors name the item."""
    count = len(request.requests)
    if not count:
        raise InvalidArgument("requests is empty; send at least one", field="requests")
    if count > limits.MAX_BATCH:
        raise LimitExceeded(
            f"requests has {count} items; the limit is {limits.MAX_BATCH}", field="requests", limit="requests"
        )
    drafts = []
    for n, item in enumerate(request.requests):
        check_item_identity(item, request, n)
        try:
            drafts.append(draft_from_pb(item))
        except MemorydError as error:
            raise error.within(f"requests[{n}].") from None
    return drafts
