"""The reference of the Python client: which names it has; the site adds what their docstrings say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from enum import Enum
from pathlib import Path

import contract_pages
import memory_client
from markup import anchor, table

from memoryd.daemon.servers import SERVICES

__all__ = ["python_page"]

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| ((?:`\w+`(?:, )?)+) \| ([^|]*)", re.MULTILINE)
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
    yield from ("What each field means is told at the RPC that a method calls: `add` takes those of `AddMemory`.", "")
    yield from table(("method", "RPC"), _calls())
    yield from ("## Clients", "", *_named(CLIENTS, "    options: {members_order: alphabetical}"))
    for twin, plain in TWINS.items():
        yield from (f"`{twin}` has the methods of `{plain}`, to be awaited.", "")
    rest = [name for name in memory_client.__all__ if name not in {*CLIENTS, *TWINS}]
    kinds = {name: _kind(getattr(memory_client, name)) for name in rest}
    for kind in ("Values", "Choices", "Errors", "Functions"):
        yield from (f"## {kind}", "", *_named([name for name in rest if kinds[name] == kind]))


def _calls() -> Iterator[tuple[str, str]]:
    """Yield the methods of a client, each with the RPC that the guides name for it."""
    pages = {
        method.name: f"{contract_pages.page_of(service.name)}#{anchor(method.name)}"
        for service in SERVICES for method in service.methods
    }  # fmt: skip
    held = {name for kind in memory_client.MemoryClient.__mro__[:-1] for name in vars(kind)}
    told: dict[str, list[str]] = {}
    for guide in ("sandbox-guide.md", "host-guide.md"):
        for methods, cell in ROW.findall((DOCS / guide).read_text(encoding="utf-8")):
            names = [name for name in re.findall(r"\w+", cell) if name in pages]
            for method in held.intersection(re.findall(r"\w+", methods)):
                told.setdefault(method, []).extend(names)
    rows = {method: _nearest(method, names) for method, names in sorted(told.items()) if names}
    yield from ((f"`{method}`", f"[{name}]({pages[name]})") for method, name in rows.items())


def _nearest(method: str, names: Sequence[str]) -> str:
    """Return which of the RPCs of a row is that of a method."""
    plain = method.removeprefix("all_").replace("_", "")
    return max(
        names,
        key=lambda name: (
            name.lower() in {f"get{plain}", f"list{plain}"},
            SequenceMatcher(None, plain, name.lower()).ratio(),
        ),
    )


def _named(names: Sequence[str], *options: str) -> Iterator[str]:
    for name in names:
        yield from (f"::: memory_client.{name}", *options, "")


def _kind(thing: object) -> str:
    if not inspect.isclass(thing):
        return "Functions"
    if issubclass(thing, Enum):
        return "Choices"
    return "Errors" if issubclass(thing, Exception) else "Values"
