"""What the command does with notes: show, put, list, move and erase them."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from typing import Any

from memory_cli.common import Usage, is_sure, listed, tell_backups, text_of
from memory_cli.output import as_json, list_json, moment, one_line, shown_line, size

__all__ = ["note", "notes"]


def notes(client: Any, args: argparse.Namespace) -> None:
    """List notes by path."""
    fetch = partial(client.notes, args.prefix, shared=args.shared, with_content=args.full)
    found, more = listed(fetch, "notes", args)
    if args.json:
        print(list_json("notes", found, more=more))
        return
    for one in found:
        until = f", until {moment(one.expire_time)}" if one.expire_time else ""
        print(f"{moment(one.update_time)}  {size(one.now.text_bytes):>9}  {one_line(one.path)}{_details(one)}{until}")
        if args.full:
            _show_text(one.text, indent="  ")
    if not found:
        print("there are no notes", file=sys.stderr)
    if more:
        print(f"… more: the same with --limit {2 * args.limit}, or with --all", file=sys.stderr)


def note(client: Any, args: argparse.Namespace) -> None:
    """Show a note, put it, move it, or erase it."""
    is_put = args.set is not None or args.value is not None
    if (args.expires or args.expires_unread or args.searched or args.if_revision is not None) and not is_put:
        raise Usage("--expires, --expires-unread, --searched and --if-revision go with --set or --value")
    if args.recursive and not (args.delete or args.move):
        raise Usage("--recursive goes with --delete or --move")
    if (args.dry_run or args.yes) and not args.delete:
        raise Usage("--dry-run and --yes go with --delete")
    if is_put:
        _put(client, args)
    elif args.delete:
        _delete(client, args)
    elif args.move:
        moved = client.move_note(args.path, args.move, shared=args.shared, recursive=args.recursive)
        count = f"{moved.moved_count} notes" if args.recursive else one_line(args.path)
        print(as_json(moved) if args.json else f"moved {count} to {one_line(args.move)}")
    else:
        _show(client, args)


def _put(client: Any, args: argparse.Namespace) -> None:
    given = text_of([args.set if args.value is None else args.value])
    content: Any = given
    if args.value is not None:
        try:
            content = json.loads(given)
        except ValueError as error:
            raise Usage(f"--value is no JSON: {error}") from None
        if isinstance(content, str):
            raise Usage("--value is a text; put it with --set")
    put = client.put_note(
        args.path,
        content,
        shared=args.shared,
        expire_after_s=args.expires or 0,
        expire_after_access_s=args.expires_unread or 0,
        is_searched=args.searched,
        expected_revision=args.if_revision,
    )
    print(as_json(put) if args.json else f"revision {put.revision} of {one_line(put.path)}")


def _show(client: Any, args: argparse.Namespace) -> None:
    found = client.note(args.path, shared=args.shared, revision=args.revision)
    if args.json:
        print(as_json(found))
        return
    if args.versions:
        for version in sorted(found.versions, key=lambda one: -one.revision):
            print(f"{version.revision:>5}  {moment(version.update_time)}  {size(version.text_bytes):>9}")
        return
    if not sys.stdout.isatty():
        print(found.text, end="")  # as it is: for a file
        return
    _show_text(found.text)
    told = f"revision {found.revision} of {moment(found.update_time)}{_details(found)}"
    print(f"[{told}{f', until {moment(found.expire_time)}' if found.expire_time else ''}]", file=sys.stderr)


def _delete(client: Any, args: argparse.Namespace) -> None:
    asked = {"shared": args.shared, "recursive": args.recursive}
    seen = client.delete_notes(args.path, dry_run=True, **asked)
    what = one_line(args.path) if not args.recursive else f"{seen.deleted_count} notes"
    if args.dry_run:
        print(as_json(seen) if args.json else "\n".join(f"would erase {one_line(path)}" for path in seen.paths))
        return
    if not is_sure(args, what, "notes"):
        return
    gone = client.delete_notes(args.path, **asked)
    if args.json:
        print(as_json(gone))
        return
    print(f"erased {what}")
    tell_backups(gone.backups)


def _details(one: Any) -> str:
    told = [one.now.trust.value] if one.now.trust.value != "host" else []
    told += [f"put by {one_line(one.now.author)}"] if one.now.author else []
    return f"  [{', '.join(told)}]" if told else ""


def _show_text(text: str, *, indent: str = "") -> None:
    for line in text.splitlines():
        print(f"{indent}{shown_line(line)}".rstrip())
