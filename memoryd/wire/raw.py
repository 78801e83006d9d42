"""Counting what a message holds before it is read: a few bytes an item become a kilobyte each in memory."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from memoryd.errors import InvalidArgument, LimitExceeded

__all__ = ["Counted", "check_counts", "counted"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types of protobuf
MOST_PARTS = 1024  # of any list of a request; the longest that one may hold has 1,000 items
MOST_PLAIN = 64  # fields that are no lists, more than any message has
MOST_FIELDS = 32_768  # of a whole request; 100 memories with as much as they may hold have 20,000


class Counted(NamedTuple):
    """A field of a message that is counted, or holds some that are."""

    name: str
    most: int
    is_packed: bool
    """Whether its numbers may come in one piece, of at least a byte each."""
    parts: Mapping[int, Counted]
    """What is counted of each item, by the number of the field."""
    is_list: bool


def counted(message: Any, most: Mapping[str, int]) -> Mapping[int, Counted]:
    """Return what is counted of messages of a descriptor, by the number of the field; `most` by name, if other."""
    found: dict[int, Counted] = {}
    for field in message.fields:
        inner = field.message_type
        parts = {} if inner is None or inner.GetOptions().map_entry else counted(inner, most)
        if field.is_repeated or parts:
            least = most.get(field.name, MOST_PARTS) if field.is_repeated else 1  # the parser joins what comes again
            is_packed = field.is_repeated and inner is None and field.cpp_type != field.CPPTYPE_STRING
            found[field.number] = Counted(field.name, least, is_packed, parts, is_list=field.is_repeated)
    return found


def check_counts(raw: bytes, fields: Mapping[int, Counted]) -> None:
    """Raise LimitExceeded where a request holds more of a field than it may; InvalidArgument for what is no message."""
    _check(raw, fields, "", Counter())


def _check(raw: bytes, fields: Mapping[int, Counted], path: str, whole: Counter[str]) -> None:
    counts: Counter[int] = Counter()
    for number, piece in _fields_of(raw):
        field = fields.get(number)
        size = max(1, len(piece)) if field is not None and field.is_packed else 1
        whole["fields"] += size
        if whole["fields"] > MOST_FIELDS:
            raise LimitExceeded(f"the request has more than {MOST_FIELDS} fields", limit="request_fields")
        place = number if field is not None else 0  # all that are not counted together
        counts[place] += size
        if field is None and counts[place] > MOST_PLAIN:
            name = path.rstrip(".")
            raise LimitExceeded(
                f"{name or 'the request'} has more than {MOST_PLAIN} fields", field=name, limit="request_fields"
            )
        if field is not None and counts[place] > field.most:
            name = f"{path}{field.name}"
            raise LimitExceeded(f"{name} has more than {field.most} items", field=name, limit=field.name)
        if field is not None and field.parts:
            inner = f"{path}{field.name}[{counts[place] - 1}]" if field.is_list else f"{path}{field.name}"
            _check(piece, field.parts, f"{inner}.", whole)


def _fields_of(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each field of a message, with its bytes where it has a length; up to what is none."""
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
