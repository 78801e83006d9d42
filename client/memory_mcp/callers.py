"""Whose call it is: on stdio that of the socket or token which the process was given, over HTTP that of each token."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from memory_client import AsyncMemoryClient, Credentials

from memoryd.errors import MemorydError, Unauthenticated
from memoryd.model.grant import Door

__all__ = ["ByToken", "Callers", "OneCaller"]

MOST_CALLERS = 256  # tokens with an open channel; that of the one not used for longest is closed
CALLS_AT_ONCE = 8  # of one token; more wait, so that one cannot take the connection to the daemon
GENUINE_S = 30.0  # for so long a token is not asked about before its call; the daemon refuses the call all the same

log = logging.getLogger("memory_mcp")


class Callers(Protocol):
    """Gives the client of whoever calls."""

    def client(self) -> AbstractAsyncContextManager[AsyncMemoryClient]:
        """Return the client for the call under way."""
        ...


class OneCaller:
    """The one caller of a process; the channel is opened at the first call, in its event loop."""

    def __init__(self, *, endpoint: str | None, user_id: str | None, chat_id: str | None, agent_id: str | None) -> None:
        self._said = (endpoint, user_id, chat_id, agent_id)
        self._client: AsyncMemoryClient | None = None

    @asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncMemoryClient]:
        """Return the client."""
        if self._client is None:
            endpoint, user_id, chat_id, agent_id = self._said
            self._client = AsyncMemoryClient(endpoint, user_id=user_id, chat_id=chat_id, agent_id=agent_id)
        yield self._client


@dataclass(slots=True)
class _Known:
    """A token's client."""

    client: AsyncMemoryClient
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CALLS_AT_ONCE))
    uses: int = 0
    genuine_until: float = 0.0
    dropped: bool = False


class ByToken:
    """The callers of an HTTP server, each known by the token that came with the request."""

    def __init__(self, endpoint: str | None, ca_file: str = "") -> None:
        self._endpoint = endpoint
        self._ca_file = ca_file
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncMemoryClient]:
        """Return the client of the request under way; Unauthenticated where it has no token."""
        shown = get_access_token()
        if shown is None:
            raise Unauthenticated("the request has no token")
        async with self._of(shown.token) as known:
            yield known.client

    async def verify_token(self, token: str) -> AccessToken | None:
        """
        Return whose a token is, by the daemon's word; None where it counts for nothing.

        While the daemon is away any token passes, and its calls then tell that it is: a 401 would say that the token
        is bad.
        """
        try:
            counts = await self._counts(token)
        except Unauthenticated:
            counts = False
        except MemorydError:
            counts = True
        if not counts:
            await self._drop(token)
            return None
        return AccessToken(token=token, client_id="memoryd", scopes=[])

    async def _counts(self, token: str) -> bool:
        async with self._of(token) as known:
            if known.genuine_until < time.monotonic():
                who = await known.client.whoami()
                if who.door not in {Door.SHARED, Door.TCP}:
                    log.error("the %s socket asks for no token: nothing is served from it", who.door.value)
                    return False
                known.genuine_until = time.monotonic() + GENUINE_S
        return True

    @asynccontextmanager
    async def _of(self, token: str) -> AsyncIterator[_Known]:
        name = _name_of(token)
        known = self._known.get(name)
        if known is None:
            credentials = Credentials(token=token, ca_file=self._ca_file)
            known = self._known[name] = _Known(
                AsyncMemoryClient(self._endpoint, user_id="", chat_id="", agent_id="", credentials=credentials)
            )
            if len(self._known) > MOST_CALLERS:
                _, oldest = self._known.popitem(last=False)
                await _leave(oldest)
        self._known.move_to_end(name)
        known.uses += 1
        try:
            async with known.turns:
                yield known
        except Unauthenticated:
            known.genuine_until = 0.0
            raise
        finally:
            known.uses -= 1
            if known.dropped and not known.uses:
                await known.client.close()

    async def _drop(self, token: str) -> None:
        known = self._known.pop(_name_of(token), None)
        if known is not None:
            await _leave(known)


async def _leave(known: _Known) -> None:
    """Close the channel of a token that was forgotten; where calls are under way, the last of them closes it."""
    known.dropped = True
    if not known.uses:
        await known.client.close()


def _name_of(token: str) -> bytes:
    return hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=16).digest()
