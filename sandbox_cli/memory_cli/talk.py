"""What the command does with conversations: list threads, read, search and take back what was said, erase a thread."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from functools import partial
from itertools import takewhile
from typing import Any

from memory_cli.common import Usage, is_sure, listed, tell_backups, text_of
from memory_cli.output import as_json, list_json, moment, notes_of, one_line, score_of, shown_line

__all__ = ["log", "summary", "threads", "working_memory"]

_NO_BRACKETS = str.maketrans("[]", "()")

FOLLOW_S = 1.0
COLUMNS, LEAST_SUMMARY = 70, 24  # of a line; of a summary on it
MOST_SHOWN = 2000  # characters of a message without --full


def threads(client: Any, args: argparse.Namespace) -> None:
    """List the threads that are visible, or erase one."""
    if args.delete is not None:
        _delete(client, args)
        return
    found, more = listed(partial(client.threads, prefix=args.prefix), "threads", args)
    if args.json:
        print(list_json("threads", found, more=more))
        return
    for thread in found:
        shared = " [shared]" if thread.scope.chat_id else ""
        line = f"{moment(thread.update_time)}  {thread.message_count:>6}  {one_line(thread.id)}{shared}"
        room = max(LEAST_SUMMARY, COLUMNS - len(line) - 2)
        print(f"{line}  {one_line(thread.summary)[:room]}".rstrip())
    if not found:
        print("nothing was said yet", file=sys.stderr)
    if more:
        print(f"… more: the same with --limit {2 * args.limit}, or with --all", file=sys.stderr)


def _delete(client: Any, args: argparse.Namespace) -> None:
    seen = client.delete_thread(args.delete, shared=args.shared, with_memories=args.with_memories, dry_run=True)
    what = f"{seen.thread.message_count} messages"
    if args.with_memories:
        what += f" and {len(seen.memory_ids)} memories"
    if args.dry_run:
        print(as_json(seen) if args.json else f"would erase {one_line(args.delete)}: {what}")
        return
    if not is_sure(args, f"{one_line(args.delete)} with {what}", "a thread"):
        return
    gone = client.delete_thread(args.delete, shared=args.shared, with_memories=args.with_memories)
    if args.json:
        print(as_json(gone))
        return
    print(f"erased {one_line(args.delete)}: {what}")
    tell_backups(gone.backups)


def _take_back(client: Any, args: argparse.Namespace) -> None:
    """Erase messages of a thread: those of some ids, or all after a place."""
    asked = {"after_seq": args.delete_after} if args.delete is None else {"message_ids": args.delete}
    asked |= {"shared": args.shared, "with_memories": args.with_memories}
    seen = client.delete_messages(args.thread, dry_run=True, **asked)
    what = f"{seen.deleted_count} of {seen.thread.message_count} messages of {one_line(args.thread)}"
    what += f" and {len(seen.memory_ids)} memories" if args.with_memories else ""
    if args.dry_run or not seen.deleted_count:
        print(as_json(seen) if args.json else f"would erase {what}")
        return
    if not is_sure(args, what, "messages"):
        return
    gone = client.delete_messages(args.thread, **asked)
    if args.json:
        print(as_json(gone))
        return
    print(f"erased {what}")
    if gone.memory_ids and not args.with_memories:
        print(f"{len(gone.memory_ids)} memories that were learnt from them stay: --with-memories erases them too")
    tell_backups(gone.backups)


def working_memory(client: Any, args: argparse.Namespace) -> None:
    """Show the working memory of the user, the chat or a thread, or put another one in its place."""
    of = {"thread_id": args.thread, "shared": args.shared}
    text = _given(args)
    held = client.working_memory(**of) if text is None else client.set_working_memory(text, **of)
    if args.json:
        print(as_json(held))
        return
    _show_text(held.text, held.trust, held.author)


def summary(client: Any, args: argparse.Namespace) -> None:
    """Show what sums a thread up, or put another text in its place."""
    text = _given(args)
    if text is not None:
        client.set_summary(args.thread, text, shared=args.shared)
    held = client.summary(args.thread, shared=args.shared)
    if args.json:
        print(as_json(held))
        return
    _show_text(held.summary, held.trust, held.author)
    if held.summary_by:
        print(f"[written by {one_line(held.summary_by)}]", file=sys.stderr)


def _given(args: argparse.Namespace) -> str | None:
    """Return the text that is to be set, an empty one to remove what is there; None: it is only shown."""
    if args.clear:
        return ""
    return None if args.set is None else text_of([args.set])


def _show_text(text: str, trust: Any, author: str) -> None:
    for line in text.splitlines():
        print(shown_line(line))
    if not text:
        print("none is set", file=sys.stderr)
        return
    details = [trust.value] if trust.value != "host" else []
    details += [f"set by {one_line(author).translate(_NO_BRACKETS)}"] if author else []
    if details:
        print(f"[{', '.join(details)}]", file=sys.stderr)


def log(client: Any, args: argparse.Namespace) -> None:
    """Show what was said in a thread, or search it."""
    takes_back = args.delete is not None or args.delete_after is not None
    if not takes_back and (args.dry_run or args.yes or args.with_memories):
        raise Usage("--dry-run, --yes and --with-memories go with --delete or --delete-after")
    if takes_back:
        if not args.thread or args.search is not None or args.follow:
            raise Usage("name the thread to erase messages of, and leave out --search and --follow")
        _take_back(client, args)
        return
    if args.search is not None:
        if args.follow or args.session:
            raise Usage("--search goes without --follow and --session; name a thread to search in it alone")
        _search(client, args)
        return
    if not args.thread:
        raise Usage("name a thread (memory threads lists them), or --search for words in all of them")
    if args.follow:
        _follow(client, args)
        return
    messages, more = _last(client, args)
    if args.json:
        print(list_json("messages", messages, more=more))
        return
    _show(messages, args)
    if more:
        print(f"… earlier: the same with --limit {2 * args.limit}, or with --all", file=sys.stderr)
    if not messages:
        print("nothing was said there", file=sys.stderr)


def _last(client: Any, args: argparse.Namespace) -> tuple[list[Any], bool]:
    """Return the last messages in order, as many as are asked for, page by page; and whether there are more."""
    fetch = partial(client.messages, args.thread, shared=args.shared, session_id=args.session)
    return listed(fetch, "messages", args, last_first=True)


def _follow(client: Any, args: argparse.Namespace) -> None:
    """Show the last messages, then those that come; a thread may begin, or begin anew, meanwhile."""
    from memoryd.errors import ThreadNotFound

    last, begun = 0, None
    while True:
        try:
            thread = client.thread(args.thread, shared=args.shared)
        except ThreadNotFound:
            last, begun = 0, None
        else:
            if begun != thread.create_time:
                last, begun = 0, thread.create_time
                new, _ = _last(client, args)
            elif thread.last_seq > last:
                every = client.all_messages(args.thread, shared=args.shared, session_id=args.session)
                new = [*takewhile(lambda message: message.seq > last, every)][::-1]  # noqa: B023  used up here
            else:
                new = []
            _show(new, args)
            last = max(last, thread.last_seq, *(message.seq for message in new))
        sys.stdout.flush()
        time.sleep(FOLLOW_S)


def _search(client: Any, args: argparse.Namespace) -> None:
    from memoryd.model.talk import MessageSearch

    result = client.search_messages(
        MessageSearch(
            text=args.search,
            top_k=args.limit,
            min_score=args.min_score,
            thread_id=args.thread or "",
            shared=args.shared if args.shared or args.thread else None,
            before=args.before,
            after=args.after,
        )
    )
    if args.json:
        print(as_json(result))
        return
    for hit in result.hits:
        print(f"{score_of(hit)} {one_line(hit.message.thread_id)}{notes_of(hit)}")
        _show(hit.before, args, indent="  ")
        _show([hit.message], args, indent="> ")
        _show(hit.after, args, indent="  ")
    if not result.hits:
        print("nothing like that was said", file=sys.stderr)
    if result.omitted_count:
        print(f"… {result.omitted_count} more, which are too long for one answer", file=sys.stderr)
    if result.unavailable_legs:
        print("searched by words alone, as there are no vectors now", file=sys.stderr)


def _show(messages: Iterable[Any], args: argparse.Namespace, *, indent: str = "") -> None:
    for message in messages:
        if args.json:
            print(as_json(message, indent=None))
            continue
        lines = message.content.splitlines() or [""]
        if not args.full and len(message.content) > MOST_SHOWN:
            lines = [*message.content[:MOST_SHOWN].splitlines(), f"… {len(message.content):,} characters (--full)"]
        mark = "" if message.trust.value == "host" else f" [{message.trust.value}]"
        print(f"{indent}{message.seq:>5}  {moment(message.create_time)}  {_who(message)}: {shown_line(lines[0])}{mark}")
        more = [shown_line(line) for line in lines[1:]]
        more += [f"→ {one_line(call.name)} ({_told(call.arguments, args)})" for call in message.tool_calls]
        more += [f"metadata: {_told(message.metadata, args)}"] if message.metadata else []
        for line in more:
            print(f"{indent}       {line}".rstrip())


def _who(message: Any) -> str:
    """Return who speaks, the role first, so that no name can pose as one; and how it came in."""
    name = message.name or (message.author if message.scope.chat_id and message.role.value == "user" else "")
    who = f"{message.role.value} {one_line(name)}".strip()
    return f"{who} ({one_line(message.input_source)})" if message.input_source else who


def _told(text: str, args: argparse.Namespace) -> str:
    """Return what is folded away, or with --full all of it."""
    return one_line(text) if args.full else f"{len(text):,} characters"
