"""The conversations of a data export: `conversations.json`, alone, in parts, or in an archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memoryd.cli.importers.items import Item, Skipped, guarded
from memoryd.cli.importers.source import Source

__all__ = ["FILES", "conversations"]

FILES = ("conversations.json", "conversations-*.json")
"""What the files are called."""


def conversations(
    source: Source, name: str, kind: type, read: Callable[[Mapping[str, Any]], Iterator[Item]]
) -> Iterator[Item]:
    """Yield what `read` makes of each conversation, which is an object with a field of this name and kind."""
    with source.opened(*FILES) as files:
        for _, file in files:
            for number, talk in source.records(file):
                if isinstance(talk, Mapping) and isinstance(talk.get(name), kind):
                    yield from guarded(read(talk), f"item {number}")
                else:
                    yield Skipped(place=f"item {number}", reason="it is no conversation")
