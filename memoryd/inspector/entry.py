"""
Who may look: the browser that has used the one-time link, on pages that this process made.

All pages lie below a path that only this process and that browser know. A cookie is sent to every port of a host, but
only below its path, so no other server of this machine is sent ours.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.requests import Request

from memoryd.web.names import host_of, names_of

__all__ = ["NOT_OURS", "Entry"]

PATH_BYTES, SECRET_BYTES = 12, 24
NOT_OURS = "the host or the port is not that of this server; where it is forwarded, forward the same port"
HTTP = 80  # the port that an address does not name


class Entry:
    """The secrets of one run of the inspector."""

    def __init__(self, port: int | None, secret: Callable[[int], str], host: str = "127.0.0.1") -> None:
        """
        Make the secrets: `secret` returns random text of so many bytes, fit for an address.

        Requests must name the port, and the host or another name of loopback; None: behind a Unix socket any port, as
        whoever forwards it chooses one.
        """
        self.port = port
        self._names = names_of(host)
        self.base = f"/{secret(PATH_BYTES)}"
        self.csrf = secret(SECRET_BYTES)
        self.cookie_name = f"memoryd_{secret(PATH_BYTES)}"  # another server of this host cannot set one that hides ours
        self._link = secret(SECRET_BYTES)
        self._cookie = secret(SECRET_BYTES)

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
        return hmac.compare_digest(request.cookies.get(self.cookie_name, "").encode(), self._cookie.encode())

    def is_ours(self, host: str) -> bool:
        """Whether a host of a request, or of its origin, is this server."""
        name, port = host_of(host)
        return name in self._names and (self.port is None or port == str(self.port) or (self.port, port) == (HTTP, ""))

    def refusal(self, request: Request) -> str:
        """Return why a request is answered with 403, in words; empty: it may go on."""
        if not self.is_ours(request.headers.get("host", "")):
            return NOT_OURS
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
