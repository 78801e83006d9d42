"""
Long texts of messages, in pieces in a table of their own.

DuckDB reads 2,048 rows at once, however long they are: 189 messages with a megabyte each made reads of other messages
fail that lay near them. So a row of `messages` has no long text, and a row of `long_texts` has a piece of one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

__all__ = [
    "CALLS",
    "CONTENT",
    "LONG_TEXTS",
    "PIECES_MISSING",
    "PIECE_CHARACTERS",
    "TERMS",
    "divided",
    "in_pieces",
    "select_pieces",
    "texts_of",
    "whole",
    "with_calls",
]

CONTENT, METADATA, TERMS = "content", "metadata", "terms"
CALLS = "tool_calls"
"""Those of a message, as its details have them, in JSON."""
LONG_TEXTS = (CONTENT, CALLS, METADATA, TERMS)
MAX_ROW_BYTES = 8 * 1024  # of one text in a row: 2,048 rows with four of them are 64 MiB, in UTF-8
PIECE_CHARACTERS = 4096  # 2,048 pieces are 32 MiB at the most
_KEPT = ("number", "thread", "agent_id", "user_id", "chat_id", "thread_id", "id", "commit_seq")

PIECES_MISSING = "the database has lost a piece of a long message; put back the last good copy"
Pieces = Iterable[tuple[int, str, int, str]]
"""The number of a message, the name of a text, the place of a piece in it, from 0 on, and the piece."""


def is_long(text: str) -> bool:
    """Return whether a text is too long for a row."""
    return len(text) * 4 > MAX_ROW_BYTES and len(text.encode()) > MAX_ROW_BYTES


def divided(row: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the row of a message without its long texts, and the rows of their pieces."""
    kept, texts = dict(row), {}
    for name in (CONTENT, METADATA, TERMS):
        if is_long(kept[name]):
            texts[name], kept[name] = kept[name], ""
    if is_long(kept["details"]):
        details = json.loads(kept["details"])
        texts[CALLS] = json.dumps(details.pop(CALLS, []), ensure_ascii=False)
        kept["details"] = json.dumps(details, ensure_ascii=False)
    whose = {name: row[name] for name in _KEPT}
    pieces = [
        {**whose, "name": name, "piece": n, "text": piece}
        for name, text in texts.items()
        for n, piece in enumerate(in_pieces(text))
    ]
    return {**kept, "piece_count": len(pieces)}, pieces


def in_pieces(text: str) -> list[str]:
    """Return a text in pieces; an empty one has none."""
    return [text[n : n + PIECE_CHARACTERS] for n in range(0, len(text), PIECE_CHARACTERS)]


def select_pieces(numbers: Collection[int], names: Collection[str] = LONG_TEXTS) -> tuple[str, list[Any]]:
    """Return the query of the pieces of some messages, and its parameters; texts of other names come empty."""
    shown = ", ".join(f"'{name}'" for name in names)
    select = (
        f"SELECT number, name, piece, CASE WHEN name IN ({shown}) THEN text ELSE '' END AS text FROM long_texts"
        " WHERE number >= ? AND number <= ? AND number IN (SELECT unnest(?::BIGINT[]))"
    )
    return select, [min(numbers), max(numbers), sorted(numbers)]


def texts_of(pieces: Pieces, names: Collection[str] = LONG_TEXTS) -> dict[int, dict[str, str]]:
    """Return some texts of pieces, by the number of the message and the name of the text."""
    found: dict[int, dict[str, list[str]]] = {}
    for number, name, _, piece in sorted((row for row in pieces if row[1] in names), key=lambda row: row[:3]):
        found.setdefault(number, {}).setdefault(name, []).append(piece)
    return {number: {name: "".join(texts) for name, texts in named.items()} for number, named in found.items()}


def with_calls(details: str, calls: str) -> str:
    """Return the details of a message with its tool calls."""
    return json.dumps({**json.loads(details), CALLS: json.loads(calls)}, ensure_ascii=False)


def whole(
    read: Callable[[str, Sequence[Any]], Sequence[tuple[Any, ...]]],
    rows: Sequence[tuple[Any, ...]],
    columns: Sequence[str],
    names: Collection[str] = LONG_TEXTS,
) -> list[tuple[Any, ...]] | None:
    """
    Return rows of messages with some of their long texts; None where one was erased since they were read.

    `columns` are those of the rows, `number` and `piece_count` among them.
    """
    number, count = columns.index("number"), columns.index("piece_count")
    wanted = {row[number]: row[count] for row in rows if row[count]}
    if not wanted:
        return list(rows)
    pieces = read(*select_pieces(wanted, names))
    if len(pieces) != sum(wanted.values()):
        return None
    texts = texts_of(pieces, names)
    return [_filled(row, columns, texts[row[number]]) if row[number] in texts else row for row in rows]


def _filled(row: tuple[Any, ...], columns: Sequence[str], texts: Mapping[str, str]) -> tuple[Any, ...]:
    values = dict(zip(columns, row, strict=True))
    values |= {name: text for name, text in texts.items() if name in values}
    if CALLS in texts and "details" in values:
        values["details"] = with_calls(values["details"], texts[CALLS])
    return tuple(values.values())
