"""What `memoryd` shows and decides of what was learnt and waits to be approved."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from memory_cli.common import at_least_one, text_of
from memory_cli.output import as_json, error_json, list_json, moment, one_line, shortest_ids

from memoryd.cli.command import Client, add_command
from memoryd.errors import InvalidArgument, MemorydError

__all__ = ["add_review_commands"]

EXAMPLES = {
    "list": "  memoryd review list\n  memoryd review list --user alice --json\n",
    "approve": '  memoryd review approve k3j5x2ab\n  memoryd review approve k3j5x2ab --as "I live in Porto"\n',
    "reject": "  memoryd review reject k3j5x2ab p4w2mmqd\n",
}


def add_review_commands(commands: Any, common: argparse.ArgumentParser, client: Client) -> None:
    """Add the commands to a parser; `client` opens a client of the running daemon."""
    review = commands.add_parser(
        "review",
        help="what was learnt and waits to be approved (memory.extraction_review)",
        description="Show and decide what was learnt and waits to be approved, where memory.extraction_review is on.",
        epilog="examples:\n  memoryd review list --user alice\n  memoryd review approve k3j5x2ab\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = review.add_subparsers(dest="action", metavar="ACTION", required=True)

    def command(name: str, summary: str, run: Callable[[Client, argparse.Namespace], int]) -> Any:
        return add_command(actions, name, summary, EXAMPLES[name], run, common=common, client=client)

    shown = command("list", "list what waits, the oldest first", _list)
    shown.add_argument("--user", metavar="ID", default="", help="only of this user")
    shown.add_argument("--chat", metavar="ID", default="", help="only of this chat")
    shown.add_argument("--agent", metavar="ID", default="", help="only of this agent")
    shown.add_argument("-n", "--limit", metavar="N", type=at_least_one, default=20, help="how many at the most (20)")
    approve = command("approve", "make memories of what waits", _approve)
    approve.add_argument("id", nargs="+", help="the ids, or at least 8 characters of each")
    approve.add_argument("--as", dest="content", metavar="TEXT", default="", help="in these words, of one; - for stdin")
    reject = command("reject", "drop what waits; the same is not proposed again", _reject)
    reject.add_argument("id", nargs="+", help="the ids, or at least 8 characters of each")


def _list(client: Client, args: argparse.Namespace) -> int:
    with client(args) as memory:
        proposals = memory.proposals(
            agent_id=args.agent, user_id=args.user, chat_id=args.chat, page_size=min(1000, args.limit)
        )
    if args.json:
        print(list_json("proposals", proposals, more=len(proposals) == args.limit))
        return 0
    short = shortest_ids([proposal.id for proposal in proposals])
    for one in proposals:
        whose = one.scope.user_id or f"chat {one.scope.chat_id}"
        speaker = f"[{one_line(one.speaker)}] " if one.speaker else ""
        trust = "" if one.trust.value == "host" else f" [{one.trust.value}]"
        print(f"{short[one.id]}  {moment(one.create_time)}  {one_line(whose)}: {speaker}{one_line(one.content)}{trust}")
    if not proposals:
        print("nothing waits", file=sys.stderr)
    return 0


def _approve(client: Client, args: argparse.Namespace) -> int:
    content = text_of([args.content]) if args.content else ""
    if content and len(args.id) > 1:
        raise InvalidArgument("--as goes with one id")
    return _each(client, args, lambda memory, proposal_id: memory.approve_proposal(proposal_id, content=content), _told)


def _told(result: Any) -> str:
    if result.memory is None:
        return f"rejected: {result.rejection}; it still waits"
    return f"{result.outcome.value} {result.memory.id[:8]}"


def _reject(client: Client, args: argparse.Namespace) -> int:
    return _each(
        client,
        args,
        lambda memory, proposal_id: memory.reject_proposal(proposal_id),
        lambda proposal_id: f"rejected {proposal_id.id[:8]}",
    )


def _each(
    client: Client, args: argparse.Namespace, decide: Callable[[Any, str], Any], line_of: Callable[[Any], str]
) -> int:
    """Decide on each id; those that can be are done, and the rest is named."""
    done: list[Any] = []
    failed: Sequence[MemorydError] = ()
    with client(args) as memory:
        for proposal_id in args.id:
            try:
                done.append(decide(memory, proposal_id))
            except MemorydError as error:
                failed = (*failed, error)
                continue
            if not args.json:
                print(line_of(done[-1]))
    if args.json:
        print(as_json({"decided": done}))
    for fault in failed:
        print(error_json(fault) if args.json else f"memoryd: {fault}", file=sys.stderr)
    return 1 if failed else 0
