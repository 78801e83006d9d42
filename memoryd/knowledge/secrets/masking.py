"""
Taking credentials out of a text that is kept: what was found is replaced, the rest stays as it stands.

The detector says whether a text holds a credential, not where. So the shortest beginning of a text that holds one is
sought, then the shortest end of that. If one word alone in it can be the credential it is masked, else all of it. A
text in which something is still found after that is masked as a whole: nothing gets through for want of a place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["MASK", "mask_json", "mask_text"]

MASK = "[masked]"
MOST_MASKED = 20  # credentials in one line; with more the line is masked
MOST_DEPTH = 100  # of JSON; what lies deeper is masked
_KEY_BLOCK = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)", re.DOTALL
)
_MADE_UP = re.compile(r"(?=.*\d)(?=.*[^\W\d_])")
LONG_LINE = 1000  # characters; what is longer is looked at in parts
_WORDS = re.compile(r"\s+|\S+")

Find = Callable[[str], object]


def mask_text(text: str, find: Find) -> str:
    """Return a text without credentials; `find` says, by something true, that a text holds one."""
    if not text or not find(text):
        return text
    masked = _KEY_BLOCK.sub(MASK, text)
    masked = "".join(_mask_run(piece, find) if find(piece) else piece for piece in _pieces(masked))
    if find(masked):  # it goes over several pieces
        masked = _mask_run(masked, find)
    return MASK if find(masked) else masked


def _pieces(text: str) -> Iterator[str]:
    """Yield the lines of a text, of long ones parts that end between words."""
    for line in text.splitlines(keepends=True):
        at = 0
        while len(line) - at > LONG_LINE:
            cut = line.rfind(" ", at + 1, at + LONG_LINE)
            end = at + LONG_LINE if cut < 0 else cut
            yield line[at:end]
            at = end
        yield line[at:]


def _mask_run(text: str, find: Find) -> str:
    """Return a text with MASK in place of each credential, or MASK alone."""
    ending = text[len(text.rstrip("\r\n")) :]
    words = _WORDS.findall(text.rstrip("\r\n"))
    for _ in range(MOST_MASKED):
        if not find("".join(words)):
            return "".join(words) + ending
        words = _mask_first(words, find)
    return MASK + ending


def _mask_first(words: list[str], find: Find) -> list[str]:
    """Return words with the first credential masked: of the shortest run that holds one, the word that must be it."""
    low, high = 1, len(words)
    while low < high:
        middle = (low + high) // 2
        if find("".join(words[:middle])):
            high = middle
        else:
            low = middle + 1
    end = low
    low, high = 0, end - 1
    while low < high:
        middle = (low + high + 1) // 2
        if find("".join(words[middle:end])):
            low = middle
        else:
            high = middle - 1
    run = words[low:end]
    likely = [n for n, word in enumerate(run) if _MADE_UP.search(word) and not find("".join(_without(run, n)))]
    if len(likely) == 1:
        return [*words[:low], *_without(run, likely[0]), *words[end:]]
    return [*words[:low], MASK, *words[end:]]


def _without(run: list[str], n: int) -> list[str]:
    return [*run[:n], MASK, *run[n + 1 :]]


def mask_json(text: str, find: Find) -> str:
    """
    Return JSON without credentials; what holds none stays letter by letter as it was.

    A value is looked at by itself and together with its key. What is no JSON is masked as text.
    """
    if not text:
        return text
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return mask_text(text, find)
    masked, changed = _masked(held, find, "", 0)
    if changed:
        return json.dumps(masked, ensure_ascii=False)
    return text


def _masked(value: Any, find: Find, key: str, depth: int) -> tuple[Any, bool]:
    if depth > MOST_DEPTH:
        return MASK, True
    if isinstance(value, str):
        return _masked_value(value, find, key)
    if isinstance(value, dict):
        pairs = {}
        changed = False
        for name, item in value.items():
            told = mask_text(name, find)
            pairs[told], is_changed = _masked(item, find, name, depth + 1)
            changed = changed or is_changed or told != name
        return pairs, changed
    if isinstance(value, list):
        items = [_masked(item, find, key, depth + 1) for item in value]
        return [item for item, _ in items], any(changed for _, changed in items)
    if isinstance(value, int | float) and not isinstance(value, bool) and key and find(f"{key}: {value}"):
        return MASK, True
    return value, False


def _masked_value(value: str, find: Find, key: str) -> tuple[Any, bool]:
    if value[:1] in "[{" and len(value) > 1:  # JSON in JSON, as the arguments of tools are
        inner = mask_json(value, find)
        if inner != value:
            return inner, True
    if key and value and find(json.dumps({key: value}, ensure_ascii=False)) and not find(value):
        return MASK, True
    masked = mask_text(value, find)
    return masked, masked != value
