"""
The protocol's streamable HTTP: on loopback or a Unix socket, and for every request a token of memoryd.

Other hosts reach it through a proxy that ends TLS. Host and Origin are checked, so that no web page can call it.
"""

from __future__ import annotations

import os
import sys

from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from memory_client import Credentials
from memory_client.endpoint import is_admin, resolve_endpoint
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_mcp.callers import ByToken, DaemonAway, TooManyCalls
from memory_mcp.server import make_server
from memoryd.errors import InvalidArgument
from memoryd.web.bodies import Refused, whole_body
from memoryd.web.listen import Listen
from memoryd.web.names import names_of
from memoryd.web.server import run

__all__ = ["serve"]

PATH = "/mcp"
MOST_BODY = 1 << 20  # bytes: a message of 256 KiB, escaped


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
        except Refused as refused:
            await refused.response(scope, receive, send)
        else:
            await self._app(scope, request, send)

    async def _looked_at(self, scope: Scope, receive: Receive) -> Receive:
        """Return what gives the request; Refused for one that is answered here."""
        if scope["method"] != "POST":
            raise Refused(405, "this server takes POST alone", Allow="POST")
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        try:
            if scheme.lower() != "bearer" or not await self._callers.establish(token):
                return receive
        except DaemonAway:
            raise Refused(503, "memoryd is away", **{"Retry-After": "5"}) from None
        except TooManyCalls:
            raise Refused(
                429, "too many calls at once, or past the calls a second of the grant", **{"Retry-After": "1"}
            ) from None
        body = await whole_body(receive, MOST_BODY)
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def again() -> Message:
            return next(messages, None) or await receive()

        return again


def application(callers: ByToken, host: str = "127.0.0.1") -> ASGIApp:
    """Return the ASGI application for an address; requests without a token that counts get 401."""
    names = sorted(names_of(host))
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
    with listen.opened() as opened:
        print(f"memory-mcp: {listen.url_of(opened, PATH)}", file=sys.stderr, flush=True)
        run(application(ByToken(endpoint, credentials), listen.host or "localhost"), opened)
