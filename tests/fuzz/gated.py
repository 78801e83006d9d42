"""The gate of the admin socket over a store in RAM, called with bytes and without a socket."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from structlog.testing import capture_logs

from memoryd.model.change import ChangeSet
from memoryd.model.grant import Door
from tests.builders import ALICE, NOW, entry, memory, ports_over, ram_store, servers_over

__all__ = ["Gated", "gated"]

KNOWN_ID = "a" * 26
"""A memory of alice that every request finds, until one erases it."""
MOST_CALLS = 2000  # then all is made anew, as what was added makes calls slower


class Aborted(Exception):
    """A call was refused."""


class Context:
    """What gRPC hands to a handler."""

    def __init__(self) -> None:
        self.code = ""

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    def set_trailing_metadata(self, trailing: object) -> None:
        pass

    def peer(self) -> str:
        return "unix:"

    async def abort(self, code, details="", trailing_metadata=()) -> None:
        self.code = code.name
        raise Aborted


class Gated:
    """Answers requests in this process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self._calls = 0

    def ask(self, name: str, raw: bytes) -> str:
        """Return the code of a call; AssertionError where it is INTERNAL."""
        if self._calls % MOST_CALLS == 0:
            self._loop.run_until_complete(self._make_anew())
        self._calls += 1
        with capture_logs() as told:
            code = self._loop.run_until_complete(self._call(name, raw))
        assert code != "INTERNAL", told
        return code

    async def _make_anew(self) -> None:
        await self._stack.aclose()
        store = ram_store()
        await store.commits.write(ChangeSet(inserts=(entry(memory("Anna likes tea", id=KNOWN_ID, scope=ALICE)),)))
        ports = await self._stack.enter_async_context(ports_over(store))
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        servers = servers_over(ports, folder, lambda: NOW)
        self._gate = servers.gate(Door.ADMIN)
        self._paths = sorted(servers._methods)

    async def _call(self, name: str, raw: bytes) -> str:
        known = [path for path in self._paths if path.endswith(f"/{name}")]
        path = known[0] if known else self._paths[sum(name.encode()) % len(self._paths)]
        handler = self._gate.service(SimpleNamespace(method=path))

        async def messages() -> AsyncIterator[bytes]:
            yield raw

        context = Context()
        try:
            await handler.stream_unary(messages(), context)
        except Aborted:
            return context.code
        return "OK"


@cache
def gated() -> Gated:
    """Return the one of this process."""
    return Gated()
