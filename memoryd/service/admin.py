"""AdminService: for operators, on the admin socket only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from memoryd.domain.forget import collect
from memoryd.domain.ports import Ports
from memoryd.domain.settle import settle
from memoryd.service.calls import answer
from memoryd.v1 import admin_service_pb2 as pb
from memoryd.v1 import admin_service_pb2_grpc

__all__ = ["AdminService"]


class AdminService(admin_service_pb2_grpc.AdminServiceServicer):
    """The admin socket's own RPCs."""

    def __init__(
        self, ports: Ports, clock: Callable[[], datetime], describe: Callable[[], Awaitable[dict[str, Any]]]
    ) -> None:
        """Take what tells about the process; its keys are the fields of GetServerInfoResponse."""
        self._ports = ports
        self._clock = clock
        self._describe = describe

    async def GetServerInfo(
        self,
        request: pb.GetServerInfoRequest,  # noqa: ARG002  it asks for nothing
        context: Any,
    ) -> pb.GetServerInfoResponse:
        async def work() -> pb.GetServerInfoResponse:
            return pb.GetServerInfoResponse(**await self._describe())

        return await answer("GetServerInfo", context, work())

    async def RunGc(self, request: pb.RunGcRequest, context: Any) -> pb.RunGcResponse:
        async def work() -> pb.RunGcResponse:
            report = await settle(collect(self._ports, now=self._clock(), dry_run=request.dry_run))
            return pb.RunGcResponse(
                expired_count=report.expired_count,
                superseded_count=report.superseded_count,
                deleted_count=report.deleted_count,
                request_count=report.request_count,
                dry_run=report.dry_run,
            )

        return await answer("RunGc", context, work())
