"""Between an update of a memory and its message; shared by the service and the client."""

from __future__ import annotations

from memoryd.model.memory_update import MemoryUpdate
from memoryd.v1 import memory_service_pb2
from memoryd.wire.memory import set_time, time_from_pb
from memoryd.wire.metadata import metadata_from_pb, texts_of, values_to_json

__all__ = ["update_from_pb", "update_to_pb"]


def update_from_pb(request: memory_service_pb2.UpdateMemoryRequest) -> MemoryUpdate:
    """Return what a request sets, checked."""
    return MemoryUpdate(
        mask=frozenset(request.update_mask.paths),
        tags=tuple(request.tags),
        category=request.category,
        metadata=metadata_from_pb(request),
        expire_time=time_from_pb(request, "expire_time"),
    )


def update_to_pb(memory_id: str, update: MemoryUpdate) -> memory_service_pb2.UpdateMemoryRequest:
    """Return the request that sets it of a memory."""
    request = memory_service_pb2.UpdateMemoryRequest(
        id=memory_id,
        tags=update.tags,
        category=update.category,
        metadata=texts_of(update.metadata),
        metadata_json=values_to_json(update.metadata),
    )
    request.update_mask.paths.extend(sorted(update.mask))
    set_time(request, "expire_time", update.expire_time)
    return request
