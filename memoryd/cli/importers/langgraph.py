"""Items of a LangGraph store, as JSON: `[item.dict() for item in store.search((), limit=…)]`, or one on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from memory_client.adapters.langgraph_items import ROOT, item_content, item_path

from memoryd.cli.importers.items import Item, Skipped, guarded, kept, label, time_of
from memoryd.cli.importers.source import Source

__all__ = ["read"]


def read(source: Source) -> Iterator[Item]:
    """Yield each item as the note that the adapter for LangGraph reads."""
    with source.path.open("rb") as file:
        if source.begins_list(file):
            for number, record in source.records(file):
                yield from guarded(_item(record, f"item {number}"), f"item {number}")
            return
    for number, value in source.lines():
        yield from guarded(_item(value, f"line {number}"), f"line {number}")


def _item(record: object, place: str) -> Iterator[Item]:
    namespace = record.get("namespace") if isinstance(record, Mapping) else None
    if (
        not isinstance(record, Mapping)
        or not isinstance(namespace, list)
        or not all(isinstance(part, str) and part for part in namespace)
        or not isinstance(record.get("key"), str)
        or not isinstance(record.get("value"), Mapping)
    ):
        yield Skipped(place=place, reason="it is no item of a store")
        return
    place = f"item {label('/'.join((*namespace, record['key'])))}"
    value = dict(record["value"])
    try:
        path = item_path(ROOT, tuple(namespace), record["key"])
        searched = json.dumps(value, sort_keys=True, ensure_ascii=False)
        content = item_content(tuple(namespace), record["key"], value, searched)
    except (ValueError, TypeError, RecursionError):
        yield Skipped(place=place, reason="its namespace has too many parts")
        return
    made = time_of(record.get("created_at"))
    yield from kept(path, content, place, create_time=made, update_time=time_of(record.get("updated_at")) or made)
