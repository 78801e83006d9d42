"""The arguments of the commands about notes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from memory_cli.common import SECONDS, at_least_one

__all__ = ["add_notes"]

Command = Callable[[str, str, str], argparse.ArgumentParser]


def seconds_of(text: str) -> int:
    """Return the seconds of `2w`, `3d`, `12h`, `90m` or `30s`."""
    match = re.fullmatch(r"(\d+)([smhdwy])", text.strip())
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2w, 3d, 12h, 90m or 30s")
    return int(match[1]) * SECONDS[match[2]]


def add_notes(command: Command) -> None:
    """Add the commands; `command` adds one of a name, with what it does and examples."""
    one = command(
        "note",
        "show a note, or put, move or erase it",
        "  memory note plans/summer --set 'Lisbon in June'\n  memory note plans/summer\n"
        '  memory note todo --set - < todo.md\n  memory note settings --value \'{"theme": "dark"}\'\n'
        "  memory note plans --delete --recursive --dry-run\n",
    )
    one.add_argument("path", help="its name, such as plans/summer")
    what = one.add_mutually_exclusive_group()
    what.add_argument("--set", metavar="TEXT", help="put this text; - reads it from standard input")
    what.add_argument("--value", metavar="JSON", help="put this JSON value; - reads it from standard input")
    what.add_argument("--delete", action="store_true", help="erase it for good, with all its versions")
    what.add_argument("--move", metavar="PATH", help="give it this path")
    what.add_argument("--versions", action="store_true", help="list its last ten versions")
    what.add_argument("--revision", metavar="N", type=at_least_one, default=0, help="show it as it was then")
    one.add_argument("--expires", metavar="TIME", type=seconds_of, help="so long after it was put: 2w, 3d, 12h")
    one.add_argument("--expires-unread", metavar="TIME", type=seconds_of, help="so long after it was last read")
    one.add_argument("--if-revision", metavar="N", type=int, help="put it only over this revision; 0: only a new one")
    one.add_argument("--searched", action="store_true", help="let it be found: memory search --kind note")
    one.add_argument("--recursive", action="store_true", help="with all notes below its path")
    one.add_argument("--dry-run", action="store_true", help="only show what would go")
    one.add_argument("--yes", action="store_true", help="do not ask")
    one.add_argument("--shared", action="store_true", help="it is a note of the chat")
    several = command(
        "notes",
        "list the notes by path",
        "  memory notes\n  memory notes plans/ --full\n",
    )
    several.add_argument("prefix", nargs="?", default="", help="only those whose path begins so")
    several.add_argument("-n", "--limit", metavar="N", type=at_least_one, default=20, help="how many at the most (20)")
    several.add_argument("--all", action="store_true", help="everything, however much")
    several.add_argument("--full", action="store_true", help="with what they say")
    several.add_argument("--shared", action="store_true", help="notes of the chat")
