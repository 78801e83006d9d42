"""Taking a Unix socket: one daemon a path, and no one else through the door."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

from memoryd.errors import StartupError

__all__ = ["SocketLease", "SocketRefused", "check_apart", "check_place"]

MAX_PATH_BYTES = 107  # sun_path of unix(7), less its final zero


class SocketRefused(StartupError):
    """The socket cannot be taken; the message says why and what to do."""


def check_place(path: Path, key: str = "--socket") -> None:
    """Raise SocketRefused for a path that no socket can have, or that others may replace; nothing is made."""
    path = path.absolute()
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise SocketRefused(
            f"the socket path {path} is longer than {MAX_PATH_BYTES} bytes; name a shorter one with {key}"
        )
    try:
        folder = path.parent.stat() if path.parent.exists() else None
        is_other = path.is_symlink() or (path.exists() and not stat.S_ISSOCK(path.stat().st_mode))
    except OSError as error:
        raise SocketRefused(f"cannot use {path.parent}: {error.strerror}; name another {key}") from None
    if folder is not None and (folder.st_uid != os.geteuid() or folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        is_shared = folder.st_uid != os.geteuid() or folder.st_mode & stat.S_ISVTX
        way = "put it into a folder of its own:" if is_shared else "run chmod go-w, or name another"
        raise SocketRefused(f"{path.parent} must belong to this user and be writable by no one else; {way} {key}")
    if is_other:
        raise SocketRefused(f"{path} exists and is no socket; move it away, or name another {key}")


def check_apart(admin: Path, shared: str) -> None:
    """Raise SocketRefused where the shared socket would be the admin socket, which everybody may then use."""
    if shared and Path(shared).resolve() == admin.resolve():
        raise SocketRefused(f"shared.socket is {shared}, the admin socket; name another shared.socket")


class SocketLease:
    """
    The right to a path: a lock next to it, held for the life of the daemon.

    The lock comes before the bind, as a second daemon would otherwise silently take a live path over.
    """

    def __init__(self, path: Path, *, mode: int = 0o600, key: str = "--socket") -> None:
        """
        Lock the path and clear a socket that a dead daemon left; SocketRefused if that cannot be.

        `mode` is the socket's own; its directory is made for those who may use it. `key` says where it was named.
        """
        self._mode = mode
        self.path = path.absolute()
        check_place(self.path, key)
        try:
            if not self.path.parent.exists():
                self.path.parent.mkdir(mode=0o700, parents=True)
                self.path.parent.chmod(0o700 if mode & 0o077 == 0 else 0o755)
                check_place(self.path, key)
            self._lock = os.open(
                self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise SocketRefused(f"cannot use {self.path.parent}: {error.strerror}; name another {key}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise SocketRefused(f"{self.path} is served by another memoryd; stop it, or name another {key}") from None
        self.path.unlink(missing_ok=True)

    @property
    def address(self) -> str:
        """The address for gRPC."""
        return f"unix:{self.path}"

    def protect(self) -> None:
        """Give the bound socket its mode."""
        self.path.chmod(self._mode)

    def close(self) -> None:
        """Remove the socket and let go of the path."""
        self.path.unlink(missing_ok=True)
        os.close(self._lock)
