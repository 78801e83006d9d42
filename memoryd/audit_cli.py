"""What `memoryd audit` does: read the audit log, filter it, follow it."""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory_cli.output import as_json, one_line
from memory_cli.parser import parse_expiry

from memoryd.audit import read_audit
from memoryd.errors import InvalidArgument

__all__ = ["add_audit_command"]


def _past(text: str) -> datetime:
    """Return the time that lies `8h` back, or that a date says."""
    given = parse_expiry(text)
    return datetime.now(UTC) - timedelta(days=given) if isinstance(given, float) else given


_REFUSED = {"UNAUTHENTICATED", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "UNIMPLEMENTED"}


def _matches(record: dict[str, Any], args: argparse.Namespace) -> bool:
    outcome = record.get("outcome", "")
    time = record.get("time", "")
    return (
        all(
            record.get(field, "").startswith(wanted)
            for field, wanted in (("grant_id", args.grant), ("call", args.call))
            if wanted
        )
        and all(
            record.get(field, "") == wanted
            for field, wanted in (
                ("user_id", args.user),
                ("chat_id", args.chat),
                ("agent_id", args.agent),
                ("rpc", args.rpc),
                ("door", args.door),
            )
            if wanted
        )
        and (not args.outcome or outcome == args.outcome or (args.outcome == "refused" and outcome in _REFUSED))
        and (not args.id or any(item.startswith(args.id) for item in record.get("ids", ())))
        and (args.since is None or datetime.fromisoformat(time) >= args.since)
        and (args.until is None or datetime.fromisoformat(time) < args.until)
    )


def _audit_line(record: dict[str, Any]) -> str:
    who = record.get("user_id", "-") + (f"/{record['chat_id']}" if record.get("chat_id") else "")
    door = record.get("door", "?") + (f" {record['grant_id'][:8]}" if record.get("grant_id") else "")
    outcome = record.get("outcome", "?") + (f" ({record['reason']})" if record.get("reason") else "")
    ids = record.get("ids", [])
    more = record.get("id_count", len(ids)) - min(len(ids), 3)
    touched = "  " + " ".join(item[:8] for item in ids[:3]) + (f" and {more} more" if more > 0 else "") if ids else ""
    repeated = f"  {record['repeated']} more times" if record.get("repeated") else ""
    time = datetime.fromisoformat(record["time"]).astimezone()
    parts = (f"{time:%Y-%m-%d %H:%M:%S.%f}"[:-3], door, who, record.get("rpc", "?"), outcome)
    return "  ".join(map(one_line, parts)) + touched + repeated


def _audit(path: Path | None, args: argparse.Namespace) -> int:
    if path is None:
        raise InvalidArgument("there is no audit log: audit.path is empty", field="audit.path")
    if args.limit < 1:
        raise InvalidArgument(f"--limit is {args.limit}; it must be at least 1", field="limit")
    if not path.exists() and not args.follow:
        raise InvalidArgument(f"there is no audit log {path}; name the --data-dir, or run as the daemon's user")
    records: Iterator[dict[str, Any]] = (
        record for record in read_audit(path, follow=args.follow) if "time" in record and _matches(record, args)
    )
    if not args.follow:
        records = iter(deque(records, maxlen=args.limit))
    for record in records:
        print(as_json(record, indent=None) if args.json else _audit_line(record), flush=args.follow)
    return 0


def add_audit_command(
    commands: Any, common: argparse.ArgumentParser, audit_path: Callable[[argparse.Namespace], Path | None]
) -> None:
    """Add the command to a parser's; it sets `run` to what carries it out."""
    parser = commands.add_parser(
        "audit",
        parents=[common],
        help="read the audit log",
        description="read the audit log, also while the daemon is stopped",
        epilog="examples:\n  memoryd audit --outcome refused --since 1h\n  memoryd audit --grant 3z7rg3dn --follow\n"
        "  memoryd audit --id abcdefgh --json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=lambda args: _audit(audit_path(args), args))
    parser.add_argument("--json", action="store_true", help="print JSON lines as they stand in the log")
    parser.add_argument("--follow", action="store_true", help="go on as the log grows")
    parser.add_argument("--limit", metavar="N", type=int, default=1000, help="the last so many (1000)")
    parser.add_argument("--since", metavar="TIME", type=_past, help="from then on: 1h, 2d, or a date")
    parser.add_argument("--until", metavar="TIME", type=_past, help="before: 1h, 2d, or a date")
    for name, text in (
        ("grant", "the grant or the beginning of its id"),
        ("call", "the call's id"),
        ("id", "a memory or grant that was touched, or the beginning of its id"),
        ("user", "the user"),
        ("chat", "the chat"),
        ("agent", "the agent"),
        ("rpc", "the method, for example SearchMemories"),
        ("door", "admin, sandbox, shared, tcp or daemon"),
        ("outcome", "OK, a code such as NOT_FOUND, or refused"),
    ):
        parser.add_argument(f"--{name}", metavar="WHAT", default="", help=text)
