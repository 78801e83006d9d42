"""The options by which commands say which memories are meant."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

__all__ = ["KINDS", "add_filters", "pair"]

KINDS = ("fact", "preference", "event", "procedure", "reflection", "episode", "note")


def pair(text: str) -> tuple[str, Any]:
    """Return a key and its value: KEY=TEXT, or KEY:=JSON."""
    key, separator, value = text.partition("=")
    is_json = key.endswith(":")
    key = key.removesuffix(":")
    if not separator or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=TEXT or KEY:=JSON")
    if not is_json:
        return key, value
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        raise argparse.ArgumentTypeError(f"{text!r}: behind := stands JSON, such as score:=3") from None


def add_filters(parser: argparse.ArgumentParser, past: Callable[[str], object], *, all_states: bool = False) -> None:
    """Add the options; `past` reads a time or how long ago it was, `all_states` leaves out those of states."""
    text = "in every state: what has expired or was replaced goes too" if all_states else None
    group = parser.add_argument_group("which", text)
    group.add_argument("--about", metavar="NAME", action="append", default=[], help="about this subject (repeatable)")
    group.add_argument("--tag", metavar="TAG", action="append", default=[], help="with this tag (repeatable: all)")
    group.add_argument("--kind", choices=KINDS, action="append", default=[], help="of this kind (repeatable)")
    group.add_argument("--category", metavar="NAME", default="", help="of this category")
    group.add_argument(
        "--meta",
        metavar="KEY=TEXT",
        type=pair,
        action="append",
        default=[],
        help="with this metadata (KEY:=JSON: a number, true or another value of JSON; repeatable: all)",
    )
    group.add_argument(
        "--where", metavar="CONDITION", default="", help="a condition on metadata: 'score >= 3 and not draft exists'"
    )
    group.add_argument("--import-id", metavar="NAME", default="", help="that came by this import")
    group.add_argument("--learnt-from", metavar="THREAD", default="", help="that was learnt from this conversation")
    group.add_argument("--contested", action="store_true", help="that another one contests")
    group.add_argument("--since", metavar="TIME", type=past, help="happened at this time or later: 3d, 12h, a date")
    group.add_argument("--until", metavar="TIME", type=past, help="happened before this time: 3d, 12h, a date")
    for name, text in (
        ("--include-expired", "also what has expired"),
        ("--include-superseded", "also what was replaced"),
    ):
        group.add_argument(name, action="store_true", help=argparse.SUPPRESS if all_states else text)
