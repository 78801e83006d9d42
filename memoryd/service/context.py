"""ContextService: the block of text for a prompt."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from memoryd.domain.context import build_context
from memoryd.domain.ports import Ports
from memoryd.service.caller import caller_of
from memoryd.service.calls import answer, note_embedding
from memoryd.v1 import context_service_pb2 as pb
from memoryd.v1 import context_service_pb2_grpc
from memoryd.wire import legs_to_pb, section_to_pb

__all__ = ["ContextService"]


class ContextService(context_service_pb2_grpc.ContextServiceServicer):
    """The admin socket's context RPCs."""

    def __init__(self, ports: Ports, clock: Callable[[], datetime]) -> None:
        self._ports = ports
        self._clock = clock

    async def BuildContext(self, request: pb.BuildContextRequest, context: Any) -> pb.BuildContextResponse:
        async def work() -> pb.BuildContextResponse:
            built = await build_context(
                request.prompt,
                caller_of(request),
                self._ports,
                now=self._clock(),
                max_tokens=request.max_tokens,
                max_memories=request.max_memories,
                min_score=request.min_score,
            )
            note_embedding(context, built.embedding_s)
            return pb.BuildContextResponse(
                text=built.text,
                sections=[section_to_pb(section) for section in built.sections],
                token_count=built.token_count,
                skipped_count=built.skipped_count,
                unavailable_legs=legs_to_pb(built.unavailable),
            )

        return await answer("BuildContext", context, work())
