"""What a search costs through memory-mcp, on stdio and over HTTP, next to the client's own."""

from __future__ import annotations

import asyncio
import shutil
import statistics
from collections.abc import Awaitable, Callable

from memory_client import AsyncMemoryClient

from tests.bench.report import in_turns, one, scratch
from tests.bench.seed import fill, sentences
from tests.doors import a_world
from tests.mcp_helpers import http_server, on_stdio, over_http

CALLS = 300


def mcp() -> None:
    """Search in turns by the client, on stdio and over HTTP; every query is new to each of them."""
    folder = scratch()
    fill(folder / "memory.duckdb", {"k1": 1000})
    with a_world(folder, config="") as world, http_server(world.shared) as (url, _):
        token = world.token(user_id="k1", chat_ids=())
        took = asyncio.run(_searched(world.daemon.endpoint, url, token))
    shutil.rmtree(folder)
    direct = statistics.median(took["direct"])
    one("A search by the client", direct, "ms")
    one("A search through memory-mcp on stdio", statistics.median(took["stdio"]) / direct, "× the client's", "≤ 2.5")
    one("A search through memory-mcp over HTTP", statistics.median(took["http"]) / direct, "× the client's", "≤ 1.8")


async def _searched(endpoint: str, url: str, token: str) -> dict[str, list[float]]:
    queries = [" ".join(text.split()[:8]) for text in sentences(3 * CALLS, seed=9)]
    async with (
        AsyncMemoryClient(endpoint, user_id="k1", chat_id="", agent_id="") as client,
        on_stdio(endpoint, "--user", "k1") as stdio,
        over_http(url, token) as http,
    ):
        ways: dict[str, Callable[[str], Awaitable[object]]] = {
            "direct": client.search,
            "stdio": lambda query: stdio.call_tool("search", {"query": query}),
            "http": lambda query: http.call_tool("search", {"query": query}),
        }
        return await in_turns(ways, queries, CALLS)
