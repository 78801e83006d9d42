"""Counting what a message holds before it is read: a few bytes an item become a kilobyte each in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from memoryd.errors import InvalidArgument

__all__ = ["count_fields", "fields_of"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types of protobuf
_OTHER_FIELDS = 64  # more than any request has beside its items; what has more is counted as too many


def count_fields(raw: bytes, number: int, *, most: int) -> int:
    """Return how often a field of that number stands in a message, at the most `most` + 1; too many others count so."""
    found = others = 0
    for one, _ in fields_of(raw):
        found += one == number
        others += one != number
        if others > _OTHER_FIELDS:
            return most + 1
        if found > most:
            break
    return found


def fields_of(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each field of a message, with its bytes where it is a message itself; up to what is none."""
    at = 0
    with contextlib.suppress(IndexError):  # not a message: the parser says so
        while at < len(raw):
            tag, at = _varint(raw, at)
            kind = tag & 7
            piece = b""
            if kind == _BYTES:
                size, at = _varint(raw, at)
                piece = raw[at : at + size]
                at += size
            elif kind == _VARINT:
                _, at = _varint(raw, at)
            elif kind in {_FIXED64, _FIXED32}:
                at += 8 if kind == _FIXED64 else 4
            else:  # a group, which no message of the contract has, and which the parser would skip
                raise InvalidArgument("the request is not the message that this method takes")
            yield tag >> 3, piece


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends; IndexError if it does not."""
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004  the last byte of a number
            return value, at
        shift += 7
        if shift > 63:  # noqa: PLR2004  longer than any number
            raise IndexError
