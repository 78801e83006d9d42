"""What the commands share: what they end with, and the texts that they read."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memoryd.paths import expanded

__all__ = [
    "PAGE",
    "SECONDS",
    "Declined",
    "Partly",
    "Usage",
    "as_typed",
    "at_least_one",
    "count_of",
    "erased_counts",
    "is_sure",
    "listed",
    "path_of",
    "tell_backups",
    "text_of",
]

PAGE = 1000
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}
"""Of the units in which times are written: `90m`, `2w`."""


class Declined(Exception):
    """The statement was well-formed, but policy declines it."""


class Usage(Exception):
    """What was asked for makes no sense."""


class Partly(Exception):
    """Some of several things failed."""

    def __init__(self, error: Any, done: list[Any], *, said: bool) -> None:
        super().__init__(str(error))
        self.error, self.done, self.said = error, done, said


# fields that are given as options of another name; the rest of a message may hold what was typed
_OPTIONS = {
    "event_time": "--at",
    "filter.event_time_from": "--since",
    "filter.event_time_to": "--until",
    "min_score": "--min-score",
    "max_tokens": "--max-tokens",
}


def as_typed(error: Any) -> str:
    """Return an error's message, with the option of this command where it begins with a field of the contract."""
    message, field = str(getattr(error, "message", error)), getattr(error, "field", "")
    if field == "chat_id":
        return message.replace("shared needs a chat_id", "--shared needs a chat (--chat, or MEMORY_CHAT_ID)", 1)
    if field == "expires_days":
        return re.sub(r"^expires_days is ([\d.e+]+)", r"--expires is \1 days", message)
    if field == "name":
        return message.replace(": with_messages erases them", ": --with-messages erases them", 1)
    if field == "filter.event_time_to":
        message = message.replace(" event_time_from", " --since", 1)
    option = _OPTIONS.get(field)
    return option + message[len(field) :] if option and message.startswith(f"{field} ") else message


def at_least_one(text: str) -> int:
    """Return an argument as a number of things."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)


def path_of(text: str) -> Path:
    """Return an argument as a path, with its `~` replaced."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file or folder is empty")
    try:
        return expanded(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def text_of(words: Sequence[str]) -> str:
    """Return words as one text; a single - reads standard input."""
    if list(words) != ["-"]:
        return " ".join(words)
    if sys.stdin is None:
        raise Usage("standard input is closed")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
    except OSError as error:
        raise Usage(f"cannot read standard input: {error.strerror}") from None


def count_of(count: int) -> str:
    """Return how many memories, in words."""
    return "1 memory" if count == 1 else f"{count} memories"


def tell_backups(backups: Sequence[str]) -> None:
    """Name copies that may still hold what was erased."""
    if backups:
        print(f"memory: copies that may still hold it: {', '.join(backups)}", file=sys.stderr)


def erased_counts(erased: Any) -> str:
    """Return what a receipt of an erased user counts."""
    counts = (
        (erased.memory_count, "memory", "memories"),
        (erased.message_count, "message", "messages"),
        (erased.thread_count, "thread", "threads"),
        (erased.note_count, "note", "notes"),
    )
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts if count or one != "note")


def is_sure(args: argparse.Namespace, what: str, kind: str) -> bool:
    """Whether something is to be erased: --yes says so, or whoever sits at the terminal."""
    if args.yes:
        return True
    if not sys.stdin.isatty():
        raise Usage(f"say --yes to erase {kind} for good, or --dry-run to see what would go")
    if input(f"erase {what}, for good? [y/N] ").strip().lower() in {"y", "yes"}:
        return True
    print("nothing was erased", file=sys.stderr)
    return False


def listed(
    fetch: Callable[..., Any], items: str, args: argparse.Namespace, *, last_first: bool = False
) -> tuple[list[Any], bool]:
    """
    Return up to --limit items, or with --all all of them, page by page; and whether there are more.

    `fetch` returns a page for page_size and page_token, which has them as `items`; with last_first the first page has
    the last of them.
    """
    found: list[Any] = []
    token = ""
    while True:
        page = fetch(page_size=PAGE if args.all else min(PAGE, args.limit - len(found)), page_token=token)
        place = 0 if last_first else len(found)
        found[place:place] = getattr(page, items)
        token = page.next_page_token
        if not token or (not args.all and len(found) >= args.limit):
            return found, bool(token)
