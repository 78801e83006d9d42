"""
Requests in JSON: bounded before they are messages, and told by the field where they are none.

A few bytes of JSON become a kilobyte in memory, so lists and objects are counted while they are read, by the bounds
that the daemon has for requests in binary.
"""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from memoryd.http.failures import Failure
from memoryd.wire.raw import MOST_FIELDS, MOST_PARTS

__all__ = ["parsed"]

MOST_NAME = 128  # characters of a name that may have been meant
MOST_TOLD = 500  # characters of what is wrong with a body
LIKE = 0.6  # of a name that may have been meant
_KINDS = {
    FieldDescriptor.CPPTYPE_STRING: "a string", FieldDescriptor.CPPTYPE_BOOL: "true or false",
    FieldDescriptor.CPPTYPE_DOUBLE: "a number", FieldDescriptor.CPPTYPE_FLOAT: "a number",
    FieldDescriptor.CPPTYPE_INT32: "a whole number of 32 bits",
    FieldDescriptor.CPPTYPE_UINT32: "a whole number of 32 bits",
    FieldDescriptor.CPPTYPE_INT64: "a whole number of 64 bits",
    FieldDescriptor.CPPTYPE_UINT64: "a whole number of 64 bits",
}  # fmt: skip
_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")
_TIME, _MASK = "google.protobuf.Timestamp", "google.protobuf.FieldMask"
_KNOWN = {
    _TIME: "a time with a zone, such as 2026-05-03T12:00:00Z",
    _MASK: 'a string of names of fields with commas between them: "tags,expireTime"',
}


def parsed(request: type[Message], body: bytes) -> Message:
    """Return a request from its JSON; Failure for what is none, with the field where it is known."""
    message = request()
    read: dict[str, Any] = {}
    try:
        text = body.decode("utf-8-sig").strip() or "{}"
        if not text.startswith("{"):
            raise refused("the body must be a JSON object")
        read = _Reader().read(text)
        for name in _masks_of(request.DESCRIPTOR) & read.keys():
            read[name] = _camel(read[name]) if isinstance(read[name], str) else read[name]
        json_format.ParseDict(read, message)
    except UnicodeDecodeError as error:
        raise refused(f"the body is no text in utf-8: {error.reason}") from None
    except json.JSONDecodeError as error:
        raise refused(f"the body is no JSON: {error}") from None
    except SystemError:  # of the parser, for what it cannot say
        raise refused("the body is no such message") from None
    except RecursionError:
        raise refused("the body is nested too deeply") from None
    except (json_format.ParseError, ValueError, TypeError, OverflowError):
        raise _fault(request, read, "") or refused("the body is no such message") from None
    return message


def refused(text: str, field: str = "") -> Failure:
    """Return a failure of a request that is none."""
    shown = text.encode(errors="replace").decode()[:MOST_TOLD]
    return Failure.at_the_door("invalid_argument", "INVALID_FIELD", shown, field=field)


class _Reader:
    """Reads JSON, and counts what it holds."""

    def __init__(self) -> None:
        self._count = 0
        self._is_escaped = False

    def read(self, text: str) -> Any:
        self._is_escaped = _ESCAPED.search(text) is not None  # only so half of a pair comes in
        return json.loads(text, object_pairs_hook=self._object)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self._count += 1 + len(pairs)
        if self._count > MOST_FIELDS:
            raise _too_many(f"the request has more than {MOST_FIELDS} fields", "request_fields")
        made: dict[str, Any] = {}
        for name, value in pairs:
            if name in made:
                raise refused(f"{name} is there twice", name)
            if self._is_escaped:
                _check_text(name, value)
            if isinstance(value, list) and len(value) > MOST_PARTS:
                raise _too_many(f"{name} has more than {MOST_PARTS} items", name)
            made[name] = value
        return made


def _masks_of(descriptor: Any) -> set[str]:
    """Return the names of the fields of a request that name fields, in both spellings."""
    masks = [field for field in descriptor.fields if field.message_type and field.message_type.full_name == _MASK]
    return {name for field in masks for name in (field.name, field.json_name)}


def _camel(names: str) -> str:
    """Return names of fields as JSON has them: a mask may have those of the contract too, as every object may."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), names)


def _check_text(name: str, value: Any) -> None:
    """Raise Failure for half of a surrogate pair: the parser of messages ends in an error of its own, or changes it."""
    if _HALF.search(name):
        raise refused("a name has half of a surrogate pair")
    texts = value if isinstance(value, list) else [value]
    if any(isinstance(text, str) and _HALF.search(text) for text in texts):
        raise refused(f"{name} has half of a surrogate pair", name)


def _too_many(text: str, limit: str) -> Failure:
    return Failure.at_the_door("resource_exhausted", "LIMIT_EXCEEDED", text, limit=limit)


def _fault(kind: type[Message], given: dict[str, Any], at: str) -> Failure | None:
    """Return what is wrong with which field, by trying each; None where it is none of them alone."""
    seen: dict[str, str] = {}
    for name, value in given.items():
        where = f"{at}.{name}" if at else name
        field = _field(kind.DESCRIPTOR, name)
        if field is None:
            return _unknown(kind.DESCRIPTOR, name, at)
        whole = field.containing_oneof.name if field.containing_oneof is not None else field.name
        if whole in seen:
            return refused(f"{where} and {seen[whole]} are one field, or exclude each other", where)
        seen[whole] = name
        found = None if value is None else _fault_of(kind, field, value, where)
        if found is not None:
            return found
    return None


def _fault_of(kind: type[Message], field: FieldDescriptor, value: Any, where: str) -> Failure | None:
    inner = field.message_type
    is_map = inner is not None and inner.GetOptions().map_entry
    if field.is_repeated and not is_map:
        if not isinstance(value, list):
            return refused(f"{where} must be {_kind(field)}", where)
        faults = (_fault_of_one(kind, field, item, f"{where}[{n}]", is_item=True) for n, item in enumerate(value))
        return next((fault for fault in faults if fault is not None), None)
    return _fault_of_one(kind, field, value, where, is_item=False)


def _fault_of_one(
    kind: type[Message], field: FieldDescriptor, value: Any, where: str, *, is_item: bool
) -> Failure | None:
    inner = field.message_type
    if inner is not None and not inner.GetOptions().map_entry and inner.full_name not in {_TIME, _MASK}:
        if not isinstance(value, dict):
            return refused(f"{where} must be an object", where)
        return _fault(GetMessageClass(inner), value, where)
    try:
        json_format.ParseDict({field.json_name: [value] if is_item else value}, kind())
    except (json_format.ParseError, ValueError, TypeError, OverflowError, SystemError, AttributeError):
        return refused(f"{where} must be {_kind_of_one(field) if is_item else _kind(field)}", where)
    return None


def _unknown(descriptor: Any, name: str, at: str) -> Failure:
    said = name[:MOST_NAME]
    near = get_close_matches(said, _names_of(descriptor), n=1, cutoff=LIKE)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return refused(f"{at or 'the request'} has no field named {said!r}{meant}", f"{at}.{said}" if at else said)


def _field(descriptor: Any, name: str) -> FieldDescriptor | None:
    found: FieldDescriptor | None = descriptor.fields_by_name.get(name) or descriptor.fields_by_camelcase_name.get(name)
    return found


def _names_of(descriptor: Any) -> list[str]:
    return [field.json_name for field in descriptor.fields]


def _kind(field: FieldDescriptor) -> str:
    """Return what JSON has to say for a field."""
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return f"an object, and each value of it {_kind(inner.fields_by_name['value'])}"
    one = _kind_of_one(field)
    return f"a list, and each item of it {one}" if field.is_repeated else one


def _kind_of_one(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return f"one of {', '.join(value.name for value in field.enum_type.values if value.number)}"
    if field.message_type is None:
        return _KINDS[field.cpp_type]
    return _KNOWN.get(field.message_type.full_name, "an object")
