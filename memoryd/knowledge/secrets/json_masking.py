"""
Taking credentials out of JSON: strings and numbers that are credentials are replaced where they stand.

All else stays letter by letter as it was written: the order and the spaces, numbers of any size, keys that come twice.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from memoryd.knowledge.secrets.masking import MASK, Looks, mask_text

__all__ = ["mask_json"]

_PIECE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_NAMES = frozenset({"key", "name", "label", "field", "title", "variable", "env"})
_VALUES = frozenset({"value", "val", "text", "content"})
MOST_NAME = 128  # characters at the beginning of a name, by which it says what stands next to it
FEWEST_OF_A_CARD = 13  # figures
MOST_LAYERS = 4  # of JSON within strings of JSON; what lies deeper is looked at as text


@dataclass(slots=True)
class _Place:
    """An object or a list that is being read: what was said in it last, which tells what the next value is."""

    is_object: bool
    key: str = ""
    named: str = ""
    """Of an object the value of its "name": the value of its "value" is a value of that. Of a list the item before."""
    within: str = ""
    """Of an object the key that it is the value of, as in {"password": {"value": …}}."""
    awaits_key: bool = True

    def meanings(self) -> tuple[str, ...]:
        """Return what the next value may be the value of."""
        if not self.is_object:
            return tuple(name for name in (self.key, self.named if self.named.startswith("-") else "") if name)
        key = self.key.lower()
        text = self.named if key in _VALUES else ""
        within = self.within if key in ("value", "val") else ""
        return tuple(name for name in (self.key, text, within) if name)


def mask_json(text: str, find: Looks) -> str:
    """Return JSON without credentials; what is no JSON is masked as text."""
    return _mask(text, find, 0)


def _mask(text: str, find: Looks, layer: int) -> str:
    if not text:
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return mask_text(text, find)
    parts: list[str] = []
    places: list[_Place] = []
    at = 0
    for piece in _PIECE.finditer(text):
        parts += (text[at : piece.start()], _masked_piece(piece.group(), places, find, layer))
        at = piece.end()
    return "".join((*parts, text[at:]))


def _masked_piece(piece: str, places: list[_Place], find: Looks, layer: int) -> str:
    """Return a piece of JSON as it is kept, and note what it says of those after it."""
    place = places[-1] if places else _Place(is_object=False)
    if piece in "{[":
        is_list = piece == "["
        within = place.key if place.is_object and not is_list else ""
        places.append(_Place(not is_list, key=place.key if is_list else "", within=within))
    elif piece in "}]":
        places.pop()
        if places and not places[-1].is_object:
            places[-1].named = ""
    elif piece == ",":
        place.awaits_key = True
    elif piece == ":":
        place.awaits_key = False
    elif piece[0] == '"':
        return _masked_string(piece, place, find, layer)
    elif piece[0] in "-0123456789" and _is_told_number(place.meanings(), piece, find):
        return json.dumps(MASK)
    return piece


def _is_told_number(names: tuple[str, ...], number: str, find: Looks) -> bool:
    """Whether a number is a credential, by itself or by what it is the value of."""
    if len(number) >= FEWEST_OF_A_CARD and names and find(f"{names[0]}: {number}"):
        return True
    return any(find.are_used_up or find(f"{name}: {number}") for name in find.telling(names))


def _masked_string(piece: str, place: _Place, find: Looks, layer: int) -> str:
    value: str = json.loads(piece)
    if place.is_object and place.awaits_key:
        place.key = value[:MOST_NAME]
        masked = mask_text(value, find)
    else:
        masked = _masked_value(value, place.meanings(), find, layer)
        if not place.is_object or place.key.lower() in _NAMES:
            place.named = value[:MOST_NAME]
    return piece if masked == value else _dumped(masked)


def _masked_value(value: str, names: tuple[str, ...], find: Looks, layer: int) -> str:
    """Return a value without credentials; it is looked at by itself and together with what it is the value of."""
    if value.lstrip()[:1] in ("{", "[", '"') and len(value) > 1 and layer < MOST_LAYERS:  # as the arguments of tools
        inner = _mask(value, find, layer + 1)
        if inner != value:
            return MASK if _is_told(names, inner, find) else inner
    masked = mask_text(value, find)
    return MASK if masked and _is_told(names, masked, find) else masked


def _is_told(names: tuple[str, ...], value: str, find: Looks) -> bool:
    """Whether a value is a credential by what it is the value of."""
    left = value.replace(MASK, "").strip()
    if not left:
        return False
    return any(find.are_used_up or find(json.dumps({name: left}, ensure_ascii=False)) for name in find.telling(names))


def _dumped(text: str) -> str:
    """Return a text as JSON; half a character, which JSON can write and UTF-8 cannot, as a number."""
    dumped = json.dumps(text, ensure_ascii=False)
    return json.dumps(text) if any("\ud800" <= letter <= "\udfff" for letter in dumped) else dumped
