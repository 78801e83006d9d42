"""Where a scraper reads the figures: HTTP on a Unix socket or a loopback address, in a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from socketserver import ThreadingTCPServer, ThreadingUnixStreamServer
from typing import Any

from memoryd.errors import StartupError

__all__ = ["Endpoint", "address_of", "refuse_taken"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_PORT = 65_535
PATIENCE_S = 5.0  # for a scraper that says nothing
Address = str | tuple[str, int]


def address_of(listen: str, *, allow_remote: bool = False) -> Address:
    """Return a path, or a host and a port; StartupError where it is neither, or other hosts could reach it."""
    if listen.startswith("/"):
        return listen
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    try:
        number = int(port)
        address: IPv4Address | IPv6Address | None = ip_address(host)
    except ValueError:
        number, address = -1, None
    if address is None or not 0 <= number <= MOST_PORT:
        raise StartupError(
            f"metrics.listen is {listen!r}; it is the path of a Unix socket, or an address such as 127.0.0.1:9464"
        )
    if not address.is_loopback and not allow_remote:
        raise StartupError(f"metrics.listen is {listen}, which other hosts reach; set metrics.allow_remote if they may")
    return host, number


def refuse_taken(address: Address) -> None:
    """Raise StartupError where something listens at an address, or has the name of a socket."""
    if isinstance(address, str):
        _refuse_listener(Path(address))
        return
    with socket.socket(_family_of(address)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            raise _not_listening(address, error) from None


class Endpoint:
    """Serves one text, made anew for each request, in a thread for each."""

    def __init__(self, address: Address, text: Callable[[], bytes], on_fault: Callable[[str], None]) -> None:
        """Listen; StartupError where that cannot be. `on_fault` is told what went wrong with a request."""
        self._path = Path(address) if isinstance(address, str) else None
        handler = _handler_of(text, on_fault, is_local=self._path is not None)
        try:
            if isinstance(address, str):
                _make_room(Path(address))
                self._server: ThreadingTCPServer | ThreadingUnixStreamServer = _UnixServer(address, handler)
                Path(address).chmod(0o600)
            else:
                self._server = _server_class(address)(address, handler)
        except OSError as error:
            raise _not_listening(address, error) from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that was taken; 0 of a Unix socket."""
        return self._server.server_address[1] if isinstance(self._server, ThreadingTCPServer) else 0

    def close(self) -> None:
        """Listen no longer, and remove the socket; who is being answered is not waited for."""
        self._server.shutdown()
        self._server.server_close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)


class _UnixServer(ThreadingUnixStreamServer):
    daemon_threads = True


def _not_listening(address: Address, error: OSError) -> StartupError:
    shown = address if isinstance(address, str) else ":".join(map(str, address))
    return StartupError(f"cannot listen on metrics.listen {shown}: {error.strerror}")


def _make_room(path: Path) -> None:
    """Make room for a socket, and remove one that a daemon has left; StartupError as of `_refuse_listener`."""
    _refuse_listener(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)


def _refuse_listener(path: Path) -> None:
    """Raise StartupError where something listens at a path, or where it is no socket."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                raise StartupError(f"metrics.listen is {path}, where something listens already; name another path")
    elif path.exists() or path.is_symlink():
        raise StartupError(f"metrics.listen is {path}, which is there and no socket; name another path")


def _family_of(address: tuple[str, int]) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


def _server_class(address: tuple[str, int]) -> type[ThreadingTCPServer]:
    class Server(ThreadingTCPServer):
        daemon_threads = True
        address_family = _family_of(address)
        allow_reuse_address = True

    return Server


def _handler_of(
    text: Callable[[], bytes], on_fault: Callable[[str], None], *, is_local: bool
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_S
        server_version, sys_version = "memoryd", ""

        def do_GET(self) -> None:
            host = self.headers.get("Host", "").rpartition(":")[0].strip("[]") or self.headers.get("Host", "")
            if self.path.partition("?")[0] not in {"/", "/metrics"}:
                return self._answer(HTTPStatus.NOT_FOUND, b"the figures are at /metrics\n")
            if not is_local and not _is_address(host):  # a page in a browser that was led here by its own name
                return self._answer(HTTPStatus.FORBIDDEN, b"name this host by its address\n")
            try:
                body = text()
            except Exception as error:  # noqa: BLE001  the next scrape is another one
                on_fault(type(error).__name__)
                return self._answer(HTTPStatus.SERVICE_UNAVAILABLE, b"the figures cannot be read now\n")
            return self._answer(HTTPStatus.OK, body)

        def _answer(self, status: HTTPStatus, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def address_string(self) -> str:
            return ""

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name of the library's
            """Say nothing: who scrapes does it every few seconds."""

    return Handler


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return host == "localhost"
    return True
