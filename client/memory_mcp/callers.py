"""Whose call it is: on stdio that of the socket or token which the process was given, over HTTP that of each token."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Protocol

from cachetools import TTLCache
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from memory_client import AsyncMemoryClient, Credentials

from memoryd.errors import LimitExceeded, MemorydError, Unauthenticated
from memoryd.model.grant import Door
from memoryd.model.token import parse_token

__all__ = ["ByToken", "Callers", "DaemonAway", "OneCaller", "TooManyCalls"]

MOST_CALLERS = 256  # tokens with an open channel; that of the one not used for longest is closed
CALLS_AT_ONCE = 8  # of one token; more wait, so that one cannot take the connection to the daemon
MOST_WAITING = 64  # calls of one token, with those under way; more are refused
MOST_REMEMBERED = 4096  # tokens that count, and as many that do not
REFUSED_S = 5.0  # for so long a token that does not count is not asked about again
ASKED_AT_ONCE = 16  # tokens about which the daemon is asked
MOST_ASKED = 128  # of them, with those that wait; who comes then is told to come again
AGAIN_S = 5.0  # seconds after which it is said again that the daemon cannot be asked
GENUINE_S = 30.0  # for so long a token is not asked about before its call; the daemon refuses the call all the same

log = logging.getLogger("memory_mcp")
_established: ContextVar[str | None] = ContextVar("token", default=None)
"""The token of the request under way, once the daemon has said that it counts."""


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


class DaemonAway(Exception):
    """No one can say now whether a token counts."""


class TooManyCalls(Exception):
    """A token's grant is past its calls a second."""


@dataclass(slots=True)
class _Known:
    """A token's client."""

    client: AsyncMemoryClient
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CALLS_AT_ONCE))
    uses: int = 0
    dropped: bool = False


class ByToken:
    """
    The callers of an HTTP server, each known by the token that came with the request.

    A token gets a channel once the daemon has said that it counts: who makes tokens up takes no one's place.
    """

    def __init__(self, endpoint: str | None, credentials: Credentials | None = None) -> None:
        """Reach the daemon with the files of TLS of some credentials, whose token is not looked at."""
        self._endpoint = endpoint
        self._credentials = replace(credentials or Credentials(), token_file="", token="")
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._genuine: TTLCache[bytes, bool] = TTLCache(MOST_REMEMBERED, GENUINE_S)
        self._refused: TTLCache[bytes, bool] = TTLCache(MOST_REMEMBERED, REFUSED_S)
        self._asking = asyncio.Semaphore(ASKED_AT_ONCE)
        self._asked = 0
        self._told_time = -AGAIN_S

    def _open(self, token: str) -> AsyncMemoryClient:
        """Return a client that shows a token; Unauthenticated for what cannot be one."""
        shown = replace(self._credentials, token=token)
        return AsyncMemoryClient(self._endpoint, user_id="", chat_id="", agent_id="", credentials=shown)

    async def establish(self, token: str) -> bool:
        """Return whether a token counts, by the daemon's word, and let it be who calls. DaemonAway, TooManyCalls."""
        name = _name_of(token)
        if name not in self._genuine:
            if name in self._refused or not _is_formed(token):
                return False
            if self._asked >= MOST_ASKED:
                raise TooManyCalls
            self._asked += 1
            try:
                async with self._asking:
                    if not await self._counts(token):
                        self._refused[name] = True
                        return False
            finally:
                self._asked -= 1
            self._genuine[name] = True
        _established.set(token)
        return True

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the token of the request under way where it was established; None for any other."""
        return AccessToken(token=token, client_id="memoryd", scopes=[]) if _established.get() == token else None

    async def _counts(self, token: str) -> bool:
        try:
            client = self._open(token)
        except Unauthenticated:
            return False
        try:
            who = await client.whoami()
        except Unauthenticated:
            return False
        except LimitExceeded:
            raise TooManyCalls from None
        except MemorydError as error:
            if self._told_time + AGAIN_S < time.monotonic():
                self._told_time = time.monotonic()
                log.warning("the daemon cannot be asked about a token: %s", error.reason)
            raise DaemonAway from None
        finally:
            await client.close()
        if who.door not in {Door.SHARED, Door.TCP}:
            log.error("the %s socket asks for no token: nothing is served from it", who.door.value)
            return False
        return True

    @asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncMemoryClient]:
        """Return the client of the request under way; LimitExceeded where too many calls of its token wait."""
        shown = get_access_token()
        if shown is None:
            raise Unauthenticated("the request has no token")
        async with self._of(shown.token) as known:
            yield known.client

    @asynccontextmanager
    async def _of(self, token: str) -> AsyncIterator[_Known]:
        name = _name_of(token)
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = _Known(self._open(token))
        self._known.move_to_end(name)
        if known.uses >= MOST_WAITING:
            raise LimitExceeded(f"{MOST_WAITING} calls of this token are under way; wait for them", limit="calls")
        known.uses += 1  # from here on no one closes it
        try:
            while len(self._known) > MOST_CALLERS:
                _, oldest = self._known.popitem(last=False)
                await _leave(oldest)
            async with known.turns:
                yield known
        except Unauthenticated:
            self._genuine.pop(name, None)
            raise
        finally:
            known.uses -= 1
            if known.dropped and not known.uses:
                await known.client.close()


async def _leave(known: _Known) -> None:
    """Close the channel of a token that was forgotten; where calls are under way, the last of them closes it."""
    known.dropped = True
    if not known.uses:
        await known.client.close()


def _is_formed(token: str) -> bool:
    """Whether a text has the form of a token; whether it is genuine the daemon says."""
    try:
        parse_token(token)
    except Unauthenticated:
        return False
    return True


def _name_of(token: str) -> bytes:
    return hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=16).digest()
