"""What `memoryd inspect` does: show pages to the one browser that opens the link."""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memory_cli.common import path_of

from memoryd.cli.chains import chain_row
from memoryd.errors import InvalidArgument
from memoryd.web.listen import Listen

__all__ = ["add_inspect_command"]

EXAMPLES = """examples:
  memoryd inspect
  memoryd inspect --listen 127.0.0.1:8642
  memoryd inspect --listen unix:/run/user/1000/memoryd/inspect.sock --link-file ~/memoryd-link

On another machine, look through SSH: `memoryd inspect --listen 127.0.0.1:8642` there, and here
`ssh -L 8642:127.0.0.1:8642 HOST`; then open the link."""


def add_inspect_command(
    commands: Any,
    common: argparse.ArgumentParser,
    client: Callable[[argparse.Namespace], Any],
) -> None:
    """Add the command to a parser's; it sets `run` to what carries it out."""
    parser = commands.add_parser(
        "inspect",
        parents=[common],
        help="look inside with a browser: memories, searches, people, grants, jobs",
        description="Shows pages on loopback to the one browser that opens the link which it prints; Ctrl-C ends it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--listen", metavar="WHERE", default="127.0.0.1:0", help="127.0.0.1:PORT or unix:/path (any free port)"
    )
    parser.add_argument(
        "--link-file", metavar="FILE", type=path_of, help="write the link there, for this user alone, and not here"
    )
    parser.set_defaults(run=lambda args: _inspect(client, args))


def _inspect(client: Callable[[argparse.Namespace], Any], args: argparse.Namespace) -> int:
    try:
        from memoryd.inspector.app import application
        from memoryd.inspector.entry import Entry
        from memoryd.inspector.figures import Figures
        from memoryd.inspector.sources import Sources
        from memoryd.web.server import run
    except ModuleNotFoundError as error:
        raise InvalidArgument(f"{error.name} is not installed: pip install 'memoryd[server,inspect]'") from None
    from memory_client import AsyncMemoryClient, Credentials

    from memoryd.daemon.wiring import now_utc

    with client(args) as host:
        log = host.server_info().audit_path
        target = host.target
    listen = Listen.read(args.listen)
    sources = Sources(lambda limit, matches: _audit(log, limit, matches), _backups, Figures(now_utc), now_utc)

    def connect() -> AsyncMemoryClient:
        return AsyncMemoryClient(
            target, wait_for_ready=False, credentials=Credentials(), user_id="", chat_id="", agent_id=""
        )

    with listen.opened() as opened:
        port = None if listen.path else opened.getsockname()[1]
        entry = Entry(port, secrets.token_urlsafe, listen.host or "localhost")
        with _told(listen.url_of(opened, entry.path), args.link_file):
            run(application(connect, entry, sources), opened)
    return 0


@contextmanager
def _told(link: str, place: Path | None) -> Iterator[None]:
    """Tell the link as long as the block lasts: here, or in a new file for this user alone."""
    if place is None:
        print(link, flush=True)
        print("memoryd: open the link in a browser; it works once. Ctrl-C ends", file=sys.stderr, flush=True)
        yield
        return
    try:
        with place.open("x", encoding="utf-8") as file:  # the command's umask lets no one else read it
            file.write(f"{link}\n")
    except FileExistsError:
        raise InvalidArgument(f"--link-file {place} is there already; remove it, or name another one") from None
    print(f"memoryd: the link is in {place}; Ctrl-C ends", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        place.unlink(missing_ok=True)


def _audit(log: str, limit: int, matches: Callable[[dict[str, Any]], bool]) -> Sequence[dict[str, Any]]:
    from memoryd.audit.reading import last_records

    if not log:
        raise FileNotFoundError(2, "the audit log is switched off (audit.path)", "audit")
    return last_records(Path(log), limit, matches)


def _backups(folder: str) -> Sequence[Mapping[str, Any]]:
    from memoryd.backup.folder import chains_of, stores_in

    rows: list[dict[str, Any]] = []
    faults = list[str]()
    for store in stores_in(Path(folder)):
        rows += map(chain_row, chains_of(store, faults, in_brief=True))
    return [*rows, *({"fault": fault} for fault in faults)]
