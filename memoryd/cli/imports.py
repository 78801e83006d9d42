"""`memoryd import`: what `memoryd export` has written, and what other systems have kept."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from memory_cli.common import path_of
from memory_cli.output import as_json, size

from memoryd.cli.command import Client, add_command
from memoryd.cli.other_systems import bring_in
from memoryd.cli.transfer import CODES, FORMAT, Damaged, progress, told
from memoryd.errors import Conflict, InvalidArgument
from memoryd.model import limits

if TYPE_CHECKING:
    from memoryd.model.reports import ImportedRecords

__all__ = ["add_import_command"]

MOST_BYTES = 2 << 20  # of lines that are sent at once
LONGEST = limits.MAX_MESSAGE_BYTES - (16 << 10)  # bytes of a line that a call takes
OTHERS = (
    "chatgpt", "claude", "mem0", "mcp-memory", "markdown", "claude-code", "basic-memory", "openai-agents", "langgraph",
    "letta", "graphiti", "jsonl",
)  # fmt: skip
"""The formats of other systems, as `importers.formats` reads them."""


def add_import_command(commands: Any, common: argparse.ArgumentParser, client: Client) -> None:
    """Add the command to a parser; `client` opens a client of the running daemon."""
    command = partial(add_command, commands, common=common, client=client)
    importing = command(
        "import",
        "store what an export holds, or what another system has kept; what is there already stays as it is",
        "  memoryd import everything.jsonl --dry-run\n  memoryd import everything.jsonl\n"
        "  zstd -dc everything.jsonl.zst | memoryd import -\n"
        "  memoryd import chatgpt-export.zip --user alice --dry-run\n"
        "  memoryd import memories.json --as mem0 --map user=user_id\n"
        f"  memoryd import CLAUDE.md --user alice\n\n{CODES}",
        _import,
    )
    importing.add_argument("file", metavar="FILE", type=path_of, help="the export, file or folder; -: standard input")
    importing.add_argument("--dry-run", action="store_true", help="only tell what would be stored")
    importing.add_argument(
        "--on-conflict",
        choices=("fail", "skip"),
        default="fail",
        help="of memoryd's own export: where another thing of the same id is there",
    )
    others = importing.add_argument_group("of another system")
    others.add_argument(
        "--as", dest="format", metavar="FORMAT", choices=OTHERS, help=f"what it is: {', '.join(OTHERS)}"
    )
    others.add_argument("--user", metavar="ID", default="", help="the user whose memory it becomes")
    others.add_argument("--chat", metavar="ID", default="", help="the chat; with --shared it becomes the chat's")
    others.add_argument("--agent", metavar="ID", default="", help="the agent (default: 'default')")
    others.add_argument("--shared", action="store_true", help="what the chat keeps, and not the user")
    others.add_argument(
        "--map",
        metavar="user=FIELD",
        action="append",
        default=[],
        help="take the user (or agent, chat) from this field of the file (repeatable)",
    )
    others.add_argument(
        "--prefix", metavar="PATH", default="", help="put notes below this path, as one for each project"
    )
    others.add_argument(
        "--import-id",
        metavar="NAME",
        default="",
        help="what the import is called; the same file under the same name comes once (default: the format)",
    )


def _import(client: Client, args: argparse.Namespace) -> int:
    if _is_of_others(args):
        with progress() as show:
            return bring_in(client, args, show)
    with _seekable(args.file) as file:
        total = _checked(file, str(args.file))
        file.seek(0)
        counts: dict[str, Counter[str]] = {"new": Counter(), "known": Counter(), "kept": Counter(), "erased": Counter()}
        sent, left_out = 0, list[str]()
        with client(args) as memory, progress() as show:
            for first, lines in _batches(_sendable(islice(file, 1, total + 1), left_out)):
                done = _send(memory, lines, first, args)
                for name, counter in counts.items():
                    counter.update(getattr(done, f"{name}_counts"))
                sent += len(lines)
                show(f"{sent} of {total} lines")
    for line in left_out:
        print(f"left out: {line}, more than the {size(LONGEST)} that a call takes", file=sys.stderr)
    code = 1 if left_out else 0
    if args.json:
        print(as_json({**counts, "left_out": len(left_out), "dry_run": args.dry_run}))
        return code
    print(f"{'would store' if args.dry_run else 'stored'} {told(counts['new'])}")
    if counts["known"]:
        print(f"there already: {told(counts['known'])}")
    if counts["kept"]:
        print(f"others of the same id are there, and stay: {told(counts['kept'])}")
    if counts["erased"]:
        print(f"this store was told to erase them, and they stay erased: {told(counts['erased'])}")
    if counts["new"]["grant"] and not args.dry_run:
        print("grants count after the next start of the daemon; look at them: memoryd sandbox list", file=sys.stderr)
    return code


def _is_of_others(args: argparse.Namespace) -> bool:
    """Whether a file is one of another system, and not of `memoryd export`."""
    if args.format:
        return True
    says_whose = bool(args.user or args.chat or args.agent or args.shared or args.map or args.import_id or args.prefix)
    if str(args.file) == "-":
        if says_whose:
            raise InvalidArgument("standard input is no file of another system: name one", field="file")
        return False
    from memoryd.cli.importers.formats import EXPORT, format_of
    from memoryd.cli.importers.source import Source

    try:
        is_export = format_of(Source(args.file)) == EXPORT
    except InvalidArgument:
        if says_whose:
            raise
        return False  # what is wrong with an export is told when it is read
    if is_export and says_whose:
        raise InvalidArgument(
            f"{args.file} is an export of memoryd, which says itself whose everything is and how far it is trusted;"
            " import it without --user and its like, if you trust it",
            field="file",
        )
    return not is_export


def _send(memory: Any, lines: list[str], first: int, args: argparse.Namespace) -> ImportedRecords:
    """Send lines, the first with its number in the file; what is wrong with one is said by that number."""
    try:
        done: ImportedRecords = memory.import_records(
            lines, skip_conflicts=args.on_conflict == "skip", dry_run=args.dry_run
        )
    except InvalidArgument as error:
        place, _, rest = error.field.partition("]")
        if place.startswith("records[") and place[8:].isdecimal():
            number = first + int(place[8:])
            error.message = f"line {number} of {args.file}{rest and f' ({rest[1:]})'}: {error.message}"
        raise
    except Conflict as error:
        error.message += (
            f" (lines {first} to {first + len(lines) - 1} of {args.file})."
            f"{'' if args.dry_run else ' What stands before it was stored;'} to keep what is there, and take the rest:"
            " --on-conflict skip"
        )
        raise
    return done


@contextlib.contextmanager
def _seekable(path: Path) -> Iterator[IO[bytes]]:
    """Open a file; standard input is copied first, as it is read twice."""
    if str(path) != "-":
        with path.open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as copy:
        while block := sys.stdin.buffer.read(1 << 20):
            copy.write(block)
        copy.seek(0)
        yield copy


def _checked(file: IO[bytes], name: str) -> int:
    """Return how many lines a whole export has, between its header and its end. Damaged."""
    digest, counts, last = hashlib.sha256(), Counter[str](), b""
    for number, line in enumerate(file, 1):
        if last:
            digest.update(last)
            counts[_type_of(last, number - 1, name)] += 1
        elif _type_of(line, 1, name) != "header" or json.loads(line).get("format") != FORMAT:
            raise Damaged(
                f"{name} is no export that this memoryd knows: its first line is no header of format {FORMAT}"
            )
        last = line
    if not last or _type_of(last, sum(counts.values()) + 1, name) != "end":
        raise Damaged(f"{name} is cut: its last line is no end")
    end = json.loads(last)
    del counts["header"]
    if end.get("sha256") != digest.hexdigest() or end.get("counts") != counts:
        raise Damaged(f"{name} is damaged: its lines are not those that were written")
    return counts.total()


def _type_of(line: bytes, number: int, name: str) -> str:
    try:
        kind = json.loads(line)["type"]
    except (ValueError, KeyError, TypeError, RecursionError):
        kind = None
    if not isinstance(kind, str) and number == 1:
        raise Damaged(f"{name} is no export of memoryd; unpack or decrypt it first, if it was packed")
    if not isinstance(kind, str):
        raise Damaged(f"{name} is damaged in line {number}")
    return kind


def _sendable(records: Iterable[bytes], left_out: list[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines after the header with their numbers, and note those that are too long to be sent."""
    for number, line in enumerate(records, 2):
        if len(line) <= LONGEST:
            yield number, line
        else:
            record = json.loads(line)
            left_out.append(f"line {number} ({record['type']} {record.get('id', '')}), {size(len(line))} of JSON")


def _batches(records: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, list[str]]]:
    """Yield lines that follow each other in parts that one call takes, each with the number of its first line."""
    lines: list[str] = []
    first, total = 2, 0
    for number, line in records:
        if lines and (
            number != first + len(lines) or total + len(line) > MOST_BYTES or len(lines) == limits.MAX_RECORDS
        ):
            yield first, lines
            lines, total = [], 0
        if not lines:
            first = number
        lines.append(line.decode().rstrip("\n"))
        total += len(line)
    if lines:
        yield first, lines
