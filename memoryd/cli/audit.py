"""What `memoryd audit` does: read the audit log, filter it, follow it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from memory_cli.output import as_json, list_json, one_line
from memory_cli.parser import parse_past

from memoryd.audit.reading import REFUSED, read_audit
from memoryd.daemon.schedule import JOBS
from memoryd.errors import InvalidArgument
from memoryd.model.work import EXTRACTION_JOB, LLM_EXTRACTION_JOB
from memoryd.service.methods import RULES

__all__ = ["add_audit_command"]


_DOORS = ("admin", "sandbox", "shared", "tcp", "daemon")
_CODES = ("NOT_FOUND", "INVALID_ARGUMENT", "ABORTED", "UNAVAILABLE", "INTERNAL", "CANCELLED", "DATA_LOSS")
_OUTCOMES = ("OK", "refused", *_CODES, *sorted(REFUSED))


def _matches(record: dict[str, Any], args: argparse.Namespace) -> bool:
    outcome, ids = record.get("outcome", ""), record.get("ids", ())
    time = record.get("time", "")
    return (
        record.get("call", "").startswith(args.call)
        and (not args.grant or any(item.startswith(args.grant) for item in (record.get("grant_id", ""), *ids)))
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
        and (not args.outcome or outcome == args.outcome or (args.outcome == "refused" and outcome in REFUSED))
        and (not args.id or any(item.startswith(args.id) for item in ids))
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
    field = f"  {record['field']}" if record.get("field") else ""
    peer = f"  from {record['peer']}" if record.get("peer") else ""
    repeated = f"  {record['repeated']} more times" if record.get("repeated") else ""
    time = datetime.fromisoformat(record["time"]).astimezone()
    flags = "".join(f" ({name.replace('_', ' ')})" for name in ("dry_run", "purge") if record.get(name))
    parts = (f"{time:%Y-%m-%d %H:%M:%S.%f}"[:-3], door, who, record.get("rpc", "?") + flags, outcome)
    return "  ".join(map(one_line, parts)) + field + peer + touched + repeated


def _audit(path: Path | None, args: argparse.Namespace) -> int:
    if path is None:
        raise InvalidArgument("there is no audit log: audit.path is empty", field="audit.path")
    if args.limit < 1:
        raise InvalidArgument(f"--limit is {args.limit}; it must be at least 1", field="limit")
    if not path.exists() and not args.follow:
        raise InvalidArgument(f"there is no audit log {path}; name the --data-dir, or run as the daemon's user")
    if args.since is not None and args.until is not None and args.since >= args.until:
        raise InvalidArgument("--since is not before --until: 2h lies before 1h", field="since")

    def matching(*, follow: bool) -> Iterator[dict[str, Any]]:
        return (record for record in read_audit(path, follow=follow) if "time" in record and _matches(record, args))

    known = sum(1 for _ in matching(follow=False))
    if args.json and not args.follow:
        records = list(islice(matching(follow=False), max(0, known - args.limit), None))
        print(list_json("records", records, more=known > len(records)))
        return 0
    shown = 0
    for record in islice(matching(follow=args.follow), max(0, known - args.limit), None):
        print(as_json(record, indent=None) if args.json else _audit_line(record), flush=args.follow)
        shown += 1
    if not shown:
        print("nothing found", file=sys.stderr)
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
    parser.add_argument("--json", action="store_true", help="print JSON; with --follow a line for each record")
    parser.add_argument("--follow", action="store_true", help="go on as the log grows")
    parser.add_argument("--limit", metavar="N", type=int, default=1000, help="the last so many (1000)")
    parser.add_argument("--since", metavar="TIME", type=parse_past, help="from then on: 1h, 2d, or a date")
    parser.add_argument("--until", metavar="TIME", type=parse_past, help="before: 1h, 2d, or a date")
    for name, text in (
        ("grant", "the grant or the beginning of its id"),
        ("call", "the call's id"),
        ("id", "a memory or grant that was touched, or the beginning of its id"),
        ("user", "the user"),
        ("chat", "the chat"),
        ("agent", "the agent"),
    ):
        parser.add_argument(f"--{name}", metavar="WHAT", default="", help=text)
    parser.add_argument("--door", choices=_DOORS, default="", help="the way in; daemon: what it did by itself")
    parser.add_argument("--outcome", choices=_OUTCOMES, default="", help="OK, refused, or one code", metavar="WHAT")
    parser.add_argument("--rpc", metavar="NAME", type=_rpc, help="the method, for example SearchMemories")


def _rpc(text: str) -> str:
    """Return the name of a method, however its letters are cased."""
    served = [path.partition("/")[2] for path in RULES]
    for name in (*served, *JOBS, EXTRACTION_JOB, LLM_EXTRACTION_JOB, "reembedding", "unknown"):
        if name.lower() == text.lower():
            return name
    near = get_close_matches(text, served, 1)
    way = f"; did you mean {near[0]}?" if near else "; docs/api.md lists them"
    raise argparse.ArgumentTypeError(f"there is no method {text!r}{way}")
