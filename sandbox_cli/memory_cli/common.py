"""What the commands share: what they end with, and the texts that they read."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memoryd.paths import expanded

__all__ = [
    "PAGE",
    "Declined",
    "Partly",
    "Usage",
    "as_typed",
    "at_least_one",
    "count_of",
    "erased_counts",
    "path_of",
    "tell_backups",
    "text_of",
]

PAGE = 1000


class Declined(Exception):
    """The statement was well-formed, but policy declines it."""


class Usage(Exception):
    """What was asked for makes no sense."""


class Partly(Exception):
    """Some of several things failed."""

    def __init__(self, error: Any, done: list[Any], *, said: bool) -> None:
        super().__init__(str(error))
        self.error, self.done, self.said = error, done, said


# what messages of the daemon name otherwise than this command does
_OPTIONS = {
    "expires_days": "--expires in days",
    "event_time": "--at",
    "event_time_from": "--since",
    "event_time_to": "--until",
    "filter.event_time_from": "--since",
    "filter.event_time_to": "--until",
    "min_score": "--min-score",
    "max_tokens": "--max-tokens",
    "shared needs a chat_id": "--shared needs a chat (--chat, or MEMORY_CHAT_ID)",
}
_FIELD = re.compile(rf"(?<![\w.'\"])(?:{'|'.join(map(re.escape, sorted(_OPTIONS, key=len, reverse=True)))})(?![\w'\"])")


def as_typed(message: str) -> str:
    """Return an error's message with the options of this command in place of the contract's fields."""
    return _FIELD.sub(lambda match: _OPTIONS[match[0]], message)


def at_least_one(text: str) -> int:
    """Return an argument as a number of things."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)


def path_of(text: str) -> Path:
    """Return an argument as a path, with its `~` replaced."""
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
    )
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts)
