"""What `memoryd` does with conversations and users: list sessions, erase a user."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from itertools import islice
from typing import Any

from memory_cli.common import at_least_one, erased_counts
from memory_cli.output import as_json, day, list_json, moment, one_line, size

from memoryd.cli.command import Client
from memoryd.errors import InvalidArgument

__all__ = ["add_conversation_commands"]

PAGE = 1000


def add_conversation_commands(commands: Any, common: argparse.ArgumentParser, client: Client) -> None:
    """Add the commands to a parser; `client` opens a client of the running daemon."""
    sessions = commands.add_parser(
        "sessions",
        parents=[common],
        help="list the sessions of a user or a chat",
        description="List the sessions of a user or a chat, the latest first.",
        epilog="examples:\n  memoryd sessions --user alice\n"
        "  memoryd sessions --user alice --thread cli:alice --state pending\n  memoryd sessions --chat team-7 --json\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sessions.add_argument("--user", metavar="ID", default="", help="whose conversations")
    sessions.add_argument("--chat", metavar="ID", default="", help="those of this chat")
    sessions.add_argument("--agent", metavar="ID", default="", help="with this agent (default)")
    sessions.add_argument(
        "--thread", metavar="KEY", default="", help="of this thread alone; with --chat one of the chat"
    )
    sessions.add_argument(
        "--state", choices=("open", "pending", "done"), action="append", default=[], help="only these; may be repeated"
    )
    sessions.add_argument("-n", "--limit", metavar="N", type=at_least_one, default=20, help="how many at most (20)")
    sessions.add_argument("--json", action="store_true", help="print JSON")
    sessions.set_defaults(run=lambda args: _sessions(client, args))

    users = commands.add_parser(
        "users",
        parents=[common],
        help="list the users and chats that have anything stored",
        description="List the users and chats that have anything stored, those with most text first.",
        epilog="examples:\n  memoryd users\n  memoryd users --agent assistant-2 --limit 500\n  memoryd users --json\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    users.add_argument("--agent", metavar="ID", default="", help="only with this agent")
    users.add_argument("-n", "--limit", metavar="N", type=at_least_one, default=100, help="how many at most (100)")
    users.add_argument("--json", action="store_true", help="print JSON")
    users.set_defaults(run=lambda args: _users(client, args))

    user = commands.add_parser(
        "user",
        help="what concerns a user as a whole",
        description="What concerns a user as a whole.",
        epilog="example:\n  memoryd user erase alice --dry-run\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = user.add_subparsers(dest="action", metavar="ACTION", required=True)
    erase = actions.add_parser(
        "erase",
        parents=[common],
        help="erase all that a user has, for good",
        description="Erase all that a user has: memories, people, conversations and working memory. What was said in"
        " chats stays with the chat. Grants stay open; close them first, or what they write begins anew"
        " (memoryd sandbox list, memoryd sandbox close, memoryd token revoke).",
        epilog="examples:\n  memoryd user erase alice --dry-run\n"
        "  memoryd user erase alice --agent assistant-2 --yes\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    erase.add_argument("user", metavar="USER", help="the user to erase")
    erase.add_argument("--agent", metavar="ID", default="", help="only with this agent; else with all of them")
    erase.add_argument("--dry-run", action="store_true", help="only show what would go")
    erase.add_argument("--yes", action="store_true", help="do not ask")
    erase.add_argument("--json", action="store_true", help="print JSON")
    erase.set_defaults(run=lambda args: _erase(client, args))


def _sessions(client: Client, args: argparse.Namespace) -> int:
    if not args.user and not args.chat:
        raise InvalidArgument("say whose sessions: --user, --chat or both")
    from memoryd.model.conversation import SessionState

    with client(args) as host:
        memory = host.acting_for(user_id=args.user, chat_id=args.chat, agent_id=args.agent)
        every = memory.all_sessions(
            thread_id=args.thread,
            shared=bool(args.chat and args.thread),
            states=[SessionState(state) for state in args.state],
            page_size=min(args.limit + 1, PAGE),
        )
        threads = list(islice(every, args.limit + 1))
    shown, more = threads[: args.limit], len(threads) > args.limit
    if args.json:
        print(list_json("sessions", shown, more=more))
        return 0
    if shown and sys.stdout.isatty():
        print(f"{'begun':<16} {'until':<5} {'state':<7} {'why':<5} said thread session")
    for thread in shown:
        end = "-" if thread.end_time is None else _shortly(thread.end_time, thread.start_time)
        print(
            f"{moment(thread.start_time)} {end:<5} {thread.state.value:<7} {thread.end_reason or '-':<5}"
            f" {thread.message_count:>4} {one_line(thread.thread_id)} {one_line(thread.id)}"
        )
    if not shown:
        print("no sessions", file=sys.stderr)
    if more:
        print(f"… more: the same with --limit {2 * args.limit}", file=sys.stderr)
    return 0


def _shortly(time: datetime, other: datetime) -> str:
    """Return a time in five characters: of the same day the hour, else the day of the year."""
    same = day(time) == day(other)
    return f"{time.astimezone():%H:%M}" if same else f"{time.astimezone():%m-%d}"


def _users(client: Client, args: argparse.Namespace) -> int:
    with client(args) as host:
        page = host.list_owners(agent_id=args.agent, limit=min(args.limit, PAGE))
    more = page.owner_count > len(page.owners)
    if args.json:
        print(as_json({"owners": page.owners, "owner_count": page.owner_count, "more": more}))
        return 0
    if page.owners and sys.stdout.isatty():
        print(f"{'memories':>8} {'messages':>8} {'text':>11}  whose")
    for owner in page.owners:
        who = f"user {one_line(owner.user_id)}" if owner.user_id else f"chat {one_line(owner.chat_id)}"
        agent = "" if owner.agent_id == "default" else f", agent {one_line(owner.agent_id)}"
        print(f"{owner.memory_count:>8} {owner.message_count:>8} {size(owner.content_bytes):>11}  {who}{agent}")
    if not page.owners:
        print("nothing is stored of anybody", file=sys.stderr)
    if more:
        way = f"the same with --limit {2 * args.limit}" if args.limit < PAGE else "--agent names those of one agent"
        print(f"… {page.owner_count} in all: {way}", file=sys.stderr)
    return 0


def _erase(client: Client, args: argparse.Namespace) -> int:
    with client(args) as host:
        erased = host.erase_user(args.user, agent_id=args.agent, dry_run=True)
        if not args.dry_run and erased:
            if not args.yes:
                if not sys.stdin.isatty():
                    raise InvalidArgument("this cannot be undone; look with --dry-run first, then say --yes")
                _tell(args.user, erased)
                if input("erase this for good? [y/N] ").strip().lower() not in {"y", "yes"}:
                    print("nothing was erased", file=sys.stderr)
                    return 1
            erased = host.erase_user(args.user, agent_id=args.agent)
    if args.json:
        print(as_json({"erased": erased}))
        return 0
    _tell(args.user, erased)
    return 0


def _tell(user: str, erased: list[Any]) -> None:
    for receipt in erased:
        verb = "would erase" if receipt.dry_run else "erased"
        print(f"agent {one_line(receipt.agent_id)}: {verb} {erased_counts(receipt)} of {one_line(user)}")
    if not erased:
        print(f"nothing is stored of {one_line(user)}", file=sys.stderr)
    elif erased[0].backups:
        print(f"copies that may still hold it: {', '.join(erased[0].backups)}", file=sys.stderr)
