"""
Conditions on metadata, as a filter has them in words: `score >= 3 and source in ("web", "mail") and not draft exists`.

A condition compares a value with others of its type alone: numbers with numbers, texts (by code point) with texts,
true and false with each other. Where a key is missing, or its value is of another type, it does not hold, and so `!=`
does.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.model import limits

__all__ = ["All", "Compare", "Exists", "Not", "OneOf", "Where", "any_of", "kind_of", "parse_where"]

MOST_CONDITIONS = 64
MOST_DEPTH = 16
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<quoted>`[^`]+`)
    |(?P<name>[^\W\d][\w.-]*)
    |(?P<mark><=|>=|!=|<>|==|[=<>(),])
    )""",
    re.VERBOSE,
)
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SAME = {"==": "=", "<>": "!="}
_CONSTANTS = {"true": True, "false": False, "null": None}
_KEYWORDS = frozenset({"and", "or", "not", "in", "exists", *_CONSTANTS})


def kind_of(value: object) -> str:
    """Return what a value of JSON is compared as."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "null" if value is None else "other"


@dataclass(frozen=True, slots=True)
class Compare:
    """A value stands to another one as an operator says: =, <, <=, >, >=."""

    key: str
    op: str
    value: str | float | bool | None

    def holds(self, metadata: Mapping[str, Any]) -> bool:
        """Whether it does in some metadata."""
        return self.key in metadata and self.admits(metadata[self.key])

    def admits(self, found: Any) -> bool:
        """Whether a value of the key is as it says."""
        return kind_of(found) == kind_of(self.value) and _COMPARED[self.op](found, self.value)


@dataclass(frozen=True, slots=True)
class Exists:
    """A key is there, whatever its value."""

    key: str

    def holds(self, metadata: Mapping[str, Any]) -> bool:
        """Whether it is."""
        return self.key in metadata

    def admits(self, found: Any) -> bool:  # noqa: ARG002  as of Compare
        """Whether a value of the key is as it says: any is."""
        return True


@dataclass(frozen=True, slots=True)
class All:
    """Every one of some conditions holds."""

    parts: tuple[Where, ...]

    def holds(self, metadata: Mapping[str, Any]) -> bool:
        """Whether all do."""
        return all(part.holds(metadata) for part in self.parts)


@dataclass(frozen=True, slots=True)
class OneOf:
    """At least one of some conditions holds."""

    parts: tuple[Where, ...]

    def holds(self, metadata: Mapping[str, Any]) -> bool:
        """Whether one does."""
        return any(part.holds(metadata) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """A condition does not hold."""

    part: Where

    def holds(self, metadata: Mapping[str, Any]) -> bool:
        """Whether it does not."""
        return not self.part.holds(metadata)


Where = Compare | Exists | All | OneOf | Not


def any_of(parts: tuple[Where, ...]) -> Where:
    """Return what holds where one of some does."""
    return parts[0] if len(parts) == 1 else OneOf(parts)


@lru_cache(maxsize=256)
def parse_where(text: str, name: str = "where") -> Where:
    """Return the condition that a text says; InvalidArgument says where it is none, LimitExceeded above 64 or 4 KiB."""
    if len(text.encode()) > limits.MAX_QUERY_BYTES:
        raise LimitExceeded(f"{name} has more than {limits.MAX_QUERY_BYTES} bytes", field=name, limit=name)
    return _Parser(text, name).whole()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def _tokens(text: str, name: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            while text[at].isspace():
                at += 1
            raise InvalidArgument(f"{name} cannot be read at character {at + 1}: {text[at : at + 20]!r}", field=name)
        kind = found.lastgroup or ""
        yield _Token(kind, found[kind], found.start(kind))
        at = found.end()
    yield _Token("end", "", len(text))


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._tokens = list(_tokens(text, name))
        self._n, self._conditions = 0, 0

    def whole(self) -> Where:
        made = self._either(0)
        if self._next.kind != "end":
            raise self._wrong("and, or, or the end")
        return made

    @property
    def _next(self) -> _Token:
        return self._tokens[self._n]

    def _wrong(self, wanted: str) -> InvalidArgument:
        token = self._next
        found = f"stands {token.text[:20]!r}" if token.kind != "end" else "it ends"
        return InvalidArgument(
            f"{self._name} must have {wanted} at character {token.at + 1}, where {found}; for example:"
            ' score >= 3 and source in ("web", "mail")',
            field=self._name,
        )

    def _takes(self, *words: str) -> str:
        """Take one of some words or marks, if it stands there, and return it; "" for none."""
        token = self._next
        word = token.text.lower() if token.kind in {"name", "mark"} else ""
        if word in words:
            self._n += 1
            return word
        return ""

    def _either(self, depth: int) -> Where:
        parts = [self._both(depth)]
        while self._takes("or"):
            parts.append(self._both(depth))
        return any_of(tuple(parts))

    def _both(self, depth: int) -> Where:
        parts = [self._one(depth)]
        while self._takes("and"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _one(self, depth: int) -> Where:
        if depth > MOST_DEPTH:
            raise LimitExceeded(
                f"{self._name} is nested more than {MOST_DEPTH} deep", field=self._name, limit=self._name
            )
        if self._takes("not"):
            return Not(self._one(depth + 1))
        if self._takes("("):
            made = self._either(depth + 1)
            if not self._takes(")"):
                raise self._wrong("a )")
            return made
        return self._condition()

    def _condition(self) -> Where:
        key = self._key()
        if self._takes("exists"):
            return self._counted(Exists(key))
        negated = bool(self._takes("not"))
        if self._takes("in"):
            made = any_of(tuple(self._counted(Compare(key, "=", value)) for value in self._values()))
            return Not(made) if negated else made
        op = "" if negated else self._takes(*_COMPARED, *_SAME, "!=")
        if not op:
            raise self._wrong("in" if negated else "a comparison (=, !=, <, <=, >, >=), in, or exists")
        op = _SAME.get(op, op)
        value = self._value()
        if op == "!=":
            return Not(self._counted(Compare(key, "=", value)))
        if op != "=" and kind_of(value) not in {"number", "text"}:
            raise InvalidArgument(f"{self._name}: {op} compares numbers or texts", field=self._name)
        return self._counted(Compare(key, op, value))

    def _counted(self, made: Compare | Exists) -> Compare | Exists:
        self._conditions += 1
        if self._conditions > MOST_CONDITIONS:
            raise LimitExceeded(
                f"{self._name} has more than {MOST_CONDITIONS} conditions", field=self._name, limit=self._name
            )
        return made

    def _key(self) -> str:
        token = self._next
        if token.kind == "quoted":
            self._n += 1
            return token.text[1:-1]
        if token.kind != "name" or token.text.lower() in _KEYWORDS:
            raise self._wrong("a key of metadata (in ` ` where it is no plain word)")
        self._n += 1
        return token.text

    def _values(self) -> Iterator[str | float | bool | None]:
        if not self._takes("("):
            raise self._wrong("a (")
        yield self._value()
        while self._takes(","):
            yield self._value()
        if not self._takes(")"):
            raise self._wrong("a , or a )")

    def _value(self) -> str | float | bool | None:
        token = self._next
        if token.kind == "number":
            self._n += 1
            return float(token.text)
        if token.kind == "text":
            self._n += 1
            return self._unquoted(token)
        if token.kind == "name" and token.text.lower() in _CONSTANTS:
            self._n += 1
            return _CONSTANTS[token.text.lower()]
        raise self._wrong("a number, a text in quotes, true, false or null")

    def _unquoted(self, token: _Token) -> str:
        text = token.text
        if text[0] == "'":
            text = '"' + text[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'
        try:
            return str(json.loads(text))
        except ValueError:
            raise InvalidArgument(
                f"{self._name} has a text that is not written as in JSON at character {token.at + 1}", field=self._name
            ) from None
