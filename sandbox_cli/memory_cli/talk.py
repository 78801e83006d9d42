"""What the command does with conversations: list threads, read and search what was said, erase a thread."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from memory_cli.common import PAGE, Usage, tell_backups
from memory_cli.output import as_json, list_json, moment, one_line

__all__ = ["log", "threads"]

FOLLOW_S = 1.0


def threads(client: Any, args: argparse.Namespace) -> None:
    """List the threads that are visible, or erase one."""
    if args.delete is not None:
        _delete(client, args)
        return
    found: list[Any] = []
    token = ""
    while True:
        size = PAGE if args.all else min(PAGE, args.limit - len(found))
        page = client.threads(page_size=size, page_token=token, prefix=args.prefix)
        found.extend(page.threads)
        token = page.next_page_token
        if not token or (not args.all and len(found) >= args.limit):
            break
    if args.json:
        print(list_json("threads", found, more=bool(token)))
        return
    for thread in found:
        shared = " [shared]" if thread.scope.chat_id else ""
        print(f"{moment(thread.update_time)}  {thread.message_count:>6}  {one_line(thread.id)}{shared}"
              + (f"  {one_line(thread.summary)[:80]}" if thread.summary else ""))  # fmt: skip
    if not found:
        print("nothing was said yet", file=sys.stderr)
    if token:
        print(f"… more: the same with --limit {2 * args.limit}, or with --all", file=sys.stderr)


def _delete(client: Any, args: argparse.Namespace) -> None:
    seen = client.delete_thread(args.delete, shared=args.shared, with_memories=args.with_memories, dry_run=True)
    what = f"{seen.thread.message_count} messages"
    if args.with_memories:
        what += f" and {len(seen.memory_ids)} memories"
    if args.dry_run:
        print(as_json(seen) if args.json else f"would erase {one_line(args.delete)}: {what}")
        return
    if not args.yes:
        if not sys.stdin.isatty():
            raise Usage("say --yes to erase a thread for good, or --dry-run to see what would go")
        if input(f"erase {one_line(args.delete)} with {what}, for good? [y/N] ").strip().lower() not in {"y", "yes"}:
            print("nothing was erased", file=sys.stderr)
            return
    gone = client.delete_thread(args.delete, shared=args.shared, with_memories=args.with_memories)
    if args.json:
        print(as_json(gone))
        return
    print(f"erased {one_line(args.delete)}: {what}")
    tell_backups(gone.backups)


def log(client: Any, args: argparse.Namespace) -> None:
    """Show what was said in a thread, or search it."""
    if args.search is not None:
        _search(client, args)
        return
    if not args.thread:
        raise Usage("name a thread (memory threads lists them), or --search for words in all of them")
    page = client.messages(args.thread, shared=args.shared, page_size=args.limit, session_id=args.session)
    if args.json and not args.follow:
        print(list_json("messages", page.messages, more=bool(page.next_page_token)))
        return
    _show(page.messages, args)
    if page.next_page_token:
        print(f"… earlier: the same with --limit {2 * args.limit}", file=sys.stderr)
    last = page.messages[-1].seq if page.messages else 0
    while args.follow:
        sys.stdout.flush()
        time.sleep(FOLLOW_S)
        every = client.all_messages(args.thread, shared=args.shared, session_id=args.session)
        new = [*takewhile(lambda message: message.seq > last, every)][::-1]  # noqa: B023  used up here
        _show(new, args)
        last = new[-1].seq if new else last


def _search(client: Any, args: argparse.Namespace) -> None:
    from memoryd.model.talk import MessageSearch

    found = client.search_messages(
        MessageSearch(
            text=args.search,
            top_k=args.limit,
            thread_id=args.thread or "",
            shared=True if args.shared else None,
            before=args.before,
            after=args.after,
        )
    )
    if args.json:
        print(as_json(found))
        return
    for hit in found.hits:
        print(f"[{hit.score:.2f}] {one_line(hit.message.thread_id)}")
        _show((*hit.before, hit.message, *hit.after), args, indent="  ")
    if not found.hits:
        print("nothing like that was said", file=sys.stderr)
    if found.unavailable_legs:
        print(f"searched without: {', '.join(leg.value for leg in found.unavailable_legs)}", file=sys.stderr)


def _show(messages: Iterable[Any], args: argparse.Namespace, *, indent: str = "") -> None:
    for message in messages:
        if args.json:
            print(as_json(message, indent=None))
            continue
        who = one_line(message.name) or message.role.value
        source = f" ({one_line(message.input_source)})" if message.input_source else ""
        lines = [one_line(line) for line in message.content.splitlines()] or [""]
        print(f"{indent}{message.seq:>5}  {moment(message.create_time)}  {who}{source}: {lines[0]}")
        for line in lines[1:]:
            print(f"{indent}       {line}")
        for call in message.tool_calls:
            told = one_line(call.arguments) if args.full else f"{len(call.arguments)} characters"
            print(f"{indent}       → {one_line(call.name)} ({told})")
