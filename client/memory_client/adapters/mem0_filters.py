"""mem0's filters: what the daemon can look up goes into its filter, the rest is tested on what it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memoryd.model.query import Filter

__all__ = ["Wanted", "read_filters"]

Test = Callable[[Mapping[str, Any]], bool]


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, wanted: bool(value == wanted),
    "ne": lambda value, wanted: bool(value != wanted),
    "gt": lambda value, wanted: _number(value) > _number(wanted),
    "gte": lambda value, wanted: _number(value) >= _number(wanted),
    "lt": lambda value, wanted: _number(value) < _number(wanted),
    "lte": lambda value, wanted: _number(value) <= _number(wanted),
    "in": lambda value, wanted: value in wanted,
    "nin": lambda value, wanted: value not in wanted,
    "contains": lambda value, wanted: str(wanted) in str(value),
    "icontains": lambda value, wanted: str(wanted).lower() in str(value).lower(),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a filter asks for: whose, what the daemon looks up, and what is tested here."""

    user_id: str | None
    filter: Filter
    tests: tuple[Test, ...]

    @property
    def is_tested(self) -> bool:
        """Whether something is tested here, so that more has to be looked at."""
        return bool(self.tests)

    def admits(self, payload: Mapping[str, Any]) -> bool:
        """Whether a memory with this metadata passes the tests."""
        return all(test(payload) for test in self.tests)


def read_filters(given: Mapping[str, Any], *, show_expired: bool) -> Wanted:
    """Return what filters ask for; ValueError for an operator that is not known."""
    equal: dict[str, Any] = {}
    tests: list[Test] = []
    for key, value in given.items():
        if key == "user_id" or value is None:
            continue
        if _is_plain(key, value):
            equal[key] = value
        else:
            tests.append(_test(key, value))
    user_id = given.get("user_id")
    return Wanted(user_id, Filter(metadata=equal, include_expired=show_expired), tuple(tests))


def _is_plain(key: str, value: Any) -> bool:
    return key not in {"AND", "OR", "NOT"} and value != "*" and isinstance(value, str | int | float | bool)


def _all_of(conditions: Mapping[str, Any]) -> Test:
    tests = [_test(key, value) for key, value in conditions.items()]
    return lambda payload: all(test(payload) for test in tests)


def _test(key: str, wanted: Any) -> Test:
    """Return the test of one condition."""
    if key in {"AND", "OR", "NOT"}:
        if not isinstance(wanted, list) or (not wanted and key != "AND"):
            raise ValueError(f"{key} operator requires a {'' if key == 'AND' else 'non-empty '}list of conditions")
        parts = [_all_of(one) for one in wanted]
        if key == "AND":
            return lambda payload: all(part(payload) for part in parts)
        if key == "OR":
            return lambda payload: any(part(payload) for part in parts)
        return lambda payload: not any(part(payload) for part in parts)
    if isinstance(wanted, Mapping):
        unknown = wanted.keys() - OPERATORS.keys()
        if unknown:
            raise ValueError(f"Unsupported metadata filter operator: {min(unknown)}")
        return lambda payload: all(OPERATORS[name](payload.get(key), one) for name, one in wanted.items())
    if wanted == "*":
        return lambda payload: key in payload
    return lambda payload: payload.get(key) == wanted
