"""Messages that are no messages: refused with a reason like every other bad request, not as an unknown fault."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from memoryd.errors import InvalidArgument
from memoryd.service.calls import answer

__all__ = ["Parsing"]


class Parsing(grpc.aio.ServerInterceptor):
    """Parses the requests of memoryd's services inside the call, where an error has its mapping."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the handler with its parser moved into the call."""
        handler = await continuation(handler_call_details)
        path = handler_call_details.method
        if handler is None or handler.unary_unary is None or not path.startswith("/memoryd."):
            return handler

        async def call(raw: bytes, context: Any) -> Any:
            try:
                request = handler.request_deserializer(raw)
            except (DecodeError, UnicodeDecodeError):
                await answer(path.rpartition("/")[2], context, _refuse())
            return await handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(
            call, request_deserializer=None, response_serializer=handler.response_serializer
        )


async def _refuse() -> None:
    raise InvalidArgument("the request is not the message that this method takes")
