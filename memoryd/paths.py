"""Where things are by default: what systemd says, else the XDG directories; the client asks here too."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "SOCKET_NAME",
    "NoHomeError",
    "Places",
    "config_file",
    "data_dir",
    "expanded",
    "find_socket",
    "open_to_others",
    "owner_of",
    "socket_candidates",
    "socket_path",
]

SOCKET_NAME = "admin.sock"
SYSTEM_RUNTIME = Path("/run/memoryd")
SYSTEM_CONFIG = Path("/etc/memoryd/memoryd.toml")
OTHERS_MAY_WRITE = 0o022
AS_THEY_LIKE = stat.S_IWOTH | stat.S_ISVTX  # of a folder: the first without the second, as /tmp has both


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


def owner_of(path: Path) -> str:
    """Return who owns the first directory above a path that can be looked at, by name or number."""
    for folder in path.parents:
        try:
            return folder.owner()
        except KeyError:
            return str(folder.stat().st_uid)
        except OSError:
            continue
    return "root"


def open_to_others(folder: Path) -> str:
    """Return in words that other users may write in the folder of a database, or replace it; "" where they may not."""
    try:
        state = folder.stat()
        if state.st_mode & OTHERS_MAY_WRITE:
            mode, quoted = f"mode {state.st_mode & 0o7777:o}", shlex.quote(str(folder))
            return f"other users may write in {folder} ({mode}); run: chmod go-w {quoted}"
        if os.geteuid() not in {0, state.st_uid}:
            return f"{folder} belongs to {owner_of(folder / 'any')}, who may change it; take one of your own"
        for above in folder.resolve().parents:
            if above.stat().st_mode & AS_THEY_LIKE == stat.S_IWOTH:
                quoted = shlex.quote(str(above))
                return f"other users may write in {above}, and so replace {folder}; run: chmod o-w {quoted}"
    except OSError:
        return ""  # it is not there yet, or nobody may look: opening it says so
    return ""


def config_file(env: Mapping[str, str]) -> Path | None:
    """Return memoryd.toml in $CONFIGURATION_DIRECTORY or the XDG config directory, else in /etc/memoryd; or None."""
    if env.get("CONFIGURATION_DIRECTORY"):
        path = Path(env["CONFIGURATION_DIRECTORY"].split(":")[0]) / "memoryd.toml"
    else:
        try:
            path = (_xdg(env, "XDG_CONFIG_HOME") or _home(env) / ".config") / "memoryd" / "memoryd.toml"
        except NoHomeError:
            path = SYSTEM_CONFIG
    return next((found for found in (path, SYSTEM_CONFIG) if found.is_file()), None)


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
