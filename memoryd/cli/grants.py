"""What `memoryd sandbox` and `memoryd grant` do."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from memory_cli.output import as_json, day, error_json, list_json, memory_line, one_line, shortest_ids
from memory_client import GrantStatus, MemoryClient, NotFound

from memoryd.cli.shown_grants import bound_to, grant_line, mounts, until
from memoryd.cli.specs import spec_of
from memoryd.errors import InvalidArgument
from memoryd.model.grant import permission_names

__all__ = ["close_sandboxes", "forget_grant", "grant_memories", "open_sandbox", "revoke_each", "show_grants"]

PAGE = 1000


def show_grants(client: MemoryClient, args: argparse.Namespace, *, listeners_only: bool) -> int:
    """List grants."""
    grants: list[GrantStatus] = []
    token = ""
    while True:
        page = client.grants(page_token=token, include_ended=args.all, listeners_only=listeners_only)
        grants += page.grants
        token = page.next_page_token
        if not token:
            break
    if args.json:
        print(list_json("grants", grants))
        return 0
    known = shortest_ids(status.grant.id for status in grants)
    for status in grants:
        print(grant_line(status, known[status.grant.id]))
    if not grants:
        print("none" if args.all else "none; --all shows those that have ended", file=sys.stderr)
    return 0


def open_sandbox(client: MemoryClient, args: argparse.Namespace) -> int:
    """Open the socket of a sandbox, and say how to mount it."""
    if not args.mount.startswith("/"):
        raise InvalidArgument(f"--mount is {args.mount!r}; it must be an absolute path", field="mount")
    status = client.open_sandbox(spec_of(args))
    grant = status.grant
    needs = mounts(grant, status.directory, args.mount.rstrip("/"))
    if args.json:
        print(as_json({"grant": grant, **needs}))
        return 0
    print(f"sandbox      {grant.id}")
    print(f"bound to     {bound_to(grant)}")
    print(f"may          {', '.join(permission_names(grant.permissions))}")
    print(f"until        {until(grant.expire_time)}")
    print(f"mount        {needs['directory']}  (read-only, the directory, at {needs['mount']})")
    print("environment  " + "\n             ".join(f"{name}={value}" for name, value in needs["env"].items()))
    for tool, example in needs["examples"].items():
        print(f"\n# {tool}\n{example}")
    return 0


def close_sandboxes(client: MemoryClient, args: argparse.Namespace) -> int:
    """Close sockets and end their grants."""
    return revoke_each(client, args.id, args, "closed {id} ({who})")


def revoke_each(client: MemoryClient, names: Sequence[str], args: argparse.Namespace, text: str) -> int:
    """Revoke what is there of these grants, telling each, and what is not; return the exit code."""
    revoked, code = [], 0
    for name in names:
        try:
            grant = client.revoke_grant(name)
        except (NotFound, InvalidArgument) as error:
            print(error_json(error) if args.json else f"memoryd: {error.message}", file=sys.stderr)
            code = 1
            continue
        revoked.append(grant)
        if not args.json:
            print(text.format(id=grant.id[:8], who=bound_to(grant)))
    if args.json:
        print(list_json("grants", revoked))
    return code


def grant_memories(client: MemoryClient, args: argparse.Namespace) -> int:
    """List what came through a grant."""
    keys: list[Any] = []
    token = ""
    while True:
        size = PAGE if args.all else min(PAGE, args.limit - len(keys))
        page = client.grant_memories(args.id, page_size=size, page_token=token, include_deleted=args.deleted)
        keys += page.memories
        token = page.next_page_token
        if not token or (not args.all and len(keys) >= args.limit):
            break
    if args.json:
        print(list_json("memories", keys, more=bool(token)))
        return 0
    known = shortest_ids(memory.id for memory in keys)
    for memory in keys:
        scope = memory.scope
        whose = f"chat {scope.chat_id}" if scope.chat_id else f"user {scope.user_id}"
        print(f"{memory_line(memory, known[memory.id])}  ({one_line(whose)})")
    if not keys:
        print("nothing came through it, or nothing is left of it", file=sys.stderr)
    if token:
        print(f"… more: --limit {2 * args.limit}, or --all", file=sys.stderr)
    return 0


def forget_grant(client: MemoryClient, args: argparse.Namespace) -> int:
    """Delete what came through a grant."""
    if args.close and not args.dry_run:
        client.revoke_grant(args.id)
    elif any(status.grant.id.startswith(args.id.lower()) for status in client.grants().grants):
        print("memoryd: the grant still counts, so more may follow; --close ends it first", file=sys.stderr)
    gone = client.delete_grant_memories(args.id, dry_run=args.dry_run, purge=args.now)
    if args.json:
        print(as_json(gone))
        return 0
    verb = ("would erase" if args.now else "would delete") if gone.dry_run else ("erased" if args.now else "deleted")
    until = f", can be taken back until {day(gone.purge_time)}" if gone.purge_time else ""
    print(f"{verb} {gone.deleted_count} memories{until}")
    if gone.superseded_ids:
        print(
            f"they had replaced {len(gone.superseded_ids)} of others; to bring those back, as whose they are:"
            " memory undelete --user … --chat … ID"
        )
        for memory_id in gone.superseded_ids:
            print(f"  {memory_id}")
    return 0
