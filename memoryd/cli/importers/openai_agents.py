"""The sessions that the OpenAI Agents SDK keeps in SQLite, as threads that its adapter reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from memory_client.adapters.items import thread_id_of, without_data
from memory_client.adapters.openai_agents import draft_of_item

from memoryd.cli.importers.items import Item, Said, Skipped, guarded, id_of, label, time_of
from memoryd.cli.importers.source import Source
from memoryd.errors import MemorydError

__all__ = ["read"]


def read(source: Source) -> Iterator[Item]:
    """Yield each item of each session as a message, and what is left out."""
    with source.database() as con:
        for row in source.rows(con, "agent_messages"):
            place = f"session {label(row['session_id'])}, item {row['id']}"
            yield from guarded(_item(row, place), place)


def _item(row: Mapping[str, Any], place: str) -> Iterator[Item]:
    try:
        item = json.loads(row["message_data"])
        draft = draft_of_item(without_data(dict(item)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemorydError):
        yield Skipped(place=place, reason="it is damaged, or no item of a session")
        return
    named = replace(draft, id=id_of(f"{row['session_id']}:{row['id']}"), create_time=time_of(row["created_at"]))
    yield Said(place=place, thread_id=thread_id_of(str(row["session_id"])), draft=named)
