"""
What a request asked for, as a hash: canonical bytes with a version, so that a retry is recognised after an upgrade.

A field at its default is left out: a field that a later version adds changes nothing for requests that do not use it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from memoryd.model.times import to_us

__all__ = ["is_payload", "payload_hash"]

VERSION = "2"  # of the canonical form; a hash without a version is of the form before
HASH_BYTES = 16


def payload_hash(payload: object) -> str:
    """Return the hash of a payload: its version, a colon, and 32 hexadecimal digits."""
    text = json.dumps(_canonical(payload), ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return f"{VERSION}:{hashlib.blake2b(text.encode(), digest_size=HASH_BYTES).hexdigest()}"


def is_payload(payload: object, known: str, first_form: object = None) -> bool:
    """Whether a payload has this hash, in the form of any version; `first_form` is it where the first form differs."""
    if known.startswith(f"{VERSION}:"):
        return payload_hash(payload) == known
    return hashlib.blake2b(repr(first_form or payload).encode(), digest_size=HASH_BYTES).hexdigest() == known


def _canonical(value: Any) -> Any:
    """Return a value in JSON's types: dataclasses by their fields that are set, sets in order."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _canonical(getattr(value, field.name))
            for field in fields(value)
            if not _is_default(value, field)
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return to_us(value)
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted((_canonical(item) for item in value), key=str)
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return value


def _is_default(value: Any, field: Field[Any]) -> bool:
    default = field.default if field.default is not MISSING else MISSING
    if default is MISSING and field.default_factory is not MISSING:
        default = field.default_factory()
    return default is not MISSING and bool(getattr(value, field.name) == default)
