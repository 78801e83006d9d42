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
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from memoryd.http.failures import Failure
from memoryd.wire.raw import MOST_FIELDS, MOST_PARTS

__all__ = ["parsed"]

MOST_TOLD = 500  # characters of what is wrong with a body
MASKS = frozenset({"updateMask", "update_mask"})  # fields that name fields
LIKE = 0.6  # of a name that may have been meant
_IN_FIELD = re.compile(r"Failed to parse (\w+) field: ")
_AT = re.compile(r" at \w+\.([\w.\[\]]+?)\.*$")
_UNKNOWN = re.compile(r'Message type "[\w.]+" has no field named "(?P<name>[^"]*)"')
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
_TIME = "google.protobuf.Timestamp"


def parsed(request: type[Message], body: bytes) -> Message:
    """Return a request from its JSON; Failure for what is none, with the field where it is known."""
    message = request()
    try:
        text = body.decode("utf-8-sig").strip() or "{}"
        if not text.startswith("{"):
            raise refused("the body must be a JSON object")
        json_format.ParseDict(_Reader().read(text), message)
    except UnicodeDecodeError as error:
        raise refused(f"the body is no text in utf-8: {error.reason}") from None
    except json.JSONDecodeError as error:
        raise refused(f"the body is no JSON: {error}") from None
    except SystemError:  # of the parser, for what it cannot say
        raise refused("the body is no such message") from None
    except RecursionError:
        raise refused("the body is nested too deeply") from None
    except (json_format.ParseError, ValueError, TypeError) as error:
        raise _explained(str(error), request.DESCRIPTOR) from None
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
            made[name] = _camel(value) if name in MASKS and isinstance(value, str) else value
        return made


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


def _explained(told: str, descriptor: Any) -> Failure:
    """Return what is wrong with which field, and what it must be, from what the parser says and the contract knows."""
    line = told.partition("\n")[0].partition(" Available Fields")[0]
    names = _IN_FIELD.findall(line)
    unknown = _UNKNOWN.search(line)
    if unknown is not None:
        holder = _reached(descriptor, names)
        near = get_close_matches(unknown["name"], _names_of(holder), n=1, cutoff=LIKE) if holder is not None else []
        meant = f"; did you mean {near[0]!r}?" if near else ""
        where = ".".join(names) or "the request"
        return refused(f"{where} has no field named {unknown['name']!r}{meant}", ".".join([*names, unknown["name"]]))
    at = _AT.search(line)
    path = at[1] if at is not None else ".".join(names)
    if "surrogate" in line:
        return refused(f"{path} has half of a surrogate pair", path)
    names = re.sub(r"\[\d+\]", "", path).split(".")
    holder = _reached(descriptor, names[:-1])
    field = _field(holder, names[-1]) if holder is not None else None
    return refused(f"{path} must be {_kind(field)}" if field is not None else line, path)


def _reached(descriptor: Descriptor, names: list[str]) -> Descriptor | None:
    """Return the message that fields lead to, one in the other."""
    at: Descriptor | None = descriptor
    for name in names:
        field = None if at is None else _field(at, name)
        at = None if field is None else field.message_type
    return at


def _field(descriptor: Descriptor, name: str) -> FieldDescriptor | None:
    return descriptor.fields_by_name.get(name) or descriptor.fields_by_camelcase_name.get(name)


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
    return "a time such as 2026-05-03T12:00:00Z" if field.message_type.full_name == _TIME else "an object"
