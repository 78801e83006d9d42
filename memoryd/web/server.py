"""Running an ASGI application: connections that are bounded in number and in time, and an end in good order."""

from __future__ import annotations

import asyncio
import resource
import socket
from typing import Any, ClassVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from memoryd.web.bodies import RECEIVE_S

__all__ = ["run"]

MOST_CONNECTIONS = 512
MOST_FILES = 4096  # that this process asks to be allowed to open
GRACE_S = 5  # for calls under way when the server is to end


class BoundedConnection(H11Protocol):
    """
    A connection that sends its request in time.

    Of more than so many, the one that has waited longest for a request makes room; where none waits, the new one goes.
    """

    most = 512
    waiting: ClassVar[dict[BoundedConnection, None]] = {}
    """Those that have no request under way, the one that has waited longest first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or end at once."""
        self._timer: asyncio.TimerHandle | None = None
        if len(self.connections) >= self.most:
            longest = next(iter(self.waiting), None)
            if longest is None:
                transport.abort()
                return
            longest.stop_waiting()
            longest.transport.abort()
            self.connections.discard(longest)  # it is told only once the event loop goes on
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take in some bytes."""
        if not self.transport.is_closing():
            super().data_received(data)
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self.stop_waiting()
        if self.transport is not None:
            super().connection_lost(exc)

    def _watch(self) -> None:
        """Wait so long for the headers of a request, and no longer."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.stop_waiting()
        elif self._timer is None:
            self._timer = self.loop.call_later(RECEIVE_S, self.transport.close)
            self.waiting[self] = None

    def stop_waiting(self) -> None:
        """Wait for no request any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self.waiting.pop(self, None)


def _most_connections() -> int:
    """Return how many connections may be open: half of the files that this process may open, once that is raised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return max(16, min(MOST_CONNECTIONS, soft // 2))


def run(app: ASGIApp, opened: socket.socket, **more: Any) -> None:
    """Serve on a socket that listens until the process is told to end; `more` is uvicorn's."""
    BoundedConnection.most = _most_connections()
    config = uvicorn.Config(
        app,
        http=BoundedConnection,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        **more,
    )
    uvicorn.Server(config).run(sockets=[opened])  # once it has ended, it lets the signal be handled
