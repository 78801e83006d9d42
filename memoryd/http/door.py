"""
The application: a path for each method of the services that a sandbox may call, and nothing else by hand.

It asks the daemon over its shared socket with the token that came, so the gate decides as it does for gRPC.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from starlette.types import Receive, Scope, Send

from memoryd.http.failures import Failure
from memoryd.http.lines import Lines, Shown
from memoryd.http.reading import parsed, refused
from memoryd.model import limits
from memoryd.service.methods import RULES, Access
from memoryd.v1 import (
    context_service_pb2,
    conversation_service_pb2,
    entity_service_pb2,
    identity_service_pb2,
    memory_service_pb2,
    note_service_pb2,
)
from memoryd.web.bodies import Ask, Refused, whole_body
from memoryd.web.names import host_of
from memoryd.wire.contract import writes_of

__all__ = ["FILES", "Door", "methods"]

FILES = (
    memory_service_pb2, note_service_pb2, entity_service_pb2, conversation_service_pb2, context_service_pb2,
    identity_service_pb2,
)  # fmt: skip
"""The files of the services that are served."""
MOST_BODY = limits.MAX_MESSAGE_BYTES
SWELLS = 4  # bytes of JSON for a byte of a request
LONGEST_MS = 60_000
MOST_DIGITS = 10  # of a timeout, as the protocol says
IN_THREAD = 8 * 1024  # bytes of JSON from which on it is read or written in a thread
LARGE = 64 * 1024  # bytes of a body from which on it takes a place
TYPES = {"application/json": False, "application/proto": True}
LITTLE = 8 * 1024  # bytes of a body that are taken of someone whose token has not counted yet
MOST_PARTS_OF_STRANGERS = 256  # and how many parts may be in them
AUTHORIZATION, TRACE = "authorization", "traceparent"
WHOLE = re.compile(r"https?://[^/?#]*")
SAMPLED = re.compile(r"([0-9a-f-]{53})[0-9a-f]{2}")  # only the host has calls sampled
ONCE = frozenset({AUTHORIZATION, "host", "origin", "content-type", "content-encoding", "connect-timeout-ms"})
WHO_AM_I = "/memoryd.v1.IdentityService/WhoAmI"
JSON = b"application/json"
TOO_LARGE = 413
CODE_OF_REFUSAL = {TOO_LARGE: "resource_exhausted", 408: "deadline_exceeded"}


@dataclass(frozen=True, slots=True)
class Method:
    """One method of the contract."""

    path: str
    request: type[Message]
    response: type[Message]
    writes: bool
    most_bytes: int
    """Of a body: JSON takes more than what it says."""


def methods() -> Iterator[Method]:
    """Yield the methods that are served: those of the services but what the host alone may do."""
    for file in FILES:
        for service in file.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                rule = RULES[f"{service.name}/{method.name}"]
                if rule.needs is Access.HOST:
                    continue
                request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
                yield Method(
                    f"/{service.full_name}/{method.name}",
                    request,
                    response,
                    writes_of(method),
                    min(MOST_BODY, SWELLS * rule.most_bytes),
                )


class Door:
    """An ASGI application; it opens its channel at its first call, within the event loop."""

    def __init__(
        self, connect: Callable[[], grpc.aio.Channel], target: str, names: Sequence[str], schemes: Sequence[str]
    ) -> None:
        """
        Answer requests that name one of these hosts; a page of it is reached by one of the schemes.

        No names: any, on a Unix socket, which no web page reaches by another name.
        """
        self._lines = Lines(connect, target)
        self._names = frozenset(name.lower() for name in names)
        self._schemes = tuple(schemes)
        self._methods = {method.path: method for method in methods()}
        self._openapi = (files("memoryd.http") / "openapi.json").read_bytes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            headers = _headers(scope["headers"])
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
                await self._lines.close()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": f"{message['type']}.complete"})

    async def _answer(
        self, verb: str, path: str, headers: dict[str, str], receive: Receive
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        self._refuse_strangers(headers)
        whole = WHOLE.match(path)  # as for a proxy
        path = path[whole.end() :] if whole else path
        if path == "/openapi.json":
            if verb not in {"GET", "HEAD"}:
                raise Failure("unimplemented", "it is got with GET", status=405, headers={"allow": "GET, HEAD"})
            return 200, [(b"content-type", JSON)], self._openapi
        method = self._methods.get(path)
        if method is None:
            raise Failure("unimplemented", "there is no such method; /openapi.json lists all", status=404)
        if verb != "POST":
            raise Failure("unimplemented", "methods are called with POST", status=405, headers={"allow": "POST"})
        is_binary = _is_binary(headers)
        end = time.monotonic() + _timeout_s(headers)
        shown = Shown.read(headers.get(AUTHORIZATION, ""))
        trace = _trace(headers)
        with self._lines.request(shown), ExitStack() as held:
            places: list[None] = []

            async def ask(size: int) -> None:
                """Take no more than a little of who is not known, and have a place for what is large."""
                if size > LITTLE and not self._lines.is_known(shown):
                    await self._lines.call(WHO_AM_I, b"", end, shown)
                if size > LARGE and not places:
                    places.append(held.enter_context(self._lines.large(shown)))

            body = await _whole(receive, method.most_bytes, ask)
            if body.count(b",") > MOST_PARTS_OF_STRANGERS and not self._lines.is_known(shown):
                await self._lines.call(WHO_AM_I, b"", end, shown)
            try:
                raw = await _read(method, body, is_binary=is_binary)
            except Failure:
                await self._lines.call(WHO_AM_I, b"", end, shown)  # so that it is charged for
                raise
            answer = await _unless_left(self._lines.call(path, raw, end, shown, trace, writes=method.writes), receive)
            if is_binary:
                return 200, [(b"content-type", b"application/proto")], answer
            return 200, [(b"content-type", JSON)], await _written(method, answer)

    def _refuse_strangers(self, headers: dict[str, str]) -> None:
        """Raise Failure for a request that names another host, or that a page of another origin makes."""
        name, port = host_of(headers.get("host", ""))
        if self._names and (name not in self._names or not (port.isdecimal() or not port)):
            message = "the Host is not a name of this server; memoryd http --host adds one"
            raise Failure.at_the_door("permission_denied", "PERMISSION_DENIED", message, status=421)
        origin = headers.get("origin")
        if origin is not None and origin not in {f"{scheme}://{headers.get('host')}" for scheme in self._schemes}:
            message = "pages of other origins may not call this server"
            raise Failure.at_the_door("permission_denied", "PERMISSION_DENIED", message)


def _headers(given: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers; Failure where one that counts here is there twice: a proxy may have read the other."""
    headers: dict[str, str] = {}
    for raw_name, value in given:
        name = raw_name.decode("latin-1")
        if name in headers and name in ONCE:
            raise refused(f"the header {name} is there twice")
        headers[name] = value.decode("latin-1")
    return headers


def _is_binary(headers: dict[str, str]) -> bool:
    """Return whether a request is binary; Failure for one of another type, compression or version."""
    if headers.get("connect-protocol-version", "1") != "1":
        raise refused("connect-protocol-version must be 1")
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
        raise refused(f"connect-timeout-ms must be a number of at most {MOST_DIGITS} digits")
    return min(int(given), LONGEST_MS) / 1e3


def _trace(headers: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the trace that a call belongs to; only the host has calls sampled."""
    told = SAMPLED.fullmatch(headers.get(TRACE, ""))
    return ((TRACE, f"{told[1]}00"),) if told else ()


async def _unless_left(call: Coroutine[Any, Any, bytes], receive: Receive) -> bytes:
    """Return the answer of a call, which ends where its caller leaves."""
    calling = asyncio.ensure_future(call)
    leaving = asyncio.ensure_future(receive())  # what comes next is that the caller has left
    leaving.add_done_callback(lambda _: calling.cancel())
    try:
        return await calling
    except asyncio.CancelledError:
        if leaving.done() and not leaving.cancelled():
            raise Failure("canceled", "the caller has left") from None
        raise
    finally:
        leaving.cancel()
        calling.cancel()


async def _whole(receive: Receive, most: int, ask: Ask) -> bytes:
    """Return a body; Failure for one that does not arrive, or that may not."""
    try:
        return await whole_body(receive, most, ask)
    except Refused as refusal:
        code = CODE_OF_REFUSAL.get(refusal.code, "canceled")
        reason, limit = ("LIMIT_EXCEEDED", "request_bytes") if refusal.code == TOO_LARGE else ("UNAVAILABLE", "")
        closing = {"connection": "close"}
        raise Failure.at_the_door(
            code, reason, refusal.text, limit=limit, status=refusal.code, headers=closing
        ) from None


async def _read(method: Method, body: bytes, *, is_binary: bool) -> bytes:
    """Return a request as the daemon reads it; Failure for one that is none."""
    if is_binary:
        return body  # which is read there
    if len(body) > IN_THREAD:
        return await asyncio.to_thread(_from_json, method, body)
    return _from_json(method, body)


def _from_json(method: Method, body: bytes) -> bytes:
    return parsed(method.request, body).SerializeToString()


async def _written(method: Method, answer: bytes) -> bytes:
    """Return an answer as JSON."""
    if len(answer) > IN_THREAD:
        return await asyncio.to_thread(_as_json, method, answer)
    return _as_json(method, answer)


def _as_json(method: Method, answer: bytes) -> bytes:
    message = method.response.FromString(answer)
    return json_format.MessageToJson(message, indent=None, ensure_ascii=False).encode()
