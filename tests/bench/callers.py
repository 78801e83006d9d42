"""How many searches a second many callers get, beside what the encoder alone does in as much time."""

from __future__ import annotations

import asyncio
import shutil
import time
from itertools import count

import grpc

from memoryd.embedding.packaged import builtin_encoder
from memoryd.v1 import memory_service_pb2 as pb
from memoryd.v1 import memory_service_pb2_grpc
from tests.bench.report import one, scratch
from tests.bench.seed import fill, sentences
from tests.support import Daemon

CALLERS = (1, 8, 64)
MEMORIES = 1000
SECONDS = 5.0


def callers() -> None:
    """Search a scope of 1,000 memories by one, 8 and 64 callers over one connection, each query another one."""
    folder = scratch()
    fill(folder / "memory.duckdb", {"k": MEMORIES})
    texts = [f"{' '.join(text.split()[:8])} {n}" for n, text in enumerate(sentences(5000, seed=97))]
    encoder, began, read = builtin_encoder(), time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        encoder.read([texts[read % len(texts)]], query=True)
        read += 1
    alone = read / SECONDS
    one("The encoder alone, one query after the other", alone, "queries/s")
    daemon = Daemon(folder)
    daemon.start()
    try:
        for number in CALLERS:
            rate = asyncio.run(_rate(daemon, texts, number))
            one(f"Searches by {number} callers at once", rate, "searches/s")
            one("  over what the encoder does alone", rate / alone, "×", "≥ 0.8" if number == CALLERS[-1] else "")
    finally:
        daemon.stop()
        shutil.rmtree(folder)


async def _rate(daemon: Daemon, texts: list[str], number: int) -> float:
    """Return how many searches a second so many callers get."""
    numbers = count()
    async with grpc.aio.insecure_channel(f"unix:{daemon.socket}") as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        await stub.SearchMemories(pb.SearchMemoriesRequest(query="load the scope", user_id="k"))
        ends = time.perf_counter() + SECONDS

        async def caller() -> int:
            done = 0
            while time.perf_counter() < ends:
                query = f"{texts[next(numbers) % len(texts)]} {number}"
                await stub.SearchMemories(pb.SearchMemoriesRequest(query=query, user_id="k"))
                done += 1
            return done

        return sum(await asyncio.gather(*(caller() for _ in range(number)))) / SECONDS
