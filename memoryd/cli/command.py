"""Adding a command that asks the running daemon: its help, its examples, --json."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

__all__ = ["Client", "add_command"]

Client = Callable[[argparse.Namespace], Any]
"""Opens a client of the running daemon."""


def add_command(
    parent: Any,
    name: str,
    summary: str,
    examples: str,
    run: Callable[[Client, argparse.Namespace], int],
    *,
    common: argparse.ArgumentParser,
    client: Client,
) -> Any:
    """Add a command to a parser, and return its own parser; `run` is what carries it out, with a client."""
    parser = parent.add_parser(
        name,
        parents=[common],
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=lambda args: run(client, args))
    return parser
