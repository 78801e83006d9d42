"""What `memoryd` does for an operator: serve, check, status, gc, and what `identity.py` and `upkeep.py` add."""

from __future__ import annotations

import argparse
import errno
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memory_cli.common import path_of
from memory_cli.helpful_parser import Parser, WrongUsage, refuse_early
from memory_cli.output import as_json, error_json, moment, size

from memoryd import paths
from memoryd.cli.audit import add_audit_command
from memoryd.cli.backups import add_backup_commands
from memoryd.cli.check import add_check_command
from memoryd.cli.conversations import add_conversation_commands
from memoryd.cli.http import add_http_command
from memoryd.cli.identity import add_identity_commands
from memoryd.cli.imports import add_import_command
from memoryd.cli.init import add_init_command
from memoryd.cli.inspect import add_inspect_command
from memoryd.cli.jobs import add_job_commands
from memoryd.cli.places import config_path, places_of, settle, with_places
from memoryd.cli.review import add_review_commands
from memoryd.cli.transfer import add_export_command
from memoryd.cli.upgrade import add_upgrade_commands
from memoryd.cli.upkeep import add_upkeep_commands
from memoryd.daemon.config_file import load_config
from memoryd.errors import InvalidArgument, MemorydError, StartupError

__all__ = ["make_parser", "run"]

EXIT_USAGE = 2
PATIENCE_S = 10.0
LONG_WORK_S = 3600.0  # what goes through many memories
# The daemon and the packages it needs are imported where they are used: what only asks the daemon starts at once.


def _version() -> str:
    return importlib.metadata.version("memoryd")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    parser = Parser(
        prog="memoryd",
        description="The memory of AI agents: one daemon on the host.",
        epilog="examples:\n  memoryd serve\n  memoryd check --config /etc/memoryd/memoryd.toml\n"
        "  memoryd status --json\n  memoryd gc --dry-run\n"
        "  memoryd sandbox open --user alice --chat team-7 --allow add,search,context --ttl 8h\n"
        "  memoryd audit --outcome refused --since 1h\n\n"
        "exit codes: 0 done, 1 failed, 2 wrong usage, 3 no memory ever had the id (verify),"
        " 70 the database failed (start again),"
        " 75 the embedding endpoint is down"
        " (start again later),"
        " 78 refused to start (starting again would not help)",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"memoryd {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    common = Parser(add_help=False)
    common.add_argument(
        "--config", metavar="FILE", type=path_of, help="TOML file (default: memoryd.toml where XDG says)"
    )
    common.add_argument("--data-dir", metavar="DIR", type=path_of, help="where the database is")
    common.add_argument("--socket", metavar="PATH", type=path_of, help="the admin socket")

    def command(name: str, text: str, examples: str, parents: Sequence[Parser] = (common,)) -> Any:
        return commands.add_parser(
            name,
            parents=list(parents),
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    serving = command(
        "serve",
        "run the daemon in the foreground",
        "  memoryd serve\n  memoryd serve --config /etc/memoryd/memoryd.toml\n"
        "  memoryd serve --data-dir ~/memories --socket /run/user/1000/memoryd/admin.sock\n",
    )
    serving.set_defaults(run=_serve)
    serving.add_argument(
        "--reopen-sandboxes",
        action="store_true",
        help="open the doors of sandboxes again, which stay closed after a restore from a backup",
    )
    add_init_command(commands, common, _client)
    add_check_command(commands, common)
    add_backup_commands(commands, common)
    add_upgrade_commands(commands, common)
    status = command(
        "status", "ask the running daemon how it fares", "  memoryd status\n  memoryd status --json | jq .warnings\n"
    )
    status.set_defaults(run=_status)
    status.add_argument("--json", action="store_true", help="print JSON")
    gc = command("gc", "erase what is past its grace", "  memoryd gc --dry-run\n  memoryd gc\n")
    gc.add_argument("--dry-run", action="store_true", help="only count it")
    gc.add_argument(
        "--clock-is-right", action="store_true", help="the clock is right, however far it has gone forward: go on"
    )
    gc.add_argument("--json", action="store_true", help="print JSON")
    gc.set_defaults(run=_gc)
    add_upkeep_commands(commands, common, _client)
    add_export_command(commands, common, _client)
    add_import_command(commands, common, _client)
    add_review_commands(commands, common, _client)
    add_job_commands(commands, common, _client)
    add_conversation_commands(commands, common, _client)
    add_identity_commands(commands, common, _client)
    add_audit_command(commands, common, _audit_path)
    add_inspect_command(commands, common, _client)
    add_http_command(commands, common)
    completion = command(
        "completion",
        "print the completion script of a shell",
        "  memoryd completion bash > ~/.local/share/bash-completion/completions/memoryd\n"
        "  memoryd completion fish > ~/.config/fish/completions/memoryd.fish\n",
        parents=(),
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    completion.set_defaults(run=_completion)
    return parser


def _serve(args: argparse.Namespace) -> int:
    from memoryd.daemon.logs import set_up_logs
    from memoryd.daemon.serve import serve

    config, places = settle(args)
    set_up_logs(config.daemon.log_format, config.daemon.log_level)
    return serve(config, places, os.environ, _version(), reopens_sandboxes=args.reopen_sandboxes)


LONG = frozenset(
    {
        "users",
        "gc",
        "jobs",
        "consolidate",
        "reflect",
        "grant",
        "decay",
        "enrich",
        "compact",
        "verify",
        "user",
        "export",
        "import",
    }
)
"""Commands that may take long."""


def _client(args: argparse.Namespace) -> Any:
    """Return a client of the socket that was named, else of the first that is there."""
    from memory_client import Credentials, MemoryClient

    config = load_config(config_path(args), os.environ)
    named = args.socket or config.daemon.socket
    candidates = [Path(named)] if named else list(paths.socket_candidates(os.environ))
    path = paths.find_socket(candidates)
    timeout_s = LONG_WORK_S if args.command in LONG else PATIENCE_S
    # no token: on the admin socket it would only take away what the host may do
    client = MemoryClient(
        f"unix://{path.absolute()}", wait_for_ready=False, timeout_s=timeout_s, credentials=Credentials()
    )
    if getattr(args, "data_dir", None) is not None:
        try:
            _refuse_another(client.server_info().store_path, places_of(args, config).database, path)
        except BaseException:
            client.close()
            raise
    return client


def _refuse_another(served: str, named: Path, socket: Path) -> None:
    """Raise InvalidArgument where the daemon serves another database than the one that was named."""
    if Path(served).resolve() != named.resolve():
        raise InvalidArgument(
            f"the daemon at {socket} serves {served}, not {named}; name the --socket of the one that does, or leave out"
            " --data-dir",
            field="data_dir",
        )


def _audit_path(args: argparse.Namespace) -> Path | None:
    """Return where the log is: of the daemon that runs, unless another one is named."""
    if args.config is None and args.data_dir is None:
        try:
            with _client(args) as client:
                audit_path = client.server_info().audit_path
        except MemorydError:
            pass  # the daemon is stopped; its log is where the configuration says
        else:
            return Path(audit_path) if audit_path else None
    return settle(args)[1].audit


def _completion(args: argparse.Namespace) -> int:
    from memory_cli.completion import script

    print(script("memoryd.cli", "memoryd", args.shell), end="")
    return 0


def _status(args: argparse.Namespace) -> int:
    with _client(args) as client:
        info = client.server_info()
    if args.json:
        print(as_json(info))
        return 0
    print(f"memoryd {info.version}, up {str(info.uptime).partition('.')[0]}, {size(info.rss_bytes)} resident")
    print(f"store     {info.store_path}: {info.memory_count} memories, {size(info.store_bytes)},"
          f" transaction {info.commit_seq}, schema {info.schema_version}, id {info.store_id}")  # fmt: skip
    embedded = info.memory_count - info.unembedded_count
    vectors = f"{info.embedding_dimensions} dimensions, {embedded} of {info.memory_count} memories have a vector"
    print(f"embedding {info.embedding_provider}, {vectors if info.embedding_fingerprint else 'search by words alone'}")
    waiting = f", {info.unembedded_message_count} wait for a vector" if info.unembedded_message_count else ""
    print(f"messages  {info.message_count}{waiting}")
    print(f"index     {info.index_scopes} scopes, {size(info.index_bytes)}")
    waited_ms = info.max_loop_lag.total_seconds() * 1e3
    print(f"waiting   {waited_ms:.0f} ms at the most for the event loop, in the last minute")
    print(f"sandboxes {info.sandbox_count} open; audit log {info.audit_path or 'switched off'}")
    if info.backup_path:
        shipped = "nothing shipped since the start"
        if info.backup_shipped_time:
            shipped = f"shipped at {moment(info.backup_shipped_time)}"
        proved = ", not proved yet" if info.backup_shipped_time else ""  # before, it was not looked at
        if info.backup_proved_time:
            proved = f", proved at {moment(info.backup_proved_time)}"
        print(f"backup    {info.backup_path}: {shipped}{proved}")
    for warning in info.warnings:
        print(f"warning   {with_places(warning, args)}")
    return 0


def _gc(args: argparse.Namespace) -> int:
    with _client(args) as client:
        report = client.run_gc(dry_run=args.dry_run, clock_is_right=args.clock_is_right)
    if args.json:
        print(as_json(report))
        return 0
    if report.held:
        print(f"{'would be held back' if report.dry_run else 'nothing was erased'}: {report.held}", file=sys.stderr)
        if not report.dry_run:
            return 1
    verb = "would erase" if report.dry_run else "erased"
    print(f"{verb} {report.deleted_count} deleted, {report.superseded_count} superseded and {report.expired_count}"
          f" expired memories, {report.note_count} expired notes, {report.request_count} request ids and"
          f" {report.grant_count} ended grants")  # fmt: skip
    return 0


def _fault_of_system(error: OSError) -> str:
    """Return in one line what the system has refused, and the way out where there is one."""
    if isinstance(error, PermissionError) and error.filename is not None:
        place = Path(str(error.filename))
        owner = paths.owner_of(place)
        return f"this user may not use {place}; run as {owner}: sudo -u {owner} memoryd …"
    if error.errno == errno.ENOSPC and not error.filename:
        return "no space is left where the command writes: its target, the folder of backups, or $TMPDIR"
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def run(argv: Sequence[str]) -> int:
    """Run the command and return its exit code; what was refused is said in one line."""
    parser = make_parser()
    try:
        refuse_early(parser, argv)
        args = parser.parse_args(argv)
    except WrongUsage as usage:
        return _tell(usage, EXIT_USAGE, in_json="--json" in argv, reason="WRONG_USAGE", program=usage.program)
    os.umask(0o077)  # whatever is written is for this user alone
    in_json = getattr(args, "json", False)
    try:
        code: int = args.run(args)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone; that is no error
        return 0
    except OSError as error:
        return _tell(_fault_of_system(error), 1, in_json=in_json, reason="SYSTEM")
    except paths.NoHomeError as error:
        return _tell(f"{error}: --config, --data-dir, --socket", EXIT_USAGE, in_json=in_json, reason="WRONG_USAGE")
    except StartupError as refusal:
        return _tell(with_places(str(refusal), args), refusal.exit_code, in_json=in_json, reason="REFUSED_TO_START")
    except MemorydError as error:
        error.message = with_places(error.message, args).replace("name another endpoint", "name its --socket")
        return _tell(error, EXIT_USAGE if isinstance(error, InvalidArgument) else 1, in_json=in_json)
    except KeyboardInterrupt:
        return 130
    return code


def _tell(error: object, code: int, *, in_json: bool, reason: str = "", program: str = "memoryd") -> int:
    """Say on standard error what failed, as people or programs read it, and return the exit code."""
    canonical = "INVALID_ARGUMENT" if code == EXIT_USAGE else "FAILED_PRECONDITION"
    text = error_json(error, canonical, reason)
    print(text if in_json else f"{program}: {getattr(error, 'message', str(error))}", file=sys.stderr)
    return code
