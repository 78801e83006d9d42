"""Adding a command: its help, its examples; and for one that asks the running daemon --json and a client."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Client", "add_command", "add_parser"]

Client = Callable[[argparse.Namespace], Any]
"""Opens a client of the running daemon."""


def add_parser(
    parent: Any, name: str, summary: str, examples: str, parents: Sequence[argparse.ArgumentParser]
) -> argparse.ArgumentParser:
    """Add the parser of a command, with its help and its examples."""
    parser: argparse.ArgumentParser = parent.add_parser(
        name,
        parents=parents,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


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
    parser = add_parser(parent, name, summary, examples, [common])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=lambda args: run(client, args))
    return parser
