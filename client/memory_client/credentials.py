"""What a client shows at a door that asks: a token, and over TCP the certificates of TLS."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from memoryd.errors import InvalidArgument, Unauthenticated
from memoryd.paths import expanded

__all__ = ["Credentials", "TokenSource", "channel_credentials"]


@dataclass(frozen=True, slots=True)
class Credentials:
    """
    A token, best in a file, and the files of TLS.

    The token file is read again when it changes, so that a new token needs no restart. `ca_file` holds the trusted
    certificates (empty: the system's); `certificate_file` and `key_file` are the client's own, if the daemon asks.
    """

    token_file: str = ""
    token: str = ""
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""

    def __post_init__(self) -> None:
        """Replace a `~` that a file begins with; InvalidArgument where that home is not known."""
        for name in ("token_file", "ca_file", "certificate_file", "key_file"):
            if getattr(self, name).startswith("~"):
                try:
                    object.__setattr__(self, name, str(expanded(getattr(self, name))))
                except ValueError as error:
                    raise InvalidArgument(f"{name}: {error}", field=name) from None

    def __repr__(self) -> str:
        """Leave the token out of every trace."""
        return f"Credentials(token_file={self.token_file!r}, ca_file={self.ca_file!r})"

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Credentials:
        """Return what MEMORY_TOKEN_FILE, MEMORY_TOKEN and MEMORY_TLS_{CA,CERTIFICATE,KEY}_FILE say."""
        return cls(
            env.get("MEMORY_TOKEN_FILE", ""),
            env.get("MEMORY_TOKEN", ""),
            env.get("MEMORY_TLS_CA_FILE", ""),
            env.get("MEMORY_TLS_CERTIFICATE_FILE", ""),
            env.get("MEMORY_TLS_KEY_FILE", ""),
        )


class TokenSource:
    """The metadata that carries the token: from a file where one is named, read again when it changes."""

    def __init__(self, credentials: Credentials) -> None:
        self._path = credentials.token_file
        self._metadata = _bearer(credentials.token)
        self._seen: tuple[int, int, int] | None = None

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return what to send along; Unauthenticated if the file cannot be read."""
        if self._path:
            try:
                stat = os.stat(self._path)  # noqa: PTH116  once a call, so without the cost of a Path
                seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
                if seen != self._seen:
                    token = Path(self._path).read_text(encoding="ascii").strip()
                    if not token:
                        raise Unauthenticated(f"the token file {self._path} is empty")
                    self._metadata = _bearer(token)
                    self._seen = seen
            except OSError as error:
                raise Unauthenticated(f"the token file {self._path} cannot be read: {error.strerror}") from None
            except UnicodeDecodeError:
                raise Unauthenticated(f"the token file {self._path} holds no token") from None
        return self._metadata


def _bearer(token: str) -> tuple[tuple[str, str], ...]:
    if token and not (token.isascii() and token.isprintable()):
        raise Unauthenticated("the token is no token of memoryd; get a new one")
    return (("authorization", f"Bearer {token}"),) if token else ()


def channel_credentials(target: str, credentials: Credentials) -> Any:
    """Return the credentials of TLS for a TCP target, None for a Unix socket; InvalidArgument if a file is amiss."""
    if target.startswith("unix:"):
        return None
    if bool(credentials.certificate_file) != bool(credentials.key_file):
        raise InvalidArgument("certificate_file and key_file go together", field="key_file")
    return grpc.ssl_channel_credentials(
        *(_read(name, getattr(credentials, name)) for name in ("ca_file", "key_file", "certificate_file"))
    )


def _read(name: str, path: str) -> bytes | None:
    try:
        return Path(path).read_bytes() if path else None
    except OSError as error:
        raise InvalidArgument(f"{name} {path} cannot be read: {error.strerror}", field=name) from None
