"""
The protocol's streamable HTTP: on loopback or a Unix socket, and for every request a token of memoryd.

Other hosts reach it through a proxy that ends TLS. Host and Origin are checked, so that no web page can call it.
"""

from __future__ import annotations

import os
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
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_mcp.callers import ByToken, DaemonAway
from memory_mcp.server import make_server
from memoryd.errors import InvalidArgument

__all__ = ["Listen", "serve"]

PATH = "/mcp"
MOST_BODY = 1 << 20  # bytes: a message of 256 KiB, escaped
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
    Refuses what would hold a stream open for nothing: this server has nothing to say unasked.

    While no one can say whether a token counts, it answers 503.
    """

    def __init__(self, app: ASGIApp, callers: ByToken) -> None:
        """Stand before an application."""
        self._app = app
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] != "POST":
            refusal = Response("this server takes POST alone", status_code=405, headers={"Allow": "POST"})
            await refusal(scope, receive, send)
        elif await self._is_away(Headers(scope=scope).get("authorization", "")):
            away = Response("memoryd is away", status_code=503, headers={"Retry-After": "5"})
            await away(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _is_away(self, shown: str) -> bool:
        scheme, _, token = shown.partition(" ")
        try:
            if scheme.lower() == "bearer" and token:
                await self._callers.verify_token(token)  # the application's own look finds it remembered
        except DaemonAway:
            return True
        return False


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
        config = uvicorn.Config(
            application(ByToken(endpoint, credentials), listen.host or "localhost"),
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
