"""The reference of the Python client: which names it has; the site adds what their docstrings say."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from enum import Enum

import memory_client

__all__ = ["python_page"]

CLIENTS = ("MemoryClient", "Conversation", "Credentials")
TWINS = {"AsyncMemoryClient": "MemoryClient", "AsyncConversation": "Conversation"}


def python_page() -> str:
    """Return the page of all that memory_client exports."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield from ("# The Python client", "", "*Reference for authors of agents and tools in Python.*", "")
    yield from (
        "All of it comes from `memory_client`. How it is used is told in the [sandbox guide](../sandbox-guide.md)",
        "and the [host guide](../host-guide.md). Signatures and descriptions are in the site, which `make site` builds",
        "from the docstrings.",
        "",
    )
    yield from ("## Clients", "", *_named(CLIENTS, "    options: {members_order: alphabetical}"))
    for twin, plain in TWINS.items():
        yield from (f"`{twin}` has the methods of `{plain}`, to be awaited.", "")
    rest = [name for name in memory_client.__all__ if name not in {*CLIENTS, *TWINS}]
    kinds = {name: _kind(getattr(memory_client, name)) for name in rest}
    for kind in ("Values", "Choices", "Errors", "Functions"):
        yield from (f"## {kind}", "", *_named([name for name in rest if kinds[name] == kind]))


def _named(names: Sequence[str], *options: str) -> Iterator[str]:
    for name in names:
        yield from (f"::: memory_client.{name}", *options, "")


def _kind(thing: object) -> str:
    if not inspect.isclass(thing):
        return "Functions"
    if issubclass(thing, Enum):
        return "Choices"
    return "Errors" if issubclass(thing, Exception) else "Values"
