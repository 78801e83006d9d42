"""
The engines that the conformance suite runs on.

An engine of another package joins by an `Engine` of its own, named in `MEMORYD_TEST_ENGINES` as `package.module:NAME`
(several with commas between), which Python must find (PYTHONPATH). Then the tests of the store run on it, and those of
what a client is promised. It says of which categories of promises it is excused, and why: a test of such a
category, marked `@pytest.mark.category("…")`, is left out for it, and all others must pass.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.store.base import Store
from tests.builders import open_duckdb, ram_store
from tests.postgres_server import binaries, open_postgres

__all__ = ["CATEGORIES", "Engine", "engines", "joined"]

CATEGORIES = {
    "restart": "what is stored is there after the store was closed and opened again",
    "files": "the files of a store: traces, compaction, copies",
}


@dataclass(frozen=True)
class Engine:
    """One engine under test."""

    name: str
    open: Callable[[Path], Store]
    """Opens the store of a folder, or makes it."""
    excused: Mapping[str, str] = field(default_factory=dict)
    """The categories that it does not promise, each with the reason."""

    def __post_init__(self) -> None:
        """Refuse a category that there is not, and one without a reason."""
        strangers = self.excused.keys() - CATEGORIES.keys()
        if strangers or not all(self.excused.values()):
            raise ValueError(f"{self.name} is excused from {sorted(strangers)}; there are {sorted(CATEGORIES)}")


POSTGRES = Engine("pg", open_postgres, {"files": "its files are the server's"})
OWN = (
    Engine("ram", lambda _: ram_store(), dict.fromkeys(CATEGORIES, "it lives in memory")),
    Engine("duckdb", open_duckdb),
    *([POSTGRES] if binaries() else []),
)


def engines() -> tuple[Engine, ...]:
    """Return memoryd's own engines, and those that the environment names."""
    return (*OWN, *joined())


def joined() -> tuple[Engine, ...]:
    """Return the engines that the environment names."""
    named = [name.partition(":") for name in os.environ.get("MEMORYD_TEST_ENGINES", "").split(",") if name]
    return tuple(getattr(importlib.import_module(module), name) for module, _, name in named)
