"""
Columns of many rows as arrays in the server's binary form.

psycopg writes a list of texts as one text that it escapes element by element, which takes most of the time of a batch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper
from psycopg.pq import Format

__all__ = ["array_of"]

BEGIN = datetime(2000, 1, 1)  # noqa: DTZ001  from when the server counts; columns hold UTC without saying so
MICROSECOND = timedelta(microseconds=1)
NULL = b"\xff\xff\xff\xff"  # a length of -1
_HEAD, _INT8, _INT4 = struct.Struct(">iiIii"), struct.Struct(">q"), struct.Struct(">i")
# by the name of a type: the number of it, that of arrays of it, and how a value is written
_TYPES: Mapping[str, tuple[int, int, Callable[[Any], bytes]]] = {
    "text": (25, 1009, str.encode),
    "bytea": (17, 1001, bytes),
    "int8": (20, 1016, _INT8.pack),
    "int4": (23, 1007, _INT4.pack),
    "timestamp": (1114, 1115, lambda time: _INT8.pack((time - BEGIN) // MICROSECOND)),
    "uuid": (2950, 2951, lambda key: bytes(key.bytes)),
}


class _Array:
    """An array as the server takes it."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


def _registered(name: str, oid: int) -> type[_Array]:
    """Return a class of arrays, which connections write as such of one type."""
    made = type(f"{name.capitalize()}Array", (_Array,), {"__slots__": ()})

    class OfType(Dumper):
        format = Format.BINARY

        def dump(self, obj: _Array) -> bytes:
            return obj.data

        def __init__(self, cls: type, context: AdaptContext | None = None) -> None:
            super().__init__(cls, context)
            self.oid = oid

    psycopg.adapters.register_dumper(made, OfType)
    return made


_CLASSES = {name: _registered(name, of_arrays) for name, (_, of_arrays, _) in _TYPES.items()}


def array_of(kind: str, values: Iterable[Any]) -> _Array:
    """Return values of a type of `_TYPES`, None among them, as one parameter."""
    element, _, written = _TYPES[kind]
    held: Sequence[bytes | None] = [None if value is None else written(value) for value in values]
    parts = [_HEAD.pack(1, None in held, element, len(held), 1)]
    for one in held:
        if one is None:
            parts.append(NULL)
        else:
            parts += (_INT4.pack(len(one)), one)
    return _CLASSES[kind](b"".join(parts))
