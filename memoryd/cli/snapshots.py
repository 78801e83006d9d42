"""What `memoryd` does with snapshots: write one to a file or a pipe, and read one for a restore."""

from __future__ import annotations

import argparse
import fcntl
import io
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from memory_cli.common import path_of
from memory_cli.output import as_json, moment, size
from memory_cli.parser import parse_past

from memoryd.cli.chains import place_of_copies, read_store
from memoryd.cli.places import settle
from memoryd.cli.upkeep import working
from memoryd.errors import InvalidArgument, StartupError

if TYPE_CHECKING:
    from types import FrameType

    from memoryd.backup.encryption import Identity

__all__ = [
    "NotWhole",
    "a_clean_end",
    "add_snapshot_command",
    "file_or_pipe",
    "identity_of",
    "unpacked_if_packed",
    "until",
]

PIPE = "-"


def identity_of(args: argparse.Namespace) -> Identity | None:
    """Read the identities that open what is encrypted; None: none is named. StartupError."""
    from memoryd.backup.encryption import read_identities

    return read_identities(args.identity) if args.identity else None


class NotWhole(StartupError):
    """What was to be written could not be written to its end; the message says why."""

    exit_code = 1


def file_or_pipe(text: str) -> Path | None:
    """Return the file that is named; None for -, which is standard output."""
    return None if text == PIPE else path_of(text)


def until(text: str) -> datetime:
    """Return the time that `90m` lies back or a date says; a minute lasts to its end."""
    time = parse_past(text)
    is_minute = re.search(r"[T ]\d\d:?\d\d(?![:\d])", text) is not None
    return time + timedelta(seconds=59, microseconds=999_999) if is_minute else time


_stopped = threading.Event()
"""That the command was told to end: what a signal raises is lost where it comes in a finalizer."""


def a_clean_end(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Let a stop by a signal end a command as Ctrl-C does, so that no copy of the database is left."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        _stopped.set()
        raise KeyboardInterrupt

    def ended(args: argparse.Namespace) -> int:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, stop)
        try:
            return run(args)
        except RuntimeError as error:  # what DuckDB makes of an interrupt
            if "interrupt" in str(error).lower():
                raise KeyboardInterrupt from None
            raise

    return ended


class _Pipe(io.RawIOBase):
    """Standard output; once a write has failed nothing more is written, so that no one waits for a reader."""

    def __init__(self) -> None:
        self._failed = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data)
        if not self._failed:
            try:
                left = view
                while left:
                    if _stopped.is_set():
                        raise KeyboardInterrupt  # noqa: TRY301  once more
                    left = left[os.write(1, left) :]
            except BaseException as error:
                self._failed = True
                if isinstance(error, BrokenPipeError):
                    raise NotWhole("the reader of standard output has gone: the snapshot is not whole") from None
                raise
        return len(view)


@contextmanager
def _written(name: str) -> Iterator[IO[bytes]]:
    """Open what a snapshot is written to; a file has its name only once it is whole and on disk."""
    from memoryd.store.durable import put_in_place

    if name == PIPE:
        if sys.stdout is None or sys.stdout.isatty():
            raise InvalidArgument("a snapshot is no text for a terminal; name a file, or pipe it on", field="output")
        yield _Pipe()  # type: ignore[misc]  # what a stream of tar writes to
        return
    if not name:
        raise InvalidArgument("--output is empty; name a file, or - for standard output", field="output")
    path = path_of(name)
    part = path.with_name(f"{path.name}.part")
    if path.exists() or path.is_symlink():
        raise InvalidArgument(f"{path} is there; name another file", field="output")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidArgument(f"another snapshot writes {part}", field="output") from None
        try:
            file.truncate()  # of one that was cut short
            yield file
            file.flush()
            put_in_place(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def add_snapshot_command(command: Callable[..., Any]) -> Any:
    """Add the command; `command` makes its parser."""
    parser = command(
        "snapshot", "write one state as one file (tar), for an archive or to be piped on",
        "  memoryd backup snapshot /backup -o memoryd.tar\n"
        "  memoryd backup snapshot /backup -o - | age -R recipients.txt > memoryd.tar.age\n"
        "  age -d -i key.txt memoryd.tar.age | memoryd restore - --data-dir /srv/m\n", _snapshot,
    )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the new file; -: standard output")
    return parser


def _snapshot(args: argparse.Namespace) -> int:
    from memoryd.backup.folder import point_of
    from memoryd.backup.ledgers import ledger_of
    from memoryd.backup.snapshot import write_snapshot

    config, _ = settle(args)
    store, chains = read_store(args.folder)
    chain, point = point_of(chains, transaction=args.transaction, time=args.at)
    chain.unlock(identity_of(args))
    limit, where = config.store.memory_limit_bytes, place_of_copies(chain, Path(tempfile.gettempdir()))
    with _written(args.output) as out, working("writing a snapshot"):
        ledger = ledger_of(store, ())
        count = write_snapshot(chain, point, ledger, out, memory_limit_bytes=limit, where=where)
    told = {"chain": str(chain.folder), "transaction": point.commit_seq, "time": point.time, "database_bytes": count}
    line = f"transaction {point.commit_seq} of {moment(point.time)}, {size(count)}: every block could be read"
    print(as_json(told) if args.json else line, file=sys.stderr if args.output == PIPE else sys.stdout)
    return 0


@contextmanager
def unpacked_if_packed(args: argparse.Namespace) -> Iterator[None]:
    """Let the command see a folder of backups where a snapshot was named; `is_snapshot` says that it was."""
    folder: Path = args.folder
    is_piped = str(folder) == PIPE
    args.is_snapshot = is_piped or (folder.exists() and not folder.is_dir())
    with ExitStack() as stack:
        if args.is_snapshot:
            from memoryd.backup.snapshot import unpacked

            source = sys.stdin.buffer if is_piped else stack.enter_context(folder.open("rb"))
            name = "standard input" if is_piped else str(folder)
            args.chain_name = name
            args.folder = stack.enter_context(unpacked(source, args.data_dir.absolute(), name))
        yield
