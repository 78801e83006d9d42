"""Plays scenes: in Python over any way of calling a method with JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

SCENES = json.loads((Path(__file__).parent / "scenes.json").read_text(encoding="utf-8"))
Call = Callable[[str, dict], tuple[str, str, dict]]
"""A method and its request give the reason of a failure, its field, and the answer."""


def filled(value: Any, kept: dict[str, Any]) -> Any:
    """Return a value in which names such as $id stand for what was kept."""
    if isinstance(value, str) and value.startswith("$"):
        return kept.get(value[1:], value)
    if isinstance(value, list):
        return [filled(one, kept) for one in value]
    if isinstance(value, dict):
        return {name: filled(one, kept) for name, one in value.items()}
    return value


def difference(expected: Any, found: Any, at: str = "answer") -> str:
    """Return where an answer is not what was expected; "": nowhere."""
    if expected == "$any":
        return "" if found else f"{at} is empty"
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return f"{at} is {found}"
        parts = (
            difference(one, other, f"{at}[{n}]") for n, (one, other) in enumerate(zip(expected, found, strict=True))
        )
        return next(filter(None, parts), "")
    if isinstance(expected, dict):
        if not expected and found:
            return f"{at} is {found}"
        parts = (difference(one, (found or {}).get(name), f"{at}.{name}") for name, one in expected.items())
        return next(filter(None, parts), "")
    return "" if expected == found else f"{at} is {found!r}, not {expected!r}"


def play(scene: dict[str, Any], call: Call, user: str) -> None:
    """Play one scene, and fail where an answer is another one."""
    kept: dict[str, Any] = {"user": user}
    for n, step in enumerate(scene["steps"], 1):
        reason, field, answer = call(step["call"], filled(step.get("request", {}), kept))
        told = f"{reason} {field}" if " " in step.get("error", "") else reason
        assert step.get("error", "") == told, (n, step["call"], told)
        if not reason:
            for name, path in step.get("keep", {}).items():
                value: Any = answer
                for part in path.split("."):
                    value = value[part]
                kept[name] = value
            wrong = difference(filled(step.get("answer"), kept), answer) if "answer" in step else ""
            assert wrong == "", (n, step["call"], wrong)
