"""What was stored as JSON that is safe to print: times as text, enums by their values, no letter that acts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from memoryd.model.times import rfc3339

__all__ = ["as_json", "readable"]

JOINERS = "\u200c\u200d"  # letters of Persian names and parts of emoji are joined or parted by them


def _plain(value: Any) -> Any:
    """Return a value in JSON's types; keys are the contract's field names, enums lower case, times RFC 3339."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value):
        shown = (item for item in fields(value) if not item.metadata.get("internal"))
        return {item.name: _plain(getattr(value, item.name)) for item in shown}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(_plain(item) for item in value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def as_json(value: Any, *, indent: int | None = 2) -> str:
    """
    Return a value as one JSON document; without an indent on one line.

    What could drive a terminal or turn the order of its letters round is escaped.
    """
    text = json.dumps(_plain(value), ensure_ascii=False, indent=indent)
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(letter if letter.isprintable() or letter == "\n" else _escaped(letter) for letter in text)


def readable(text: str) -> str:
    """Return text of many lines with what could drive a terminal, or turn the order of letters round, written out."""
    return "".join(
        letter if letter.isprintable() or letter in f"\n\t{JOINERS}" else _escaped(letter) for letter in text
    )


def _escaped(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if letter.isascii() else json.dumps(letter)[1:-1]
