"""
The connections to the daemon, shared so that no caller takes them from the others.

The daemon takes so many calls at once on a connection and refuses more, so calls wait here for their turn, which is
counted by grant: who holds a token can make others of it. Those whose token has not counted yet have a connection of
their own.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from cachetools import LRUCache

from memoryd.errors import Unauthenticated
from memoryd.http.failures import Failure, of_call
from memoryd.model.token import parse_token

__all__ = ["Lines", "Shown"]

LINES = 6
MOST_OF_LINE = 32  # calls under way on one; the daemon refuses more than 64, and counts those that have just ended
REFUSED = "RST_STREAM with error code 7"  # which gRPC also says of a call that it ends, so no write is sent again
REFUSALS = 5
PAUSE_S = 0.02  # after a refusal
MOST_OF_CALLER = 16  # calls under way of one grant
MOST_REQUESTS = 128  # of one grant, with those that wait and those whose body arrives
MOST_STRANGERS = 128  # requests of all whose token has not counted yet
MOST_LARGE = 32  # large bodies at once: 128 MiB
MOST_LARGE_OF_ONE = 4  # of one grant
MOST_KNOWN = 4096  # tokens that are remembered, by their digests
SCHEME = "bearer "
Metadata = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a caller shows: a token in the form of one, which the daemon alone can tell to be genuine."""

    token: str
    digest: bytes
    """Stands for the token, so that none is kept."""
    grant_id: str
    """Which grant it names; it is that grant's once the daemon has taken the token."""

    @classmethod
    def read(cls, authorization: str) -> Shown:
        """Return what a header shows; Failure for what is no token."""
        if not authorization:
            raise _unauthenticated("this door needs a token")
        if authorization[: len(SCHEME)].lower() != SCHEME:
            raise _unauthenticated("authorization is not 'Bearer' and a token")
        token = authorization[len(SCHEME) :].strip()
        try:
            grant_id = parse_token(token).grant_id
        except Unauthenticated as error:
            raise _unauthenticated(error.message) from None
        return cls(token, hashlib.blake2b(token.encode(), digest_size=16).digest(), grant_id)


def _unauthenticated(what: str) -> Failure:
    message = f"{what}; send the header Authorization: Bearer TOKEN"
    headers = {"www-authenticate": "Bearer"}
    return Failure.at_the_door("unauthenticated", "UNAUTHENTICATED", message, headers=headers)


class Lines:
    """Calls the daemon; it opens its connections at the first call, within the event loop."""

    def __init__(self, connect: Callable[[], grpc.aio.Channel], target: str) -> None:
        """Connect so; the target is named to tell failures apart."""
        self._target = target
        self._strangers = _Line(connect)
        self._lines = [_Line(connect) for _ in range(LINES)]
        self._known: LRUCache[bytes, None] = LRUCache(MOST_KNOWN)
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._requests: Counter[str] = Counter()
        self._large: Counter[str] = Counter()

    def is_known(self, shown: Shown) -> bool:
        """Whether a token has counted."""
        return shown.digest in self._known

    @contextmanager
    def request(self, shown: Shown) -> Iterator[None]:
        """Hold one of the requests that a grant, or all strangers, may have under way; Failure above that."""
        is_known = self.is_known(shown)
        whose, most = (shown.grant_id, MOST_REQUESTS) if is_known else ("", MOST_STRANGERS)
        if self._requests[whose] >= most:
            raise _too_many("too many requests at once; ask again later")
        try:
            with _counted(self._requests, whose):
                yield
        finally:
            if not self._requests[shown.grant_id]:
                self._turns.pop(shown.grant_id, None)

    @contextmanager
    def large(self, shown: Shown) -> Iterator[None]:
        """Hold one of the places for large bodies, of a token that has counted; Failure where there is none."""
        if self._large.total() >= MOST_LARGE or self._large[shown.grant_id] >= MOST_LARGE_OF_ONE:
            raise _too_many("too many large requests at once; ask again later, or send it in several calls")
        with _counted(self._large, shown.grant_id):
            yield

    async def call(
        self, path: str, raw: bytes, end: float, shown: Shown, trace: Metadata = (), *, writes: bool = False
    ) -> bytes:
        """Return the answer of a method before `end` of the monotonic clock; Failure."""
        is_known = self.is_known(shown)
        line = self._lines[shown.digest[0] % LINES] if is_known else self._strangers
        metadata = (("authorization", f"Bearer {shown.token}"), *trace)
        try:
            async with (
                asyncio.timeout(end - time.monotonic()),
                self._turn(shown.grant_id if is_known else ""),
                line.free,
            ):
                answer = await _answer(line.of(path), raw, end, metadata, 1 if writes else REFUSALS)
        except TimeoutError:
            raise Failure("deadline_exceeded", "there was no answer in time; a write may have happened") from None
        except grpc.aio.AioRpcError as error:
            failure = of_call(error, self._target)
            if failure.code == "unauthenticated":
                self._known.pop(shown.digest, None)
            elif failure.is_the_daemons:
                self._known[shown.digest] = None
            raise failure from None
        self._known[shown.digest] = None
        return answer

    @asynccontextmanager
    async def _turn(self, whose: str) -> AsyncIterator[None]:
        """Wait until a grant may have one more call under way; strangers have the turns of their connection alone."""
        if not whose:
            yield
            return
        async with self._turns.setdefault(whose, asyncio.Semaphore(MOST_OF_CALLER)):
            yield

    async def close(self) -> None:
        """End the connections."""
        for line in (self._strangers, *self._lines):
            await line.close()


def _too_many(message: str) -> Failure:
    headers = {"connection": "close", "retry-after": "1"}
    return Failure.at_the_door("unavailable", "UNAVAILABLE", message, headers=headers)


@contextmanager
def _counted(counts: Counter[str], whose: str) -> Iterator[None]:
    counts[whose] += 1
    try:
        yield
    finally:
        counts[whose] -= 1
        if not counts[whose]:
            del counts[whose]


async def _answer(method: Any, raw: bytes, end: float, metadata: Any, attempts: int) -> bytes:
    """Return the answer of a call, which is sent again where the daemon has refused it."""
    for attempt in range(attempts):
        try:
            answer: bytes = await method(raw, timeout=max(0.0, end - time.monotonic()), metadata=metadata)
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
