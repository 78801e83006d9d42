"""The arguments of the commands about conversations."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from memory_cli.common import at_least_one

__all__ = ["add_talking"]

Command = Callable[[str, str, str], argparse.ArgumentParser]


def add_talking(command: Command) -> None:
    """Add the commands; `command` adds one of a name, with what it does and examples."""
    threads = command(
        "threads",
        "list the conversations, the latest first, or erase one",
        "  memory threads\n  memory threads --prefix telegram: --all\n  memory threads --delete cli:demo --dry-run\n",
    )
    threads.add_argument("-n", "--limit", metavar="N", type=at_least_one, default=20, help="how many at the most (20)")
    threads.add_argument("--all", action="store_true", help="everything, however much")
    threads.add_argument("--prefix", metavar="TEXT", default="", help="only those whose key begins so")
    threads.add_argument("--delete", metavar="THREAD", help="erase this thread for good")
    threads.add_argument("--with-memories", action="store_true", help="and what was learnt from it")
    threads.add_argument("--dry-run", action="store_true", help="only show what would go")
    threads.add_argument("--yes", action="store_true", help="do not ask")
    threads.add_argument("--shared", action="store_true", help="the thread to erase is one of the chat")
    log = command(
        "log",
        "show what was said in a conversation, search it, or take messages back",
        "  memory log cli:demo\n  memory log cli:demo --limit 50 --full\n  memory log --search 'cat allergy'\n"
        "  memory log cli:demo --follow\n  memory log cli:demo --delete-after 41 --dry-run\n",
    )
    log.add_argument("thread", nargs="?", default="", help="the thread; with --search it may be left out")
    log.add_argument("--search", metavar="QUERY", help="find messages by meaning and words, with those around them")
    log.add_argument("-n", "--limit", metavar="N", type=at_least_one, default=10, help="how many at the most (10)")
    log.add_argument("--all", action="store_true", help="all of them")
    log.add_argument("--session", metavar="ID", default="", help="only this session")
    log.add_argument(
        "--min-score", metavar="S", type=float, help="with --search: only hits of at least this score; 0: all"
    )
    log.add_argument("--before", metavar="N", type=int, help="with --search: messages before each hit (2)")
    log.add_argument("--after", metavar="N", type=int, help="with --search: messages after each hit (1)")
    log.add_argument("--shared", action="store_true", help="the thread belongs to the chat")
    log.add_argument(
        "--full", action="store_true", help="show long messages, the arguments of tool calls and metadata whole"
    )
    log.add_argument("--follow", action="store_true", help="go on with what is said from now on")
    gone = log.add_mutually_exclusive_group()
    gone.add_argument("--delete", metavar="ID", nargs="+", help="erase these messages for good; --json shows ids")
    gone.add_argument("--delete-after", metavar="N", type=int, help="erase all messages after number N for good")
    log.add_argument("--with-memories", action="store_true", help="and what was learnt from them")
    log.add_argument("--dry-run", action="store_true", help="only show what would go")
    log.add_argument("--yes", action="store_true", help="do not ask")
    note = command(
        "working-memory",
        "show or rewrite the small text that the agent keeps in mind",
        "  memory working-memory\n  memory working-memory --set 'finish the report'\n"
        "  memory working-memory --thread cli:demo --set - < plan.md\n  memory working-memory --clear\n",
    )
    note.add_argument("--thread", metavar="THREAD", default="", help="that of this thread; without it that of the user")
    note.add_argument("--shared", action="store_true", help="that of the chat, or of one of its threads")
    _add_setting(note)
    summary = command(
        "summary",
        "show or set what sums a conversation up",
        "  memory summary cli:demo\n  memory summary cli:demo --set 'They planned the week.'\n",
    )
    summary.add_argument("thread", help="the thread")
    summary.add_argument("--shared", action="store_true", help="the thread belongs to the chat")
    _add_setting(summary)


def _add_setting(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--set", metavar="TEXT", help="put this text in its place; - reads it from standard input")
    what.add_argument("--clear", action="store_true", help="remove it")
