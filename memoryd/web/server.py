"""Running an ASGI application: connections that are bounded in number and in time, and an end in good order."""

from __future__ import annotations

import asyncio
import fcntl
import functools
import resource
import socket
import ssl
import termios
from array import array
from contextlib import suppress
from typing import Any, ClassVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from memoryd.web.bodies import RECEIVE_S

__all__ = ["run"]

MOST_CONNECTIONS = 512
MOST_FILES = 4096  # that this process asks to be allowed to open
GRACE_S = 5  # for calls under way when the server is to end
HANDSHAKE_S = 5.0  # of TLS, and for its end; an honest one takes some milliseconds
MOST_HANDSHAKES = 1024  # under way at once; of more, the oldest makes room: an honest one is young
PAUSE_S = 0.1  # before the next connection is taken where no file can be opened


class BoundedConnection(H11Protocol):
    """
    A connection that sends its request in time, and takes its answer in time.

    Of more than so many, the one makes room that has waited longest, for a request or for its answer to be taken; where
    none waits, the new one goes.
    """

    most = 512
    waiting: ClassVar[dict[BoundedConnection, None]] = {}
    """Those that have no request under way, the one that has waited longest first."""
    draining: ClassVar[dict[BoundedConnection, None]] = {}
    """Those whose answer waits to be taken; they make room where none waits for a request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or end at once."""
        self._timer: asyncio.TimerHandle | None = None
        self._drain: asyncio.TimerHandle | None = None
        if len(self.connections) >= self.most:
            longest = next(iter(self.waiting), None) or next(iter(self.draining), None)
            if longest is None:
                transport.abort()
                return
            longest.stop_waiting()
            longest.stop_draining()
            longest.end()
            self.connections.discard(longest)  # it is told only once the event loop goes on
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take in some bytes."""
        if not self.transport.is_closing():
            super().data_received(data)
            self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the end of one that is to be the last."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """Wait so long until some of the answer was taken, and no longer."""
        super().pause_writing()
        if self._drain is None:
            self._await_taking(self._untaken())
            self.draining[self] = None

    def _await_taking(self, left: int) -> None:
        """Look after a while whether less is left of the answer, and end the connection where it is not."""
        self._drain = self.loop.call_later(RECEIVE_S, self._look_at_taking, left)

    def _look_at_taking(self, before: int) -> None:
        left = self._untaken()
        if left < before:
            self._await_taking(left)
        else:
            self.transport.abort()

    def resume_writing(self) -> None:
        """Go on with the answer."""
        super().resume_writing()
        self.stop_draining()
        if self._timer is not None:  # the time for the next request begins now
            self._timer.cancel()
            self._timer = self.loop.call_later(RECEIVE_S, self._expire)

    def _untaken(self) -> int:
        """Return how many bytes of answers the other side has not taken: here, and in the kernel."""
        queued = array("i", [0])
        with suppress(OSError):
            fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, queued)  # SIOCOUTQ
        return self.transport.get_write_buffer_size() + queued[0]

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self.stop_waiting()
        self.stop_draining()
        if self.transport is not None:
            super().connection_lost(exc)

    def _watch(self) -> None:
        """Wait so long for the headers of a request, and no longer."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.stop_waiting()
        elif self._timer is None:
            self._timer = self.loop.call_later(RECEIVE_S, self._expire)
            self.waiting[self] = None

    def _expire(self) -> None:
        """End a connection that has waited too long; one whose answer is being taken waits on."""
        if self._drain is None:
            self.end()
        else:
            self._timer = self.loop.call_later(RECEIVE_S, self._expire)

    def end(self) -> None:
        """End it: what the kernel has of an answer is still sent; close() would wait for who never reads the rest."""
        if self.scheme == "https" or self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def stop_waiting(self) -> None:
        """Wait for no request any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self.waiting.pop(self, None)

    def stop_draining(self) -> None:
        """Wait for no answer to be taken any more."""
        if self._drain is not None:
            self._drain.cancel()
            self._drain = None
            self.draining.pop(self, None)


class BoundedServer(uvicorn.Server):
    """A server that takes connections by itself, so that handshakes of TLS are bounded as well."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise SystemExit(uvicorn.config.STARTUP_FAILURE)
        self.servers = []
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._taking = [asyncio.create_task(self._take(opened)) for opened in sockets or []]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more, and let those under way end."""
        for task in (*self._taking, *self._handshakes):
            task.cancel()
        await super().shutdown(sockets)

    async def _take(self, opened: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        opened.setblocking(False)
        while True:
            try:
                taken, _ = await loop.sock_accept(opened)
            except OSError:  # no file can be opened, or the caller has left
                await asyncio.sleep(PAUSE_S)
                continue
            await asyncio.sleep(0)  # sock_accept does not wait where one is there, and others have their turn
            if self.config.ssl is not None and len(self._handshakes) >= MOST_HANDSHAKES:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]
                oldest.cancel()
            task = asyncio.create_task(self._begin(taken))
            self._handshakes[task] = None
            task.add_done_callback(functools.partial(self._begun, taken))

    async def _begin(self, taken: socket.socket) -> None:
        """Hand a connection on, once its handshake is done; one that fails is dropped without a word."""
        taken.setblocking(False)
        secured = self.config.ssl
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._connection, taken, ssl=secured,
                ssl_handshake_timeout=HANDSHAKE_S if secured else None,
                ssl_shutdown_timeout=HANDSHAKE_S if secured else None,
            )  # fmt: skip
        except (OSError, ssl.SSLError):
            taken.close()

    def _begun(self, taken: socket.socket, task: asyncio.Task[None]) -> None:
        self._handshakes.pop(task, None)
        if task.cancelled():  # maybe before its first step
            taken.close()

    def _connection(self) -> BoundedConnection:
        return BoundedConnection(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state, _loop=None
        )


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
        ws="none",
        log_level="error",  # what strangers send is no matter for a log
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        **more,
    )
    BoundedServer(config).run(sockets=[opened])  # once it has ended, it lets the signal be handled
