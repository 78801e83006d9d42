"""Metadata on the wire: texts as a map, which every language has, and other values of JSON as one object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memoryd.errors import InvalidArgument

__all__ = ["metadata_from_pb", "texts_of", "values_to_json"]


def texts_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of metadata that are texts."""
    return {key: value for key, value in metadata.items() if isinstance(value, str)}


def values_to_json(metadata: Mapping[str, Any]) -> str:
    """Return the values of metadata that are no texts, as a JSON object; "" where there is none."""
    values = {key: value for key, value in metadata.items() if not isinstance(value, str)}
    try:
        return json.dumps(values, ensure_ascii=False, allow_nan=False) if values else ""
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgument("metadata has a value that cannot be written as JSON", field="metadata") from None


def metadata_from_pb(message: Any) -> dict[str, Any]:
    """Return metadata, texts and other values together; InvalidArgument where it is malformed."""
    metadata: dict[str, Any] = dict(message.metadata)
    if not message.metadata_json:
        return metadata
    try:
        values = json.loads(message.metadata_json)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InvalidArgument("metadata_json is no JSON object", field="metadata_json")
    if not metadata.keys().isdisjoint(values):
        raise InvalidArgument("metadata_json has a key that metadata has too", field="metadata_json")
    return metadata | values
