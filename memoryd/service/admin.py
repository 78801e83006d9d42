"""AdminService: for operators, on the admin socket only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from memoryd.domain.forget import collect
from memoryd.domain.ports import Ports
from memoryd.domain.settle import settle
from memoryd.identity.register import Register
from memoryd.service.gate import Call
from memoryd.v1 import admin_service_pb2 as pb

__all__ = ["AdminService"]


class AdminService:
    """The RPCs of admin_service.proto."""

    def __init__(
        self,
        ports: Ports,
        register: Register,
        ended_grace_days: float,
        describe: Callable[[], Awaitable[dict[str, Any]]],
    ) -> None:
        """Take what tells about the process; its keys are the fields of GetServerInfoResponse."""
        self._ports = ports
        self._register = register
        self._ended_grace_days = ended_grace_days
        self._describe = describe

    async def GetServerInfo(self, request: pb.GetServerInfoRequest, call: Call) -> pb.GetServerInfoResponse:  # noqa: ARG002  it asks for nothing
        return pb.GetServerInfoResponse(**await self._describe())

    async def RunGc(self, request: pb.RunGcRequest, call: Call) -> pb.RunGcResponse:
        report = await settle(collect(self._ports, now=call.now, dry_run=request.dry_run))
        grants = await settle(
            self._register.collect(call.now, grace_days=self._ended_grace_days, dry_run=request.dry_run)
        )
        return pb.RunGcResponse(
            expired_count=report.expired_count,
            superseded_count=report.superseded_count,
            deleted_count=report.deleted_count,
            request_count=report.request_count,
            dry_run=report.dry_run,
            grant_count=grants,
        )
