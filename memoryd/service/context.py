"""ContextService: the block of text for a prompt."""

from __future__ import annotations

from memoryd.domain.context.build import build_context
from memoryd.domain.ports import Ports
from memoryd.model.context import (
    OTHER_THREADS,
    RECALLED_MESSAGES,
    RECENT_MESSAGES,
    SECTIONS,
    THREAD_SUMMARY,
    WORKING_MEMORY,
    ContextRequest,
)
from memoryd.model.grant import Permission
from memoryd.service.gate import Call
from memoryd.v1 import context_service_pb2 as pb
from memoryd.wire.context import context_to_pb, request_from_pb

__all__ = ["ContextService"]

NEEDS = {
    WORKING_MEMORY: Permission.READ_MESSAGES,
    THREAD_SUMMARY: Permission.READ_MESSAGES,
    RECENT_MESSAGES: Permission.READ_MESSAGES,
    RECALLED_MESSAGES: Permission.SEARCH_MESSAGES,
    OTHER_THREADS: Permission.SEARCH_MESSAGES,
}
"""What a section takes besides "context"."""


class ContextService:
    """The RPCs of context_service.proto; the gate has checked the caller."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def BuildContext(self, request: pb.BuildContextRequest, call: Call) -> pb.BuildContextResponse:
        asked = request_from_pb(request)
        built = await build_context(asked, call.caller, self._ports, now=call.now, allowed=_allowed(asked, call))
        call.note_embedding(built.embedding_s)
        call.touched([item.id for section in built.sections for item in section.items])
        return context_to_pb(built)


def _allowed(asked: ContextRequest, call: Call) -> list[str]:
    """Return the sections that a caller may have; PermissionDenied if one is asked for that is not among them."""
    if asked.thread_id:
        call.session.require(Permission.READ_MESSAGES)
    for name in asked.sections:
        if name in NEEDS:
            call.session.require(NEEDS[name])
    permissions = call.session.permissions
    return [name for name in SECTIONS if name not in NEEDS or NEEDS[name] in permissions]
