"""
The sockets of sandboxes: one server each, so that the socket says who calls.

A directory a sandbox lies in a directory that only the daemon's user may enter; it is mounted, read-only, into the
sandbox, and outlives restarts of the daemon, as a mount holds on to the directory that it was made of. The socket is
bound and opened to everyone in a place that is never mounted, and then moved into it: the move replaces whatever lies
there and follows no link.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import resource
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from memoryd.errors import LimitExceeded, Unavailable
from memoryd.identity.socket_lease import MAX_PATH_BYTES, SocketRefused
from memoryd.model.grant import Grant

__all__ = ["SOCKET", "Listeners", "Server", "check_directory", "most_connections", "raise_descriptor_limit"]

SOCKET = "memory.sock"
_PLACE_OF_BINDING = ".new"
UNBOUND_CONNECTIONS = 256  # of a grant whose quota names no number
_GRANT_ID = re.compile(r"[a-z2-7]{26}")
RESERVED_DESCRIPTORS = 512  # the daemon's own files, threads, the admin socket's connections


class Server(Protocol):
    """A server that may be bound to one path."""

    async def start(self) -> None:
        """Serve."""
        ...

    async def stop(self, grace: float | None) -> None:
        """Take no more calls, and cut those that are not done within the grace (None: at once)."""
        ...


def raise_descriptor_limit() -> int:
    """Let the process open as many files as the system allows it, and return how many that is."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class Listeners:
    """What is open, by grant."""

    def __init__(
        self,
        directory: Path,
        make_server: Callable[[Grant, str], Server],
        *,
        descriptor_limit: int,
        reserved: int = RESERVED_DESCRIPTORS,
    ) -> None:
        """Take the directory, which no one else may use; make_server binds a server to a gRPC address."""
        self.directory = directory.absolute()
        self._make_server = make_server
        self._left = descriptor_limit - reserved
        self._open: dict[str, tuple[Server, int]] = {}
        self._lock = -1

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def take(self) -> None:
        """Make the directory and lock it; SocketRefused if it cannot be used."""
        check_directory(self.directory)
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_directory(self.directory)
            self._lock = os.open(self.directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(self.directory / _PLACE_OF_BINDING, ignore_errors=True)
            (self.directory / _PLACE_OF_BINDING).mkdir(mode=0o700)
        except BlockingIOError:
            self.let_go()
            raise SocketRefused(
                f"{self.directory} is used by another memoryd; stop it, or name another sandbox.directory"
            ) from None
        except OSError as error:
            self.let_go()
            raise SocketRefused(
                f"cannot use {self.directory}: {error.strerror}; name another sandbox.directory"
            ) from None

    def folder(self, grant_id: str) -> Path:
        """Return the directory to mount for a grant."""
        return self.directory / grant_id

    def is_open(self, grant_id: str) -> bool:
        """Whether a grant's socket is there."""
        return grant_id in self._open

    def check_room(self, grant: Grant) -> None:
        """Raise LimitExceeded if there are not enough descriptors for a socket and its connections."""
        needed = _descriptors(grant)
        if needed > self._left:
            raise LimitExceeded(
                f"a socket with {most_connections(grant)} connections needs {needed} file descriptors and {self._left}"
                " are left; close other sandboxes, allow fewer connections, or raise the limit (LimitNOFILE)",
                limit="descriptors",
            )

    async def open(self, grant: Grant) -> Path:
        """Open a grant's socket and return the directory to mount; LimitExceeded, or Unavailable if it cannot be."""
        self.check_room(grant)
        folder, made = self.folder(grant.id), self.directory / _PLACE_OF_BINDING / grant.id
        mounted = folder.exists()  # from before a restart: its mounts hold on to it
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                raise Unavailable(f"{folder} is no directory of this user; remove it")
            server = self._make_server(grant, f"unix:{made}")
            await server.start()
            self._open[grant.id] = server, _descriptors(grant)
            self._left -= _descriptors(grant)
            made.chmod(0o666)  # everyone who sees it may use it; who sees it is decided by the mount
            made.replace(folder / SOCKET)
            folder.chmod(0o755)
        except (OSError, RuntimeError) as error:
            await self.close(grant.id, forget=not mounted)
            why = error.strerror if isinstance(error, OSError) else "it cannot be bound"
            raise Unavailable(f"cannot open the socket of grant {grant.id[:8]}: {why}") from None
        return folder

    async def close(self, grant_id: str, *, forget: bool, grace_s: float | None = None) -> None:
        """
        Close a grant's socket and cut the calls that are not done within the grace.

        With `forget` the directory goes as well; without it the sandbox finds the socket again after a restart.
        """
        server, descriptors = self._open.pop(grant_id, (None, 0))
        self._left += descriptors
        if forget:
            self._remove(self.folder(grant_id))
        if server is not None:
            await server.stop(grace_s)

    @staticmethod
    def _remove(folder: Path) -> None:
        with contextlib.suppress(OSError):  # what cannot be removed leads nowhere once its server has stopped
            (folder / SOCKET).unlink(missing_ok=True)
            folder.rmdir()

    @property
    def open_ids(self) -> list[str]:
        """The grants whose sockets are open."""
        return list(self._open)

    def forget_others(self, kept: set[str]) -> None:
        """Remove what earlier runs left of grants that have no socket any more, and nothing else."""
        for folder in self.directory.iterdir():
            if folder.name not in kept and _GRANT_ID.fullmatch(folder.name):
                self._remove(folder)

    def let_go(self) -> None:
        """Unlock the directory."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def check_directory(directory: Path) -> None:
    """Raise SocketRefused if sockets of sandboxes cannot be in a directory, or others may enter it; it is not made."""
    longest = directory / ("x" * 26) / SOCKET
    if len(os.fsencode(longest)) > MAX_PATH_BYTES:
        raise SocketRefused(f"sandbox.directory {directory} is too long for a socket; name a shorter one")
    try:
        status = directory.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise SocketRefused(f"cannot use {directory}: {error.strerror}; name another sandbox.directory") from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise SocketRefused(
            f"{directory} must be a directory that this user alone may enter; run chmod 700, or name"
            " another sandbox.directory"
        )


def most_connections(grant: Grant) -> int:
    """Return how many connections a grant's socket takes."""
    return int(grant.quota.connections) or UNBOUND_CONNECTIONS


def _descriptors(grant: Grant) -> int:
    return 1 + most_connections(grant)
