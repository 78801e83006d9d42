"""Where the daemon is and who asks: arguments first, then the environment, then the default socket."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.errors import InvalidArgument
from memoryd.limits import MAX_MESSAGE_BYTES
from memoryd.paths import SOCKET_NAME, socket_candidates

__all__ = ["CHANNEL_OPTIONS", "Identity", "is_admin", "resolve_endpoint"]

CHANNEL_OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", 2 * MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", 64 * 1024),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.enable_retries", 0),  # this client retries by itself, and only what is safe
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks and where: what every request asserts."""

    agent_id: str = ""
    user_id: str = ""
    chat_id: str = ""

    @classmethod
    def from_env(
        cls, env: Mapping[str, str], agent_id: str | None, user_id: str | None, chat_id: str | None
    ) -> Identity:
        """Return the arguments, each replaced by its environment variable where it is None."""
        return cls(
            env.get("MEMORY_AGENT_ID", "") if agent_id is None else agent_id,
            env.get("MEMORY_USER_ID", "") if user_id is None else user_id,
            env.get("MEMORY_CHAT_ID", "") if chat_id is None else chat_id,
        )


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(Path(path).stat().st_mode)
    except OSError:
        return False


def resolve_endpoint(endpoint: str | None, env: Mapping[str, str]) -> str:
    """Return the gRPC target of `unix:///path` or `host:port`; unset: $MEMORY_ENDPOINT, then the default socket."""
    given = endpoint or env.get("MEMORY_ENDPOINT") or ""
    if not given:
        candidates = [str(path) for path in socket_candidates(env)]
        return f"unix:{next(filter(_is_socket, candidates), candidates[0])}"
    if given.startswith("unix:"):
        path = given.removeprefix("unix:")
        path = path.removeprefix("//") if path.startswith("//") else path
        if not path.startswith("/"):
            raise InvalidArgument(f"endpoint {given!r} must be unix:///absolute/path", field="endpoint")
        return f"unix:{path}"
    host, separator, port = given.rpartition(":")
    if not separator or not host or not port.isdecimal():
        raise InvalidArgument(f"endpoint {given!r} is neither unix:///path nor host:port", field="endpoint")
    return given


def is_admin(target: str) -> bool:
    """Whether a target is the host's own socket, where the daemon takes the caller's word for who asks."""
    return target.startswith("unix:") and target.endswith("/" + SOCKET_NAME)
