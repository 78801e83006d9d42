"""
What a model's reply says: JSON as it was asked for, what is left of JSON that was cut, or plain lines.

A reply is untrusted: nothing of it is believed here, only its form is read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["SaidInReply", "facts_in_reply", "is_json", "text_in_reply", "verdict_in_reply"]

MOST_FACTS = 50  # of one reply
MOST_LINES = 200
_FENCE = re.compile(r"```(?:json)?\s*(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•–—]+|\(?\d{1,3}[.):])\s+")
_NOTHING = re.compile(
    r"^\W*(?:none|null|nothing|empty|n/?a|(?:there (?:is|are) )?no(?:thing)? (?:\w+ )?(?:facts?|information|details?)"
    r"|there is nothing)\b",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"^\W*(?:sure|of course|certainly|okay|ok|here (?:are|is)|here's|i(?:'m| am) (?:sorry|unable|not able)|as an ai"
    r"|i (?:can(?:no|')t|cannot|could not|couldn't|found|will|have (?:read|analy[sz]ed|extracted))|the (?:user|"
    r"conversation|messages?) (?:does not|doesn't|do not|don't|did not|didn't|contains? no)|based on|note that|let me"
    r"|unfortunately|please|facts?\b\W*$|json\b)",
    re.IGNORECASE,
)
"""What models say around an answer."""


@dataclass(frozen=True, slots=True)
class SaidInReply:
    """One fact as a reply has it; `message` is the number that it names, if it names one."""

    fact: str
    message: int | None = None
    category: str = ""
    confidence: float | None = None


def facts_in_reply(text: str) -> list[SaidInReply] | None:
    """Return the facts of a reply; an empty list where it says that there are none, None where it says nothing."""
    said = _THOUGHT.sub("", text).strip()
    whole = _json_in(said)
    if whole is not None:
        return _facts_of(whole)[:MOST_FACTS]
    cut = [*_objects_in(said)]
    if cut:
        return [fact for one in cut if (fact := _fact_of(one)) is not None][:MOST_FACTS]
    if said[:1] in {"{", "["} or not said:
        return None
    if _NOTHING.match(said):
        return []
    lines = [*_lines_of(said)]
    return [SaidInReply(line) for line in lines][:MOST_FACTS] if lines else None


def is_json(text: str) -> bool:
    """Return whether a reply is JSON, or the beginning of it."""
    line = _THOUGHT.sub("", text).strip()
    return _json_in(line) is not None or bool([*_objects_in(line)])


def verdict_in_reply(text: str, verdicts: frozenset[str]) -> str:
    """Return the verdict that a reply names, one of some; empty if it names none, or several."""
    line = _THOUGHT.sub("", text).strip()
    whole = _json_in(line)
    if isinstance(whole, dict):
        named = whole.get("verdict")
        return named.lower() if isinstance(named, str) and named.lower() in verdicts else ""
    found = {word for word in re.findall(r"[a-z_]+", line[:200].lower()) if word in verdicts}
    return found.pop() if len(found) == 1 else ""


def text_in_reply(text: str, name: str) -> str:
    """Return the text that a reply holds under a name, or all of it where it is no JSON; empty where it says none."""
    line = _THOUGHT.sub("", text).strip()
    whole = _json_in(line)
    if isinstance(whole, dict):
        held = whole.get(name)
        return held.strip() if isinstance(held, str) else ""
    return "" if line[:1] in {"{", "["} or _TALK.match(line) else line


def _json_in(text: str) -> Any | None:
    """Return the JSON that a text is, or holds between fences; None if there is none."""
    fenced = _FENCE.search(text)
    for part in (text, fenced[1] if fenced else "", text[text.find("{") : text.rfind("}") + 1]):
        try:
            found = json.loads(part) if part.lstrip()[:1] in {"{", "["} else None
        except (ValueError, RecursionError):
            continue
        if found is not None:
            return found
    return None


def _objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects that are whole in JSON that was cut."""
    decoder = json.JSONDecoder()
    place = text.find("[")
    while place >= 0 and (place := text.find("{", place)) >= 0:
        try:
            found, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        if isinstance(found, dict):
            yield found


def _facts_of(whole: Any) -> list[SaidInReply]:
    items = whole.get("facts", []) if isinstance(whole, dict) else whole
    if not isinstance(items, list):
        return []
    return [fact for item in items[: 2 * MOST_FACTS] if (fact := _fact_of(item)) is not None]


def _fact_of(item: Any) -> SaidInReply | None:
    if isinstance(item, str):
        return SaidInReply(item.strip()) if item.strip() else None
    if not isinstance(item, dict) or not isinstance(item.get("fact"), str) or not item["fact"].strip():
        return None
    number, sure, category = item.get("message"), item.get("confidence"), item.get("category")
    is_number = isinstance(number, int) and not isinstance(number, bool)
    is_sure = isinstance(sure, int | float) and not isinstance(sure, bool) and math.isfinite(sure)
    return SaidInReply(
        item["fact"].strip(),
        number if is_number else None,
        category if isinstance(category, str) else "",
        min(1.0, max(0.0, float(sure))) if is_sure else None,  # type: ignore[arg-type]  # is_sure says so
    )


def _lines_of(text: str) -> Iterator[str]:
    for line in text.splitlines()[:MOST_LINES]:
        plain = _BULLET.sub("", line).strip().strip("*`").strip()
        if plain and not plain.endswith(":") and not _TALK.match(plain) and not _NOTHING.match(plain):
            yield plain
