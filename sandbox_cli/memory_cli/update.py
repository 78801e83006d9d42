"""The command `update`: what is told of a memory besides its text."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any

from memory_cli.common import Usage
from memory_cli.output import as_json, shortest_ids
from memory_cli.parser_update import CLEARED

__all__ = ["update"]


def update(client: Any, args: argparse.Namespace) -> None:
    """Set labels of a memory, or when it ends."""
    given = {"tags": args.tag, "category": args.category, "metadata": args.meta and dict(args.meta)}
    ends = timedelta(days=args.expires) if isinstance(args.expires, float) else args.expires
    given["expires"] = ends
    for name in args.clear:
        if given[name] is not None:
            raise Usage(f"--clear {name} takes away what another option sets")
        given[name] = CLEARED[name]
    if all(value is None for value in given.values()):
        raise Usage("say what to set: --tag, --category, --meta, --expires, or --clear")
    given["expire_time"] = given.pop("expires")
    memory = client.update(args.id, **given)
    if args.json:
        print(as_json(memory))
    else:
        print(f"updated {shortest_ids([memory.id])[memory.id]}")
