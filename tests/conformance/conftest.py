"""One client or store of every kind: the same rules for all of them."""

from __future__ import annotations

import pytest

from memoryd.daemon.config import Config, MemoryConfig
from tests.builders import backend, open_duckdb, ram_store, run


@pytest.fixture(params=["ram", "duckdb", "wire", "two-ram", "two-duckdb"])
def with_memory(request, folder, clock):
    """Runs a test's coroutine function with a client of user alice; more arguments configure [memory]."""

    def runner(test, **memory):
        async def work():
            async with backend(request.param, folder, clock, Config(memory=MemoryConfig(**memory))) as client:
                await test(client)

        run(work())

    return runner


@pytest.fixture(params=["ram", "duckdb"])
def with_store(request, folder):
    """Runs a test's coroutine function with an open store, and closes it."""

    def runner(test):
        async def work():
            store = ram_store() if request.param == "ram" else open_duckdb(folder)
            try:
                await test(store)
            finally:
                await store.close()

        run(work())

    return runner
