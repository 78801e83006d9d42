"""Between counts of memories and their messages; shared by the service and the client."""

from __future__ import annotations

from memoryd.model.results import MemoryCount, Stats
from memoryd.v1 import memory_service_pb2
from memoryd.wire.memory import KIND, STATE, set_time, time_from_pb

__all__ = ["stats_from_pb", "stats_to_pb"]


def stats_to_pb(stats: Stats) -> memory_service_pb2.GetMemoryStatsResponse:
    """Return counts as message."""
    message = memory_service_pb2.GetMemoryStatsResponse(
        counts=[
            memory_service_pb2.MemoryCount(
                kind=KIND.to_pb(item.kind), state=STATE.to_pb(item.state), shared=item.shared, count=item.count
            )
            for item in stats.counts
        ],
        content_bytes=stats.content_bytes,
    )
    set_time(message, "newest_create_time", stats.newest_create_time)
    return message


def stats_from_pb(message: memory_service_pb2.GetMemoryStatsResponse) -> Stats:
    """Return a message as counts."""
    counts = tuple(
        MemoryCount(KIND.from_pb(item.kind), STATE.from_pb(item.state), item.shared, item.count)
        for item in message.counts
    )
    return Stats(counts, time_from_pb(message, "newest_create_time"), message.content_bytes)
