"""One client or store of every kind: the same rules for all of them."""

from __future__ import annotations

import pytest

from memoryd.daemon.config import Config, MemoryConfig
from tests.builders import STORES, backend
from tests.conformance.engines import CATEGORIES, engines, joined

PAIRS = [pytest.param(f"two-{kind}", marks=[pytest.mark.slow] if kind == "duckdb" else []) for kind in STORES]
"""Two daemons before one store, which only a server allows; over the other kinds it shows what a daemon keeps."""


@pytest.fixture(params=[*STORES, "wire", *PAIRS, *(engine.name for engine in joined())])
async def memory(request, folder, clock):
    """A client of user alice, also over each engine that joins; `@pytest.mark.memory(…)` configures [memory]."""
    marker = request.node.get_closest_marker("memory")
    config = Config(memory=MemoryConfig(**(marker.kwargs if marker else {})))
    store = next((engine.open(folder) for engine in joined() if engine.name == request.param), None)
    async with backend(request.param, folder, clock, config, store=store) as client:
        yield client


def pytest_generate_tests(metafunc):
    """Run what asks for an engine, or a store of it, on each that is not excused from its category."""
    if not {"engine", "store"} & set(metafunc.fixturenames):
        return
    categories = {marker.args[0] for marker in metafunc.definition.iter_markers("category")}
    assert categories <= CATEGORIES.keys()
    held = [engine for engine in engines() if not categories & engine.excused.keys()]
    metafunc.parametrize("engine", held, ids=[engine.name for engine in held], indirect=True)


@pytest.fixture
def engine(request):
    """An engine."""
    return request.param


@pytest.fixture
async def store(engine, folder):
    """An open store of it."""
    opened = engine.open(folder)
    yield opened
    await opened.close()
