"""Where the daemon is and who asks: arguments first, then the environment, then the default socket."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.errors import InvalidArgument, PermissionDenied
from memoryd.model.limits import MAX_MESSAGE_BYTES
from memoryd.paths import SOCKET_NAME, expanded, find_socket, owner_of, socket_candidates

__all__ = ["CHANNEL_OPTIONS", "MAX_SOCKET_PATH_BYTES", "Identity", "check_timeout", "is_admin", "resolve_endpoint"]

MAX_TIMEOUT_S = 86_400
MAX_PORT = 65_535
MAX_SOCKET_PATH_BYTES = 107  # sun_path of unix(7), less its final zero

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


def resolve_endpoint(endpoint: str | None, env: Mapping[str, str]) -> str:
    """Return the gRPC target of `unix:///path` or `host:port`; unset: $MEMORY_ENDPOINT, then the default socket."""
    given = str(endpoint or env.get("MEMORY_ENDPOINT") or "")
    if not given:
        candidates = socket_candidates(env)
        try:
            return f"unix:{find_socket(candidates)}"
        except PermissionError as error:
            user = owner_of(Path(error.filename))
            raise PermissionDenied(
                f"this user may not look into {Path(error.filename).parent}; run as {user}, whose daemon it is, or name"
                " another endpoint"
            ) from None
    if given.startswith("unix:"):
        path = given.removeprefix("unix:")
        path = path.removeprefix("//") if path.startswith("//") else path
        try:
            path = str(expanded(path)) if path.startswith("~") else path
        except ValueError as error:
            raise InvalidArgument(f"endpoint {given!r}: {error}", field="endpoint") from None
        if not path.startswith("/"):
            raise InvalidArgument(f"endpoint {given!r} must be unix:///absolute/path", field="endpoint")
        if len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
            raise InvalidArgument(
                f"endpoint {given!r} is longer than the {MAX_SOCKET_PATH_BYTES} bytes of a socket's path; mount it"
                " elsewhere",
                field="endpoint",
            )
        return f"unix:{path}"
    host, separator, port = given.rpartition(":")
    if "://" in given:
        raise InvalidArgument(f"endpoint {given!r} has a scheme; write host:port, always TLS", field="endpoint")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
        raise InvalidArgument(f"endpoint {given!r} is neither unix:///path nor host:port", field="endpoint")
    return given


def is_admin(target: str) -> bool:
    """Whether a target is a socket for its owner alone, who runs this: there the daemon takes the caller's word."""
    if not target.startswith("unix:"):
        return False
    try:
        found = Path(target.removeprefix("unix:")).stat()
    except OSError:
        return target.endswith("/" + SOCKET_NAME)
    return found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077


def check_timeout(timeout_s: float) -> None:
    """InvalidArgument unless it is a number of seconds above 0 and at most a day."""
    if not isinstance(timeout_s, int | float) or not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise InvalidArgument(
            f"timeout_s is {timeout_s}; it must be more than 0 and at most {MAX_TIMEOUT_S} seconds", field="timeout_s"
        )
