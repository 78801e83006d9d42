"""
A repr for people: of a value with many fields only those that say something.

Not for what a caller asks with: the first form of payload hashes, which stores hold, is made of its repr.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from datetime import datetime
from enum import Enum
from typing import Any

__all__ = ["ShortRepr"]


class ShortRepr:
    """A dataclass that is shown as the call that makes it, without fields that have their default."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _shown(self)


def _shown(value: Any) -> str:
    said = []
    for item in fields(value):
        values = getattr(value, item.name)
        default = item.default if item.default_factory is MISSING else item.default_factory()
        if not item.repr or item.metadata.get("internal") or (default is not MISSING and values == default):
            continue
        said.append(f"{item.name}={_said(values)}")
    return f"{type(value).__name__}({', '.join(said)})"


def _said(values: Any) -> str:
    if isinstance(values, datetime):
        return f"{values:%Y-%m-%dT%H:%M:%SZ}"
    return values.value if isinstance(values, Enum) else repr(values)
