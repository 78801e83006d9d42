"""One client or store of every kind: the same rules for all of them."""

from __future__ import annotations

import pytest

from memoryd.daemon.config import Config, MemoryConfig
from tests.builders import backend, open_duckdb, ram_store


@pytest.fixture(params=["ram", "duckdb", "wire", "two-ram", "two-duckdb"])
async def memory(request, folder, clock):
    """A client of user alice; `@pytest.mark.memory(…)` configures [memory]."""
    marker = request.node.get_closest_marker("memory")
    config = Config(memory=MemoryConfig(**(marker.kwargs if marker else {})))
    async with backend(request.param, folder, clock, config) as client:
        yield client


@pytest.fixture(params=["ram", "duckdb"])
async def store(request, folder):
    """An open store."""
    opened = ram_store() if request.param == "ram" else open_duckdb(folder)
    yield opened
    await opened.close()
