"""What `memoryd` does with identities: sandbox, grant, token."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from memory_cli.common import path_of
from memory_client import (
    MemoryClient,
)

from memoryd.cli.grants import close_sandboxes, forget_grant, grant_memories, open_sandbox, show_grants
from memoryd.cli.specs import add_spec, moment_of, names_of
from memoryd.cli.tokens import attenuate_token, inspect_token, issue_token, revoke_tokens, rotate_keys

__all__ = ["add_identity_commands"]

_HELP = argparse.RawDescriptionHelpFormatter


Connect = Callable[[argparse.Namespace], MemoryClient]
Command = Callable[[argparse.Namespace], int]
WithClient = Callable[[Callable[[MemoryClient, argparse.Namespace], int]], Command]
AddCommand = Callable[..., argparse.ArgumentParser]


def add_identity_commands(commands: Any, common: argparse.ArgumentParser, connect: Connect) -> None:
    """Add the commands to a parser's; each sets `run` to what carries it out."""

    def with_client(command: Callable[[MemoryClient, argparse.Namespace], int]) -> Command:
        def run(args: argparse.Namespace) -> int:
            with connect(args) as client:
                return command(client, args)

        return run

    def add(group: Any, name: str, run: Command, text: str, epilog: str = "") -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = group.add_parser(
            name, parents=[common], help=text, description=text, epilog=epilog, formatter_class=_HELP
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.set_defaults(run=run)
        return parser

    def group(name: str, text: str, epilog: str) -> Any:
        parser = commands.add_parser(name, help=text, description=text, epilog=epilog, formatter_class=_HELP)
        return parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    sandbox = group(
        "sandbox",
        "open, list and close the sockets of sandboxes",
        "examples:\n  memoryd sandbox open --user alice --chat team-7 --allow add,search --ttl 8h\n"
        "  memoryd sandbox list\n  memoryd sandbox close 3z7rg3dn",
    )
    _add_sandbox(sandbox, add, with_client)
    grant = group(
        "grant",
        "look at grants, and clean up what came through one",
        "examples:\n  memoryd grant list --all\n  memoryd grant memories 3z7rg3dn\n"
        "  memoryd grant forget 3z7rg3dn --dry-run",
    )
    _add_grant(grant, add, with_client)
    token = group(
        "token",
        "issue, narrow, inspect and revoke tokens for the shared socket and TCP",
        "examples:\n  memoryd token issue --user alice --allow search --ttl 1h --out alice.token\n"
        "  memoryd token inspect --token-file alice.token",
    )
    _add_token(token, add, with_client)


def _add_sandbox(sandbox: Any, add: AddCommand, with_client: WithClient) -> None:
    parser = add(
        sandbox,
        "open",
        with_client(open_sandbox),
        "make a socket whose callers are bound to a user and chats",
        "examples:\n  memoryd sandbox open --user alice --chat team-7 --allow add,search,context --ttl 8h\n"
        "  memoryd sandbox open --user alice --allow read-only --label 'code runner' --json",
    )
    add_spec(parser, required=True)
    parser.add_argument("--mount", metavar="DIR", default="/run/memory", help="where it is in there (/run/memory)")
    parser = add(
        sandbox,
        "list",
        with_client(lambda c, a: show_grants(c, a, listeners_only=True)),
        "list sandboxes",
        "examples:\n  memoryd sandbox list\n  memoryd sandbox list --all --json",
    )
    parser.add_argument("--all", action="store_true", help="also those that have ended")
    parser = add(
        sandbox,
        "close",
        with_client(close_sandboxes),
        "close sockets, cut their calls, and end their grants",
        "example:\n  memoryd sandbox close 3z7rg3dn",
    )
    parser.add_argument("id", nargs="+", metavar="ID", help="the sandbox; 8 characters are enough")


def _add_grant(grant: Any, add: AddCommand, with_client: WithClient) -> None:
    parser = add(
        grant,
        "list",
        with_client(lambda c, a: show_grants(c, a, listeners_only=False)),
        "list grants",
        "examples:\n  memoryd grant list\n  memoryd grant list --all --json",
    )
    parser.add_argument("--all", action="store_true", help="also those that have ended")
    parser = add(
        grant,
        "memories",
        with_client(grant_memories),
        "list the memories that came through a grant",
        "examples:\n  memoryd grant memories 3z7rg3dn\n  memoryd grant memories 3z7rg3dn --all --deleted",
    )
    parser.add_argument("id", metavar="ID", help="the grant; 8 characters are enough")
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="so many at the most (20)")
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--deleted", action="store_true", help="also those that were deleted and can be restored")
    parser = add(
        grant,
        "forget",
        with_client(forget_grant),
        "delete all memories that came through a grant",
        "examples:\n  memoryd grant forget 3z7rg3dn --dry-run\n  memoryd grant forget 3z7rg3dn --close",
    )
    parser.add_argument("id", metavar="ID", help="the grant; 8 characters are enough")
    parser.add_argument("--dry-run", action="store_true", help="only count them")
    parser.add_argument("--now", action="store_true", help="erase them; they cannot be taken back")
    parser.add_argument("--close", action="store_true", help="end the grant first, so that nothing more comes")


def _add_token(token: Any, add: AddCommand, with_client: WithClient) -> None:
    parser = add(
        token,
        "issue",
        with_client(issue_token),
        "make a token, for a new grant or for one that is there",
        "examples:\n  memoryd token issue --user alice --allow search --ttl 1h --out alice.token\n"
        "  memoryd token issue --grant 3z7rg3dn --ttl 1h --via tcp",
    )
    add_spec(parser, required=False)
    parser.add_argument("--grant", metavar="ID", default="", help="a grant that is there, instead of a new one")
    parser.add_argument(
        "--via", metavar="DOOR", default="", help="only through: shared, tcp, or the grant's own socket"
    )
    parser.add_argument("--out", metavar="FILE", type=path_of, help="put it there, readable for its owner alone")
    parser = add(
        token,
        "attenuate",
        attenuate_token,
        "make a token that allows less; needs no daemon",
        "example:\n  memoryd token attenuate --token-file alice.token --allow search --ttl 5m",
    )
    _add_token_file(parser)
    parser.add_argument("--allow", metavar="WHAT", type=names_of, action="append", default=[], help="only this")
    parser.add_argument("--chat", metavar="ID", action="append", default=[], help="only this chat; repeat it")
    parser.add_argument("--no-chats", action="store_true", help="no chat at all")
    parser.add_argument("--ttl", metavar="TIME", type=moment_of, help="until when: 5m, 8h, or a date")
    parser.add_argument("--audience", metavar="STORE", default="", help="only the store of this id (memoryd status)")
    parser.add_argument(
        "--via", metavar="DOOR", default="", help="only through: shared, tcp, or the grant's own socket"
    )
    parser.add_argument("--out", metavar="FILE", type=path_of, help="put it there, readable for its owner alone")
    parser = add(
        token,
        "inspect",
        with_client(inspect_token),
        "tell what a token allows and whether it counts",
        "example:\n  memoryd token inspect --token-file alice.token",
    )
    _add_token_file(parser)
    parser = add(
        token,
        "revoke",
        with_client(revoke_tokens),
        "end grants, and with them every token of theirs",
        "examples:\n  memoryd token revoke 3z7rg3dn\n  memoryd token revoke --token-file alice.token",
    )
    parser.add_argument("id", nargs="*", metavar="ID", help="the grant; 8 characters are enough")
    parser.add_argument("--token-file", metavar="FILE", default="", help="a token of the grant; - for standard input")
    parser = add(
        token,
        "rotate",
        with_client(rotate_keys),
        "sign tokens with a new key",
        "examples:\n  memoryd token rotate\n  memoryd token rotate --drop-older",
    )
    parser.add_argument("--drop-older", action="store_true", help="all tokens issued so far count no longer")


def _add_token_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--token-file", metavar="FILE", default="", help="the token; - for standard input (default: $MEMORY_TOKEN_FILE)"
    )
