"""Requests that arrive whole, in time, and not too large."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive

__all__ = ["RECEIVE_S", "Ask", "Refused", "whole_body"]

RECEIVE_S = 10.0  # for headers, and for a body, as in the daemon


class Refused(Exception):
    """A request that is answered before an application sees it."""

    def __init__(self, code: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.response = Response(text, status_code=code, headers=headers)


Ask = Callable[[int], Awaitable[None]]


async def whole_body(receive: Receive, most: int, ask: Ask | None = None) -> bytes:
    """
    Return a body of at most so many bytes; Refused for one that is larger, broken off, or does not arrive.

    `ask` is told the size after each part that comes; what it raises ends the reading.
    """
    try:
        async with asyncio.timeout(RECEIVE_S):
            return await _body(receive, most, ask)
    except TimeoutError:
        raise Refused(408, f"the request did not arrive within {RECEIVE_S:.0f} s", Connection="close") from None


async def _body(receive: Receive, most: int, ask: Ask | None) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refused(400, "the request was broken off")
        body += message.get("body", b"")
        if len(body) > most:
            raise Refused(413, f"the request has more than {most} bytes", Connection="close")
        if ask is not None:
            await ask(len(body))
        if not message.get("more_body", False):
            return bytes(body)
