"""Where things are by default: what systemd says, else the XDG directories; the client asks here too."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

__all__ = [
    "NO_FILE",
    "SOCKET_NAME",
    "NoHomeError",
    "Places",
    "config_file",
    "config_home",
    "data_dir",
    "expanded",
    "find_socket",
    "open_regular",
    "open_to_others",
    "owner_of",
    "socket_candidates",
    "socket_path",
]

NO_FILE = "it is a link, a pipe or a device, and no file"

SOCKET_NAME = "admin.sock"
SYSTEM_RUNTIME = Path("/run/memoryd")
SYSTEM_CONFIG = Path("/etc/memoryd/memoryd.toml")
OTHERS_MAY_WRITE = 0o022


class NoHomeError(Exception):
    """HOME is not set, so that there is no place that is this user's."""

    def __init__(self) -> None:
        super().__init__("HOME is not set, so there is no default place; set it, or name every path")


def _home(env: Mapping[str, str]) -> Path:
    home = env.get("HOME")
    if not home:
        raise NoHomeError
    return Path(home)


def _xdg(env: Mapping[str, str], name: str) -> Path | None:
    """Return an XDG directory; None where it is unset or not absolute, which the specification says to ignore."""
    value = env.get(name, "")
    return Path(value) if value.startswith("/") else None


def expanded(path: str | Path) -> Path:
    """Return a path with `~` or `~user` at its beginning replaced; ValueError where that home is not known."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{str(path)!r} begins with a home directory that is not known; write it whole") from None


def data_dir(env: Mapping[str, str]) -> Path:
    """Return $STATE_DIRECTORY, else $XDG_DATA_HOME/memoryd, else ~/.local/share/memoryd."""
    if env.get("STATE_DIRECTORY"):
        return Path(env["STATE_DIRECTORY"].split(":")[0])
    return (_xdg(env, "XDG_DATA_HOME") or _home(env) / ".local" / "share") / "memoryd"


def socket_path(env: Mapping[str, str]) -> Path:
    """Return the admin socket in $RUNTIME_DIRECTORY, else $XDG_RUNTIME_DIR/memoryd, else ~/.local/state/memoryd."""
    if env.get("RUNTIME_DIRECTORY"):
        return Path(env["RUNTIME_DIRECTORY"].split(":")[0]) / SOCKET_NAME
    runtime = _xdg(env, "XDG_RUNTIME_DIR")
    if runtime is not None:
        return runtime / "memoryd" / SOCKET_NAME
    return (_xdg(env, "XDG_STATE_HOME") or _home(env) / ".local" / "state") / "memoryd" / SOCKET_NAME


def socket_candidates(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return where a client looks for the daemon: this user's own, then the system's."""
    system = SYSTEM_RUNTIME / SOCKET_NAME
    try:
        return tuple(dict.fromkeys((socket_path(env), system)))
    except NoHomeError:
        return (system,)


def find_socket(candidates: Sequence[Path]) -> Path:
    """Return the first socket that is there, else the first place; PermissionError if one cannot be looked at."""
    hidden: PermissionError | None = None
    for path in candidates:
        try:
            if stat.S_ISSOCK(path.stat().st_mode):
                return path
        except PermissionError as error:
            hidden = hidden or error
        except OSError:
            continue
    if hidden is not None:
        raise hidden
    return candidates[0]


def open_regular(path: Path, flags: int) -> int:
    """
    Open a file for its owner alone, and return its handle; OSError where it is a pipe, a device or a link.

    A pipe that no one reads would hold up who writes to it, and all that wait for that.
    """
    try:
        handle = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, NO_FILE, str(path)) from None
        raise
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, NO_FILE, str(path))


def read_regular(path: Path) -> IO[bytes]:
    """Open a file to be read; OSError as of `open_regular`."""
    return os.fdopen(open_regular(path, os.O_RDONLY), "rb")


def owner_of(path: Path) -> str:
    """Return who owns the first directory above a path that can be looked at, by name or number."""
    for folder in path.parents:
        try:
            return _name_of(folder.stat().st_uid)
        except OSError:
            continue
    return "root"


def open_to_others(folder: Path, user: int | None = None) -> str:
    """
    Return in words that others may write in the folder of a database, own it or replace it; "" where they may not.

    Every folder and link on the way is looked at, as it is written and as it resolves. `user` is who runs the daemon,
    by default this process's user. What is not there yet is not looked at, what is above it is.
    """
    me = os.geteuid() if user is None else user
    try:
        safe = {0, me, folder.stat().st_uid} if me == 0 else {0, me}  # root looks at the folder of a service's user
    except OSError:
        safe = {0, me}
    written, resolved = folder.absolute(), folder.resolve()
    for path in dict.fromkeys((resolved, written, *resolved.parents, *written.parents)):
        try:
            state = path.lstat()
        except OSError:
            continue  # it is not there yet, or no one may look: opening it says so
        is_folder = path == resolved
        if state.st_uid not in safe:
            owner = _name_of(state.st_uid)
            return (
                f"{path} belongs to {owner}, who may change it; take one of your own"
                if is_folder
                else f"{path} belongs to {owner}, who may replace {folder}; take a folder of your own"
            )
        if stat.S_ISLNK(state.st_mode) or not _others_write(state, is_folder=is_folder):
            continue
        mode, quoted = f"mode {state.st_mode & 0o7777:o}", shlex.quote(str(path))
        if is_folder:
            return f"other users may write in {path} ({mode}); run: chmod go-w {quoted}"
        return f"other users may write in {path} ({mode}), and so replace {folder}; run: chmod go-w {quoted}"
    return ""


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def _others_write(state: os.stat_result, *, is_folder: bool) -> bool:
    """Whether others may put something else in the place of a folder, or into it."""
    if is_folder:
        return bool(state.st_mode & OTHERS_MAY_WRITE)
    if state.st_mode & stat.S_ISVTX:  # as /tmp: no one replaces what another one owns
        return False
    if state.st_mode & stat.S_IWOTH:
        return True
    return bool(state.st_mode & stat.S_IWGRP) and not _is_of_one(state.st_gid)


def _is_of_one(gid: int) -> bool:
    """Whether a group is that of this user alone, as many systems give one to each."""
    try:
        return gid in {0, os.getegid()} and not grp.getgrgid(gid).gr_mem
    except KeyError:
        return False


def config_home(env: Mapping[str, str]) -> Path:
    """Return $CONFIGURATION_DIRECTORY, else $XDG_CONFIG_HOME/memoryd, else ~/.config/memoryd; NoHomeError."""
    if env.get("CONFIGURATION_DIRECTORY"):
        return Path(env["CONFIGURATION_DIRECTORY"].split(":")[0])
    return (_xdg(env, "XDG_CONFIG_HOME") or _home(env) / ".config") / "memoryd"


def config_file(env: Mapping[str, str]) -> Path | None:
    """Return memoryd.toml in the user's own directory of configuration, else in /etc/memoryd; or None."""
    try:
        path = config_home(env) / SYSTEM_CONFIG.name
    except NoHomeError:
        path = SYSTEM_CONFIG
    return next((config for config in (path, SYSTEM_CONFIG) if config.is_file()), None)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the daemon's files are."""

    database: Path
    socket: Path
    sandboxes: Path
    """The sockets of sandboxes."""
    audit: Path | None
    """The audit log."""
    tokenizers: Path
    """Tokenizers that requests may name."""
    ledger: Path
    """The folder of the ledger of purges."""
