"""Where things are by default: what systemd says, else the XDG directories; the client asks here too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SOCKET_NAME", "Places", "config_file", "data_dir", "socket_candidates", "socket_path"]

SOCKET_NAME = "admin.sock"
SYSTEM_RUNTIME = Path("/run/memoryd")
SYSTEM_CONFIG = Path("/etc/memoryd/memoryd.toml")


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or "/")


def data_dir(env: Mapping[str, str]) -> Path:
    """Return $STATE_DIRECTORY, else $XDG_DATA_HOME/memoryd, else ~/.local/share/memoryd."""
    if env.get("STATE_DIRECTORY"):
        return Path(env["STATE_DIRECTORY"].split(":")[0])
    return Path(env.get("XDG_DATA_HOME") or _home(env) / ".local" / "share") / "memoryd"


def socket_path(env: Mapping[str, str]) -> Path:
    """Return the admin socket in $RUNTIME_DIRECTORY, else $XDG_RUNTIME_DIR/memoryd, else ~/.local/state/memoryd."""
    if env.get("RUNTIME_DIRECTORY"):
        return Path(env["RUNTIME_DIRECTORY"].split(":")[0]) / SOCKET_NAME
    if env.get("XDG_RUNTIME_DIR"):
        return Path(env["XDG_RUNTIME_DIR"]) / "memoryd" / SOCKET_NAME
    return Path(env.get("XDG_STATE_HOME") or _home(env) / ".local" / "state") / "memoryd" / SOCKET_NAME


def socket_candidates(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return where a client looks for the daemon: this user's own, then the system's."""
    return tuple(dict.fromkeys((socket_path(env), SYSTEM_RUNTIME / SOCKET_NAME)))


def config_file(env: Mapping[str, str]) -> Path | None:
    """Return memoryd.toml in $CONFIGURATION_DIRECTORY or the XDG config directory, else in /etc/memoryd; or None."""
    if env.get("CONFIGURATION_DIRECTORY"):
        path = Path(env["CONFIGURATION_DIRECTORY"].split(":")[0]) / "memoryd.toml"
    else:
        path = Path(env.get("XDG_CONFIG_HOME") or _home(env) / ".config") / "memoryd" / "memoryd.toml"
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
