"""What the command `update` understands."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

__all__ = ["CLEARED", "add_update"]

Command = Callable[[str, str, str], argparse.ArgumentParser]
CLEARED = {"tags": (), "category": "", "metadata": {}, "expires": "never"}
"""What a field becomes that is cleared."""


def add_update(
    command: Command,
    pair: Callable[[str], tuple[str, Any]],
    expiry: Callable[[str], object],
) -> None:
    """Add the command; `pair` reads KEY=TEXT, `expiry` when something ends."""
    update = command(
        "update",
        "set tags, category, metadata or the end of a memory; its text stays",
        "  memory update k3j5x2ab --tag food --tag health\n  memory update k3j5x2ab --meta source=letter --expires 2w\n"
        "  memory update k3j5x2ab --clear tags --clear expires\n",
    )
    update.add_argument("id", help="the id, or at least 8 characters of it")
    update.add_argument("--tag", metavar="TAG", action="append", help="its tags from now on (repeatable)")
    update.add_argument("--category", metavar="NAME", help="its category from now on")
    update.add_argument(
        "--meta",
        metavar="KEY=TEXT",
        type=pair,
        action="append",
        help="all of its metadata from now on (or KEY:=JSON; repeatable)",
    )
    update.add_argument("--expires", metavar="WHEN", type=expiry, help="2w, 3d, 12h, 90m, or 2026-12-31")
    update.add_argument(
        "--clear", choices=tuple(CLEARED), action="append", default=[], help="take this away (repeatable)"
    )
