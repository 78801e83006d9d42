"""What a search costs over HTTP, next to the same one over gRPC."""

from __future__ import annotations

import asyncio
import shutil
import statistics
from collections.abc import Awaitable, Callable

import httpx
from memory_client import AsyncMemoryClient, Credentials

from memoryd.v1 import memory_service_pb2 as pb
from tests.bench.report import in_turns, one, scratch
from tests.bench.seed import fill, sentences
from tests.doors import a_world
from tests.http_helpers import door

CALLS = 300
NO_LIMIT = {"calls_per_second": 0}  # or searches one after the other are refused
PATH = "/memoryd.v1.MemoryService/SearchMemories"


def http() -> None:
    """Search in turns over gRPC and over HTTP in JSON and binary, through the shared socket; every query is new."""
    folder = scratch()
    fill(folder / "memory.duckdb", {"k1": 1000})
    with a_world(folder, config="") as world, door(world.shared) as (address, _):
        took = asyncio.run(_searched(world.shared, address, world.token(user_id="k1", chat_ids=(), quota=NO_LIMIT)))
    shutil.rmtree(folder)
    direct = statistics.median(took["grpc"])
    one("A search over gRPC", direct, "ms")
    one("A search over HTTP, JSON", statistics.median(took["json"]) / direct, "× gRPC", "≤ 1.4")
    one("A search over HTTP, binary", statistics.median(took["binary"]) / direct, "× gRPC", "≤ 1.4")


async def _searched(endpoint: str, address: str, token: str) -> dict[str, list[float]]:
    queries = [" ".join(text.split()[:8]) for text in sentences(3 * CALLS, seed=9)]
    shown = Credentials(token=token)
    bearer = {"Authorization": f"Bearer {token}"}
    async with (
        AsyncMemoryClient(endpoint, user_id="", chat_id="", agent_id="", credentials=shown) as client,
        httpx.AsyncClient(base_url=address, headers=bearer, timeout=60) as sender,
    ):

        async def in_json(query: str) -> None:
            answer = await sender.post(PATH, json={"query": query})
            answer.raise_for_status().json()

        async def in_binary(query: str) -> None:
            body = pb.SearchMemoriesRequest(query=query).SerializeToString()
            answer = await sender.post(PATH, content=body, headers={"Content-Type": "application/proto"})
            pb.SearchMemoriesResponse.FromString(answer.raise_for_status().content)

        ways: dict[str, Callable[[str], Awaitable[object]]] = {
            "grpc": client.search, "json": in_json, "binary": in_binary,
        }  # fmt: skip
        return await in_turns(ways, queries, CALLS)
