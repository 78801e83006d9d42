"""
The application: a path for each method of the services that a sandbox may call, and nothing else by hand.

It asks the daemon over its shared socket with the token that came, so the gate decides as it does for gRPC.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from starlette.types import Receive, Scope, Send

from memoryd.http.failures import Failure, of_call
from memoryd.model import limits
from memoryd.v1 import (
    context_service_pb2,
    conversation_service_pb2,
    entity_service_pb2,
    identity_service_pb2,
    memory_service_pb2,
    note_service_pb2,
)
from memoryd.web.bodies import Refused, whole_body
from memoryd.web.names import host_of

__all__ = ["FILES", "Door", "methods"]

FILES = (
    memory_service_pb2, note_service_pb2, entity_service_pb2, conversation_service_pb2, context_service_pb2,
    identity_service_pb2,
)  # fmt: skip
"""The services that are served: what the host alone may do is not."""
MOST_BODY = limits.MAX_MESSAGE_BYTES
LONGEST_MS = 60_000
MOST_DIGITS = 10  # of a timeout, as the protocol says
IN_THREAD = 64 * 1024  # bytes of JSON from which on it is read or written in a thread
MOST_MESSAGE = 2 * limits.MAX_MESSAGE_BYTES
TYPES = {"application/json": False, "application/proto": True}
MOST_TOLD = 300  # characters of what is wrong with a body
PASSED = ("authorization", "traceparent")
JSON = b"application/json"
CODE_OF_REFUSAL = {413: "resource_exhausted", 408: "deadline_exceeded"}


@dataclass(frozen=True, slots=True)
class Method:
    """One method of the contract."""

    path: str
    request: type[Message]
    response: type[Message]


def methods() -> Iterator[Method]:
    """Yield the methods that are served."""
    for file in FILES:
        for service in file.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
                yield Method(f"/{service.full_name}/{method.name}", request, response)


class Door:
    """An ASGI application; it opens its channel at its first call, within the event loop."""

    def __init__(self, connect: Callable[[], grpc.aio.Channel], names: Sequence[str], *, scheme: str = "http") -> None:
        """Answer requests that name one of these hosts."""
        self._connect = connect
        self._names = frozenset(name.lower() for name in names)
        self._scheme = scheme
        self._methods = {method.path: method for method in methods()}
        self._calls: dict[str, Any] = {}
        self._channel: grpc.aio.Channel | None = None
        self._openapi = (files("memoryd.http") / "openapi.json").read_bytes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            status, more, body = await self._answer(scope["method"], scope["path"], headers, receive)
        except Failure as failure:
            status, body = failure.status, failure.body()
            more = [(b"content-type", JSON)]
            more += [(name.encode(), value.encode()) for name, value in failure.headers.items()]
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [
                    *more,
                    (b"content-length", str(len(body)).encode()),
                    (b"cache-control", b"no-store"),
                    (b"x-content-type-options", b"nosniff"),
                ],
            }
        )
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                if self._channel is not None:
                    await self._channel.close()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": f"{message['type']}.complete"})

    async def _answer(
        self, verb: str, path: str, headers: dict[str, str], receive: Receive
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        self._refuse_strangers(headers)
        if path == "/openapi.json" and verb in {"GET", "HEAD"}:
            return 200, [(b"content-type", JSON)], self._openapi
        method = self._methods.get(path)
        if method is None:
            raise Failure("unimplemented", "there is no such method; /openapi.json lists all", status=404)
        if verb != "POST":
            raise Failure("unimplemented", "methods are called with POST", status=405, headers={"allow": "POST"})
        is_binary = _is_binary(headers)
        timeout_s = _timeout_s(headers)
        try:
            body = await whole_body(receive, MOST_BODY)
        except Refused as refused:
            code = CODE_OF_REFUSAL.get(refused.code, "canceled")
            reason = "LIMIT_EXCEEDED" if refused.code == 413 else "UNAVAILABLE"  # noqa: PLR2004  as Refused says it
            raise Failure.at_the_door(
                code, reason, refused.text, status=refused.code, headers={"connection": "close"}
            ) from None
        raw = await _read(method, body, is_binary=is_binary)
        try:
            answer = await self._of(path)(raw, timeout=timeout_s, metadata=_metadata(headers))
        except grpc.aio.AioRpcError as error:
            raise of_call(error) from None
        if is_binary:
            return 200, [(b"content-type", b"application/proto")], answer
        return 200, [(b"content-type", JSON)], await _written(method, answer)

    def _refuse_strangers(self, headers: dict[str, str]) -> None:
        """Raise Failure for a request that names another host, or that a page of another origin makes."""
        name, _ = host_of(headers.get("host", ""))
        if name not in self._names:
            message = "the Host is not a name of this server; memoryd http --host adds one"
            raise Failure.at_the_door("permission_denied", "PERMISSION_DENIED", message, status=421)
        origin = headers.get("origin")
        if origin is not None and origin != f"{self._scheme}://{headers['host']}":
            message = "pages of other origins may not call this server"
            raise Failure.at_the_door("permission_denied", "PERMISSION_DENIED", message)

    def _of(self, path: str) -> Any:
        call = self._calls.get(path)
        if call is None:
            if self._channel is None:
                self._channel = self._connect()
            call = self._calls[path] = self._channel.unary_unary(path)
        return call


def _is_binary(headers: dict[str, str]) -> bool:
    """Return whether a request is binary; Failure for one of another type, compression or version."""
    if headers.get("connect-protocol-version", "1") != "1":
        raise _no_message("connect-protocol-version must be 1")
    if headers.get("content-encoding", "identity") != "identity":
        raise Failure("unimplemented", "bodies are not compressed here", headers={"accept-encoding": "identity"})
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in TYPES:
        types = ", ".join(TYPES)
        raise Failure(
            "invalid_argument", f"content-type must be one of {types}", status=415, headers={"accept-post": types}
        )
    return TYPES[media]


def _timeout_s(headers: dict[str, str]) -> float:
    given = headers.get("connect-timeout-ms", "")
    if not given:
        return LONGEST_MS / 1e3
    if not (given.isascii() and given.isdecimal()) or len(given) > MOST_DIGITS:
        raise _no_message(f"connect-timeout-ms must be a number of at most {MOST_DIGITS} digits")
    return min(int(given), LONGEST_MS) / 1e3


def _metadata(headers: dict[str, str]) -> tuple[tuple[str, str], ...]:
    passed = [(name, headers[name]) for name in PASSED if name in headers]
    if not all(value.isascii() and value.isprintable() for _, value in passed):
        message = "the token is not one of memoryd"
        raise Failure.at_the_door("unauthenticated", "UNAUTHENTICATED", message, headers={"www-authenticate": "Bearer"})
    return tuple(passed)


async def _read(method: Method, body: bytes, *, is_binary: bool) -> bytes:
    """Return a request as the daemon reads it; Failure for one that is none."""
    if len(body) > IN_THREAD and not is_binary:
        return await asyncio.to_thread(_parsed, method, body, is_binary=is_binary)
    return _parsed(method, body, is_binary=is_binary)


def _parsed(method: Method, body: bytes, *, is_binary: bool) -> bytes:
    message = method.request()
    try:
        if is_binary:
            message.ParseFromString(body)
            return body
        text = body.decode().strip() or "{}"
        if not text.startswith("{"):
            raise _no_message("the body must be a JSON object")
        json_format.Parse(text, message)
    except DecodeError:
        raise _no_message("the body is no such message") from None
    except (json_format.ParseError, ValueError, RecursionError) as error:
        told = str(error).splitlines()[0].partition(" Available Fields")[0]  # the rest lists all that there are
        raise _no_message("the body is nested too deeply" if "recursion" in told else told[:MOST_TOLD]) from None
    return message.SerializeToString()


def _no_message(text: str) -> Failure:
    return Failure.at_the_door("invalid_argument", "INVALID_FIELD", text)


async def _written(method: Method, answer: bytes) -> bytes:
    """Return an answer as JSON."""
    if len(answer) > IN_THREAD:
        return await asyncio.to_thread(_as_json, method, answer)
    return _as_json(method, answer)


def _as_json(method: Method, answer: bytes) -> bytes:
    message = method.response.FromString(answer)
    return json_format.MessageToJson(message, indent=None, ensure_ascii=False).encode()
