"""The options that describe a grant."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain

from memory_cli.parser import parse_expiry
from memory_client import GrantSpec, check_permissions

from memoryd.model.grant import Permission, Quota

__all__ = ["add_spec", "many", "moment_of", "names_of", "spec_of"]


def names_of(text: str) -> list[str]:
    """Return the names between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def many(values: Sequence[list[str]]) -> list[str]:
    """Return the lists of a repeated option as one."""
    return list(chain.from_iterable(values))


def moment_of(text: str) -> datetime:
    """Return the end that `8h`, `2w` or a date says."""
    given = parse_expiry(text)
    return datetime.now(UTC) + timedelta(days=given) if isinstance(given, float) else given


def add_spec(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add the options that describe a grant."""
    who = parser.add_argument_group("who it is for")
    who.add_argument("--user", metavar="ID", default="", help="the user whose memories it reaches")
    who.add_argument("--chat", metavar="ID", action="append", default=[], help="a chat that it may name; repeat it")
    who.add_argument("--agent", metavar="ID", default="", help="the agent (default: default)")
    what = parser.add_argument_group("what it allows")
    what.add_argument(
        "--allow",
        metavar="WHAT",
        type=names_of,
        action="append",
        default=[],
        required=required,
        help=f"{', '.join(one.value for one in Permission)}; or read-only, append-only, full; with commas",
    )
    what.add_argument("--ttl", metavar="TIME", type=moment_of, help="until when: 8h, 2w, or a date (default: no end)")
    what.add_argument("--label", metavar="TEXT", default="", help="what it is for, in your words")
    for field in dataclasses.fields(Quota):
        what.add_argument(
            f"--{field.name.replace('_', '-')}",
            metavar="N",
            type=float if field.name == "calls_per_second" else int,
            help=f"quota (default: sandbox.{field.name} of the configuration; 0:"
            f" {'256' if field.name == 'connections' else 'no limit'})",
        )


def spec_of(args: argparse.Namespace) -> GrantSpec:
    """Return the grant that the options describe."""
    given = {field.name: getattr(args, field.name) for field in dataclasses.fields(Quota)}
    return GrantSpec(
        agent_id=args.agent,
        user_id=args.user,
        chat_ids=tuple(args.chat),
        permissions=check_permissions(many(args.allow)),
        quota={name: value for name, value in given.items() if value is not None},
        label=args.label,
        expire_time=args.ttl,
    )
