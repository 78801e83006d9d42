"""ContextService: the block of text for a prompt."""

from __future__ import annotations

from memoryd.domain.ports import Ports
from memoryd.domain.reading.context import build_context
from memoryd.service.gate import Call
from memoryd.v1 import context_service_pb2 as pb
from memoryd.wire.memory import legs_to_pb, section_to_pb

__all__ = ["ContextService"]


class ContextService:
    """The RPCs of context_service.proto; the gate has checked the caller."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def BuildContext(self, request: pb.BuildContextRequest, call: Call) -> pb.BuildContextResponse:
        built = await build_context(
            request.prompt,
            call.caller,
            self._ports,
            now=call.now,
            max_tokens=request.max_tokens,
            max_memories=request.max_memories,
            min_score=request.min_score,
        )
        call.note_embedding(built.embedding_s)
        call.touched([item.id for section in built.sections for item in section.items])
        return pb.BuildContextResponse(
            text=built.text,
            sections=[section_to_pb(section) for section in built.sections],
            token_count=built.token_count,
            skipped_count=built.skipped_count,
            unavailable_legs=legs_to_pb(built.unavailable_legs),
        )
