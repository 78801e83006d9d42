"""Where a server of HTTP listens: on loopback, or a Unix socket for this user alone."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from memoryd.errors import InvalidArgument
from memoryd.web.names import in_address

__all__ = ["Listen"]

MAX_PORT = 65_535
PROBE_S = 1.0  # to find out whether a server listens


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen: an address of loopback and a port, 0 for any that is free, or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def read(cls, text: str, *, to_others: bool = False) -> Listen:
        """
        Return the place of `unix:/path` or `127.0.0.1:8765`.

        InvalidArgument for one that other hosts reach, unless that is meant: `to_others`, with TLS.
        """
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
            raise InvalidArgument(
                f"--listen {text} names no address of this machine: it must be unix:/path or 127.0.0.1:PORT",
                field="listen",
            ) from None
        if not loops and not to_others:
            raise InvalidArgument(
                f"--listen {text} would be reached from other hosts, without TLS; listen on 127.0.0.1 or a Unix socket,"
                " and let a proxy that ends TLS stand before it",
                field="listen",
            )
        return cls(host=host, port=int(port))

    @contextmanager
    def opened(self) -> Iterator[socket.socket]:
        """
        Listen there as long as the block lasts, on a Unix socket for this user alone; InvalidArgument where it cannot.

        Until a server takes over, SIGTERM ends the block too, and the path of a Unix socket goes with it.
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            made = self._opened()
            made.listen(socket.SOMAXCONN)
        except OSError as error:
            where = f"unix:{self.path}" if self.path else f"{self.host}:{self.port}"
            raise InvalidArgument(f"--listen {where}: {error.strerror or error}", field="listen") from None
        inode = _inode(self.path)
        try:
            yield made
        finally:
            made.close()
            if self.path and _inode(self.path) == inode:  # else it is another server's meanwhile
                Path(self.path).unlink(missing_ok=True)

    def _opened(self) -> socket.socket:
        if not self.path:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            opened = socket.socket(family, proto=socket.IPPROTO_TCP)  # without it asyncio sets no TCP_NODELAY: 40 ms
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind((self.host, self.port))
            return opened
        if Path(self.path).is_socket():
            _remove_stale(self.path)
        opened = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            opened.bind(self.path)
        finally:
            os.umask(before)
        return opened

    def url_of(self, opened: socket.socket, at: str = "/", *, scheme: str = "http") -> str:
        """Return where a client finds a path of the server."""
        if self.path:
            return f"unix:{self.path}, path {at}"
        return f"{scheme}://{in_address(self.host)}:{opened.getsockname()[1]}{at}"


def _inode(path: str) -> int:
    """Return which file a path names; 0 for none."""
    try:
        return os.lstat(path).st_ino if path else 0
    except FileNotFoundError:
        return 0


def _remove_stale(path: str) -> None:
    """Remove the socket of a server that has ended; InvalidArgument where one still answers, or may do so."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_S)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            Path(path).unlink(missing_ok=True)
            return
        except (TimeoutError, BlockingIOError):
            pass  # one that has no time for us is one
    raise InvalidArgument(f"--listen unix:{path}: another server listens there", field="listen")
