"""
The connections to the daemon, shared so that no caller takes them from the others.

The daemon takes so many calls at once on a connection and refuses more, so calls wait here for their turn. Callers
whose token has not counted yet have a connection of their own.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from cachetools import LRUCache

from memoryd.http.failures import Failure, of_call

__all__ = ["Lines", "Metadata", "digest_of"]

Metadata = tuple[tuple[str, str], ...]
LINES = 6
MOST_OF_LINE = 32  # calls under way on one; the daemon refuses more than 64, and counts those that have just ended
REFUSED = "RST_STREAM with error code 7"  # which gRPC also says of a call that it ends, so no write is sent again
REFUSALS = 5
PAUSE_S = 0.02  # after a refusal
MOST_OF_CALLER = 16  # calls under way with one token
MOST_KNOWN = 4096  # tokens that are remembered, by their digests
IN_DOUBT = frozenset(
    {
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
    }
)
"""What does not say that a token counts."""


def digest_of(authorization: str) -> bytes:
    """Return what stands for a token, so that none is kept."""
    return hashlib.blake2b(authorization.encode(), digest_size=16).digest()


class Lines:
    """Calls the daemon; it opens its connections at the first call, within the event loop."""

    def __init__(self, connect: Callable[[], grpc.aio.Channel], target: str) -> None:
        """Connect so; the target is named to tell failures apart."""
        self._target = target
        self._strangers = _Line(connect)
        self._lines = [_Line(connect) for _ in range(LINES)]
        self._known: LRUCache[bytes, None] = LRUCache(MOST_KNOWN)
        self._turns: dict[bytes, tuple[asyncio.Semaphore, list[None]]] = {}

    def is_known(self, whose: bytes) -> bool:
        """Whether the token of this digest has counted."""
        return whose in self._known

    async def call(self, path: str, raw: bytes, timeout_s: float, metadata: Metadata, *, writes: bool = False) -> bytes:
        """Return the answer of a method; Failure. The token is the first of the metadata."""
        whose = digest_of(metadata[0][1])
        line = self._lines[whose[0] % LINES] if whose in self._known else self._strangers
        end = time.monotonic() + timeout_s
        try:
            async with asyncio.timeout(timeout_s), self._turn(whose), line.free:
                answer = await _answer(line.of(path), raw, end, metadata, 1 if writes else REFUSALS)
        except TimeoutError:
            raise Failure("deadline_exceeded", "there was no answer in time; a write may have happened") from None
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAUTHENTICATED:
                self._known.pop(whose, None)
            elif error.code() not in IN_DOUBT:
                self._known[whose] = None
            raise of_call(error, self._target) from None
        self._known[whose] = None
        return answer

    @asynccontextmanager
    async def _turn(self, whose: bytes) -> AsyncIterator[None]:
        """Wait until this caller may have one more call under way."""
        free, holders = self._turns.setdefault(whose, (asyncio.Semaphore(MOST_OF_CALLER), []))
        holders.append(None)
        try:
            async with free:
                yield
        finally:
            holders.pop()
            if not holders:
                self._turns.pop(whose, None)

    async def close(self) -> None:
        """End the connections."""
        for line in (self._strangers, *self._lines):
            await line.close()


async def _answer(method: Any, raw: bytes, end: float, metadata: Metadata, attempts: int) -> bytes:
    """Return the answer of a call, which is sent again where the daemon has refused it."""
    for attempt in range(attempts):
        try:
            answer: bytes = await method(raw, timeout=end - time.monotonic(), metadata=metadata)
        except grpc.aio.AioRpcError as error:
            if REFUSED not in (error.details() or "") or attempt == attempts - 1:
                raise
            await asyncio.sleep(PAUSE_S * (attempt + 1))
        else:
            return answer
    raise AssertionError("unreachable: the last attempt returns or raises")


class _Line:
    """One connection, and how many calls it may still take."""

    def __init__(self, connect: Callable[[], grpc.aio.Channel]) -> None:
        self._connect = connect
        self._channel: grpc.aio.Channel | None = None
        self._methods: dict[str, Any] = {}
        self.free = asyncio.Semaphore(MOST_OF_LINE)

    def of(self, path: str) -> Any:
        method = self._methods.get(path)
        if method is None:
            if self._channel is None:
                self._channel = self._connect()
            method = self._methods[path] = self._channel.unary_unary(path)
        return method

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
