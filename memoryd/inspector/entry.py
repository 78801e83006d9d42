"""
Who may look: the browser that has used the one-time link, on pages that this process made.

All pages lie below a path that only this process and that browser know. A cookie is sent to every port of a host, but
only below its path, so no other server of this machine is sent ours.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.requests import Request

__all__ = ["COOKIE", "Entry"]

COOKIE = "memoryd_inspector"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


def _secret() -> str:
    return secrets.token_urlsafe(24)


@dataclass
class Entry:
    """The secrets of one run of the inspector."""

    port: int | None
    """The port that requests must name; None: behind a Unix socket any, as whoever forwards it chooses one."""
    base: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(12)}")
    csrf: str = field(default_factory=_secret)
    _link: str = field(default_factory=_secret)
    _cookie: str = field(default_factory=_secret)

    @property
    def path(self) -> str:
        """The path of the one-time link."""
        return f"/enter/{self._link}"

    def use(self, link: str) -> str:
        """Return the value of the cookie for whoever brings the link first; "" for anybody else."""
        if not self._link or not hmac.compare_digest(link.encode(), self._link.encode()):
            return ""
        self._link = ""
        return self._cookie

    def knows(self, request: Request) -> bool:
        """Whether a request comes from the browser that has used the link."""
        return hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), self._cookie.encode())

    def is_ours(self, host: str) -> bool:
        """Whether a host of a request, or of its origin, is this server."""
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        if not name:
            name, port = host, ""
        return name in LOOPBACK and (self.port is None or port == str(self.port))

    def refusal(self, request: Request) -> str:
        """Return why a request is answered with 403, in words; empty: it may go on."""
        if not self.is_ours(request.headers.get("host", "")):
            return "the name of the host is not that of this server"
        origin = request.headers.get("origin")
        if origin is not None and not (
            urlsplit(origin).scheme == "http" and self.is_ours(origin.removeprefix("http://"))
        ):
            return "the request comes from another page"
        if request.method != "GET" and request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return "the request comes from another page"
        return "" if self.knows(request) else "run memoryd inspect, and open the link that it prints"

    def is_form_ours(self, token: str) -> bool:
        """Whether a form was made by this process."""
        return hmac.compare_digest(token.encode(), self.csrf.encode())
