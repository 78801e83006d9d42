"""`memoryd export`: all that is stored, as lines of JSON or as tables."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from memory_cli.output import as_json, size

from memoryd.cli.command import Client, add_command
from memoryd.cli.snapshots import NotWhole, file_or_pipe
from memoryd.errors import EXIT_DAMAGED, InvalidArgument, StartupError

__all__ = ["CODES", "FORMAT", "Damaged", "add_export_command", "progress", "told"]

CODES = "exit codes: 0 done, 1 failed, 65 the file is damaged or no export"
FORMAT = 1


class Damaged(StartupError):
    """A file is no whole export; the message says why."""

    exit_code = EXIT_DAMAGED


def add_export_command(commands: Any, common: argparse.ArgumentParser, client: Client) -> None:
    """Add the command to a parser; `client` opens a client of the running daemon."""
    command = partial(add_command, commands, common=common, client=client)
    exporting = command(
        "export",
        "write all that is stored, or all of one user, as lines of JSON, or as tables",
        "  memoryd export -o everything.jsonl\n  memoryd export --user alice -o alice.jsonl\n"
        "  memoryd export -o everything.jsonl --resume    (after it was interrupted)\n"
        "  memoryd export --format parquet -o tables      (for analysis; it cannot be imported)\n"
        f"  memoryd export | zstd > everything.jsonl.zst\n\n{CODES}",
        _export,
    )
    exporting.add_argument("--user", metavar="USER", default="", help="what this user has with every agent, alone")
    exporting.add_argument(
        "-o", "--output", metavar="FILE", type=file_or_pipe, help="the file to make; - (the default): standard output"
    )
    exporting.add_argument("--resume", action="store_true", help="go on with FILE.part")
    exporting.add_argument(
        "--format",
        choices=("jsonl", "parquet"),
        default="jsonl",
        help="lines of JSON, or a folder with a Parquet file for each type, to be analysed (default: jsonl)",
    )


# --- export ---


class _Output:
    """A file of lines that is written part by part, with a digest of them."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, hashlib.sha256()
        self.counts: Counter[str] = Counter()
        self.bytes = 0

    def add(self, line: str) -> None:
        data = f"{line}\n".encode()
        self._file.write(data)
        self.know(data)

    def know(self, data: bytes) -> None:
        """Take a line that stands there."""
        self._digest.update(data)
        self.bytes += len(data)
        self.counts[json.loads(data)["type"]] += 1

    def end(self) -> None:
        counts = {name: count for name, count in sorted(self.counts.items()) if name != "header"}
        self.add(json.dumps({"type": "end", "counts": counts, "sha256": self._digest.hexdigest()}))


def _export(client: Client, args: argparse.Namespace) -> int:
    path: Path | None = args.output
    if args.format == "parquet":
        return _export_tables(client, args)
    if args.resume and path is None:
        raise InvalidArgument("name the file that was being written, with -o", field="output")
    if path is None:
        return _export_piped(client, args)
    if not path.name:
        raise InvalidArgument(f"{path} names no file; name a new one", field="output")
    part, noted = path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.cursor")
    if path.exists():
        raise InvalidArgument(f"{path} is there already; name another file", field="output")
    if part.exists() and not args.resume:
        raise InvalidArgument(f"{part} is left of another export; go on with --resume, or remove it", field="output")
    if args.resume and not part.exists():
        raise InvalidArgument(f"{part} is not there: nothing was begun", field="output")
    output = _export_part(client, args, part, noted)
    part.replace(path)
    noted.unlink(missing_ok=True)
    counts = {name: count for name, count in output.counts.items() if name not in {"header", "end"}}
    if args.user and not counts:
        print(f"memoryd: warning: nothing is stored of user {args.user!r}", file=sys.stderr)
    if args.json:
        print(as_json({"file": str(path), "bytes": output.bytes, "counts": counts}))
        return 0
    print(f"{path}: {size(output.bytes)}, {told(counts)}")
    return 0


def _export_piped(client: Client, args: argparse.Namespace) -> int:
    try:
        _write(client, args, _Output(sys.stdout.buffer), "", lambda _: None)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise NotWhole("the reader of standard output has gone: the export is not whole") from None
    return 0


def _export_part(client: Client, args: argparse.Namespace, part: Path, noted: Path) -> _Output:
    """Write a file that has not its name yet, or go on with it."""
    with part.open("r+b" if args.resume else "xb") as file:
        part.chmod(0o600)
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidArgument(f"another export writes {part}", field="output") from None
        if not args.resume:
            noted.unlink(missing_ok=True)
        output = _Output(file)
        cursor = _known(file, noted, output, args.user) if args.resume else ""

        def note(cursor: str) -> None:
            file.flush()
            os.fsync(file.fileno())
            noted.write_text(json.dumps({"cursor": cursor, "bytes": output.bytes, "user": args.user}))

        try:
            _write(client, args, output, cursor, note)
        except BaseException:
            if not noted.exists():  # there is nothing to go on with
                part.unlink()
            raise
        file.flush()
        os.fsync(file.fileno())
    return output


def _export_tables(client: Client, args: argparse.Namespace) -> int:
    """Write a folder with a Parquet file for each type of record; it has its name when all of it is there."""
    from memoryd.cli.tables import write_tables

    path = args.output
    if path is None or args.resume:
        raise InvalidArgument("Parquet is written at once, to a folder: name a new one with -o", field="output")
    if path.exists():
        raise InvalidArgument(f"{path} is there already; name another folder", field="output")
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=path.absolute().parent) as scratch:
        lines = Path(scratch, "lines")
        with lines.open("xb") as file:
            output = _Output(file)
            _write(client, args, output, "", lambda _: None)
        counts = write_tables(lines, Path(scratch, "tables"))
        Path(scratch, "tables").rename(path)
    if args.json:
        print(as_json({"folder": str(path), "counts": counts}))
        return 0
    print(f"{path}: {told(counts)}, in a Parquet file for each type")
    return 0


def _known(file: IO[bytes], noted: Path, output: _Output, user: str) -> str:
    """Read what was written whole, cut the rest off, and return the cursor to go on from. Damaged."""
    try:
        note = json.loads(noted.read_text())
        cursor, whole = str(note["cursor"]), int(note["bytes"])
    except (OSError, ValueError, KeyError):
        raise Damaged(f"{noted} is missing or damaged; remove both files, and begin again") from None
    if note.get("user") != user:
        raise InvalidArgument(f"{file.name} was begun with another --user", field="user")
    try:
        while output.bytes < whole and (line := file.readline()):
            output.know(line)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Damaged(f"{file.name} is cut or damaged; remove it and {noted.name}, and begin again") from None
    if output.bytes != whole:
        raise Damaged(f"{file.name} is shorter than was noted; remove it, and begin again")
    file.seek(whole)
    file.truncate()
    return cursor


def _write(client: Client, args: argparse.Namespace, output: _Output, cursor: str, note: Callable[[str], None]) -> None:
    with client(args) as memory, progress() as show:
        if not cursor:
            info = memory.server_info()
            header = {"type": "header", "format": FORMAT, "memoryd": version("memoryd")}
            output.add(json.dumps({**header, "schema": info.schema_version, "user": args.user}))
        while True:
            part = memory.export_records(cursor, of_user=args.user)
            for line in part.records:
                output.add(line)
            cursor = part.next_cursor
            show(f"{sum(output.counts.values())} lines, {size(output.bytes)}")
            if not cursor:
                break
            note(cursor)
        output.end()


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Show on a terminal how far it is."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        yield lambda text: print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


NAMES = {
    "memory": ("memory", "memories"),
    "entity": ("decision about a person", "decisions about people"),
    "working_memory": ("working memory", "working memories"),
}


def told(counts: Mapping[str, int]) -> str:
    """Return counts by type in words."""
    told = [
        f"{count} {NAMES.get(name, (name, f'{name}s'))[count != 1]}" for name, count in sorted(counts.items()) if count
    ]
    return ", ".join(told) or "nothing"
