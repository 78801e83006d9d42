"""
The protocol's streamable HTTP: on loopback or a Unix socket, and for every request a token of memoryd.

Other hosts reach it through a proxy that ends TLS. Host and Origin are checked, so that no web page can call it.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import sys
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import uvicorn
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from memory_client import Credentials
from memory_client.endpoint import is_admin, resolve_endpoint
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from memory_mcp.callers import ByToken, DaemonAway, TooManyCalls
from memory_mcp.server import make_server
from memoryd.errors import InvalidArgument

__all__ = ["Listen", "serve"]

PATH = "/mcp"
MOST_BODY = 1 << 20  # bytes: a message of 256 KiB, escaped
RECEIVE_S = 10.0  # for headers, and for a body, as in the daemon
MOST_CONNECTIONS = 512
MOST_FILES = 4096  # that this process asks to be allowed to open
GRACE_S = 5  # for calls under way when the server is to end
MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen: an address of loopback and a port, 0 for any that is free, or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def read(cls, text: str) -> Listen:
        """Return the place of `unix:/path` or `127.0.0.1:8765`; InvalidArgument for one that others reach."""
        if text.startswith("unix:"):
            path = text.removeprefix("unix:")
            path = path.removeprefix("//") if path.startswith("//") else path
            if not path.startswith("/"):
                raise InvalidArgument(f"--listen {text} must be unix:/absolute/path", field="listen")
            return cls(path=path)
        host, _, port = text.rpartition(":")
        host = "127.0.0.1" if host == "localhost" else host.strip("[]")
        if not port.isdecimal() or int(port) > MAX_PORT:
            raise InvalidArgument(f"--listen {text} is neither unix:/path nor 127.0.0.1:PORT", field="listen")
        try:
            loops = ip_address(host).is_loopback
        except ValueError:
            loops = False
        if not loops:
            raise InvalidArgument(
                f"--listen {text} would be reached from other hosts, without TLS; listen on 127.0.0.1 or a Unix socket,"
                " and let a proxy that ends TLS stand before it",
                field="listen",
            )
        return cls(host=host, port=int(port))

    def open(self) -> socket.socket:
        """Return a socket that listens there, a Unix socket for this user alone."""
        if not self.path:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            opened = socket.socket(family, proto=socket.IPPROTO_TCP)  # without it asyncio sets no TCP_NODELAY: 40 ms
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind((self.host, self.port))
            return opened
        opened = socket.socket(socket.AF_UNIX)
        if Path(self.path).is_socket():
            _remove_stale(self.path)
        before = os.umask(0o177)
        try:
            opened.bind(self.path)
        finally:
            os.umask(before)
        return opened

    def url_of(self, opened: socket.socket) -> str:
        """Return what to put into a host's configuration."""
        if self.path:
            return f"unix:{self.path}, path {PATH}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{opened.getsockname()[1]}{PATH}"


def _remove_stale(path: str) -> None:
    """Remove the socket of a server that has ended; InvalidArgument where one still answers."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            Path(path).unlink(missing_ok=True)
            return
    raise InvalidArgument(f"--listen unix:{path}: another server listens there", field="listen")


class Doorkeeper:
    """
    Looks at each request before the protocol's library does: its method, its token, and that its body arrives.

    GET would hold a stream open for nothing, as this server has nothing to say unasked. A token that does not count
    goes on to the library, which answers 401.
    """

    def __init__(self, app: ASGIApp, callers: ByToken) -> None:
        """Stand before an application."""
        self._app = app
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            request = await self._looked_at(scope, receive)
        except _Refused as refused:
            await refused.response(scope, receive, send)
        else:
            await self._app(scope, request, send)

    async def _looked_at(self, scope: Scope, receive: Receive) -> Receive:
        """Return what gives the request; _Refused for one that is answered here."""
        if scope["method"] != "POST":
            raise _Refused(405, "this server takes POST alone", Allow="POST")
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        try:
            if scheme.lower() != "bearer" or not await self._callers.establish(token):
                return receive
        except DaemonAway:
            raise _Refused(503, "memoryd is away", **{"Retry-After": "5"}) from None
        except TooManyCalls:
            raise _Refused(429, "the grant is past its calls a second", **{"Retry-After": "1"}) from None
        try:
            async with asyncio.timeout(RECEIVE_S):
                body = await _body(receive)
        except TimeoutError:
            raise _Refused(408, f"the request did not arrive within {RECEIVE_S:.0f} s", Connection="close") from None
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def again() -> Message:
            return next(messages, None) or await receive()

        return again


class _Refused(Exception):
    """A request that is answered before the protocol's library sees it."""

    def __init__(self, code: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.response = Response(text, status_code=code, headers=headers)


async def _body(receive: Receive) -> bytes:
    """Return a whole body; _Refused for one that is too large."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _Refused(400, "the request was broken off")
        body += message.get("body", b"")
        if len(body) > MOST_BODY:
            raise _Refused(413, f"the request has more than {MOST_BODY} bytes", Connection="close")
        if not message.get("more_body", False):
            return bytes(body)


class BoundedConnection(H11Protocol):
    """A connection that sends its request in time; of more than so many the others are closed at once."""

    most = 512

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or end at once."""
        self._timer: asyncio.TimerHandle | None = None
        if len(self.connections) >= self.most:
            transport.abort()
            return
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take in some bytes."""
        if not self.transport.is_closing():
            super().data_received(data)
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop()
        if self.transport is not None:
            super().connection_lost(exc)

    def _watch(self) -> None:
        """Wait so long for the headers of a request, and no longer."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(RECEIVE_S, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _connections() -> int:
    """Return how many connections may be open: half of the files that this process may open, once that is raised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return max(16, min(MOST_CONNECTIONS, soft // 2))


def application(callers: ByToken, host: str = "127.0.0.1") -> ASGIApp:
    """Return the ASGI application for an address; requests without a token that counts get 401."""
    names = dict.fromkeys(("127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host))
    app = make_server(callers).streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MOST_BODY,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[*names, *(f"{name}:*" for name in names)],
            allowed_origins=[*(f"http://{name}" for name in names), *(f"http://{name}:*" for name in names)],
        ),
        token_verifier=callers,
        # The token is one of memoryd, which the daemon checks with its audience; no authorization server issues it.
        auth=AuthSettings(
            issuer_url=AnyHttpUrl("http://localhost"), resource_server_url=None, validate_token_resource=False
        ),
    )
    return Doorkeeper(app, callers)


def serve(listen: Listen, endpoint: str | None, credentials: Credentials | None = None) -> None:
    """Serve until the process is told to end; InvalidArgument where the endpoint is a socket that asks for no token."""
    target = resolve_endpoint(endpoint, os.environ)
    if is_admin(target):
        raise InvalidArgument(
            f"{target} is the admin socket, where whoever calls is the host; name the shared socket or host:port with"
            " --endpoint or MEMORY_ENDPOINT",
            field="endpoint",
        )
    opened = listen.open()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn, once it has ended, lets the signal be handled
    try:
        opened.listen(socket.SOMAXCONN)
        print(f"memory-mcp: {listen.url_of(opened)}", file=sys.stderr, flush=True)
        BoundedConnection.most = _connections()
        config = uvicorn.Config(
            application(ByToken(endpoint, credentials), listen.host or "localhost"),
            http=BoundedConnection,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
        )
        uvicorn.Server(config).run(sockets=[opened])
    finally:
        opened.close()
        if listen.path:
            Path(listen.path).unlink(missing_ok=True)
