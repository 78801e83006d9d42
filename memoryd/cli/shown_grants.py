"""How the command shows grants, and what a sandbox needs to be started."""

from __future__ import annotations

import shlex
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import memory_cli
import memory_client
from memory_cli.output import moment, one_line
from memory_client import Grant, GrantStatus

from memoryd.model import limits
from memoryd.model.grant import PRESETS, permission_names

__all__ = ["allowed", "bound_to", "grant_line", "mounts", "until"]

SOCKET_IN_SANDBOX = "memory.sock"


def bound_to(grant: Grant) -> str:
    """Return who a grant is bound to, in words."""
    who = [grant.user_id or "nobody", *(f"chat {chat_id}" for chat_id in grant.chat_ids)]
    return ", ".join(who) + (f", agent {grant.agent_id}" if grant.agent_id != "default" else "")


def allowed(grant: Grant) -> str:
    """Return what a grant allows: the name of a preset, or permissions."""
    preset = next((name for name, permissions in PRESETS.items() if permissions == grant.permissions), "")
    return preset or ",".join(permission_names(grant.permissions)) or "nothing"


def until(time: datetime | None) -> str:
    """Return until when, in words."""
    return moment(time) if time else "no end"


def _own_places() -> list[str]:
    """Return the directories outside /usr from which this Python has the `memory` command, outermost only."""
    packages = (Path(module.__file__).parent.parent for module in (memory_cli, memory_client) if module.__file__)
    places = sorted({Path(sys.prefix), Path(sys.base_prefix), *packages, Path(limits.__file__).parent.parent})
    return [
        str(place)
        for place in places
        if not place.is_relative_to("/usr")
        and not any(place != other and place.is_relative_to(other) for other in places)
    ]


def mounts(grant: Grant, directory: str, mount: str) -> dict[str, Any]:
    """Return what a sandbox needs: what to mount where, the environment, and how to say so to the usual tools."""
    env = {"MEMORY_ENDPOINT": f"unix://{mount}/{SOCKET_IN_SANDBOX}"}
    if grant.user_id:
        env["MEMORY_USER_ID"] = grant.user_id
    if len(grant.chat_ids) == 1:
        env["MEMORY_CHAT_ID"] = grant.chat_ids[0]
    if grant.agent_id != "default":
        env["MEMORY_AGENT_ID"] = grant.agent_id
    container = ["run", "--rm", "-v", f"{directory}:{mount}:ro"]
    bwrap = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib"]
    bwrap += ["--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev"]
    bwrap += ["--tmpfs", "/tmp", "--uid", "1000", "--gid", "1000"]  # noqa: S108  inside
    for place in _own_places():
        bwrap += ["--ro-bind", place, place]
    path = f"{sys.prefix}/bin:/usr/local/bin:/usr/bin" if _own_places() else "/usr/local/bin:/usr/bin"
    bwrap += ["--ro-bind", directory, mount, "--clearenv", "--setenv", "PATH", path]
    nspawn = ["systemd-nspawn", "-D", "ROOT", f"--bind-ro={directory}:{mount}"]
    for name, value in env.items():
        container += ["-e", f"{name}={value}"]
        bwrap += ["--setenv", name, value]
        nspawn.append(f"--setenv={name}={value}")
    return {
        "directory": directory,
        "mount": mount,
        "env": env,
        "examples": {
            "docker": shlex.join(["docker", *container]) + " IMAGE memory whoami",
            "podman": shlex.join(["podman", *container]) + " IMAGE memory whoami",
            "bubblewrap": shlex.join(bwrap) + " memory whoami",
            "systemd-nspawn": shlex.join(nspawn) + " memory whoami",
        },
    }


def _state(grant: Grant, *, ended: bool) -> str:
    if grant.revoke_time is not None:
        return f"ended {moment(grant.revoke_time)}"
    if grant.expire_time is None:
        return "open"
    return f"{'ended' if ended else 'until'} {moment(grant.expire_time)}"


def grant_line(status: GrantStatus, short_id: str) -> str:
    """Return a grant with what came of it, in one line."""
    grant, usage = status.grant, status.usage
    state = _state(grant, ended=bool(status.refusal))
    kind = "sandbox" if grant.listener else "token"
    label = f"  {one_line(grant.label)}" if grant.label else ""
    return (
        f"{short_id}  {kind:<7}  {bound_to(grant)}  {allowed(grant)}  {usage.stored_memories} memories,"
        f" {usage.writes_today} writes today  {state}{label}"
    )
