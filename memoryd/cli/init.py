"""
What `memoryd init` does: make a first setup for the user who runs it, and say what to try.

It asks nothing, and whatever is there already stays as it is: run it again after each step.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_cli.main import login_name
from memory_cli.output import as_json
from memory_mcp.parser import HOSTS

from memoryd import paths
from memoryd.cli.places import settle
from memoryd.errors import InvalidArgument, MemorydError

__all__ = ["add_init_command"]

EXAMPLES = """examples:
  memoryd init
  memoryd init --dry-run
  memoryd init --for alice --host cursor"""
CONFIG = """\
# memoryd's configuration; every key with its default: memoryd check --help, docs/configuration.md

[shared]
# where programs with a token reach the daemon
socket = {socket}

[metrics]
# figures for `memoryd metrics` and the plots of `memoryd inspect`
enabled = {metrics}
"""
UNIT = """\
[Unit]
Description=memoryd, the memory of AI agents
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={command} serve
Restart=on-failure
RestartPreventExitStatus=78
RestartSec=2
WatchdogSec=30
TimeoutStopSec=60
LimitNOFILE=65536
MemoryHigh=2560M
MemoryMax=3G
Environment=MALLOC_ARENA_MAX=2 ORT_DISABLE_TELEMETRY=1
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""
PASSING = frozenset({"archive-v0", ".cache"})  # folders of what uvx and pipx run have unpacked for once
SYSTEMD_S = 20  # for each question to the service manager


@dataclass
class Setup:
    """What there is of a setup, and what was made of it."""

    dry_run: bool
    steps: list[dict[str, str]] = field(default_factory=list)
    next: list[str] = field(default_factory=list)
    snippet: str = ""
    snippet_place: str = ""

    def note(self, what: str, where: object, became: str) -> None:
        """Note a step: made, there, started or waits; in a dry run, what would become of it."""
        if self.dry_run and became in {"made", "started"}:
            became = "would be made" if became == "made" else "would be started"
        self.steps.append({"what": what, "where": str(where), "became": became})

    def make(self, what: str, path: Path, text: str, mode: int = 0o600) -> None:
        """Write a file unless it is there; its folder is made for this user alone."""
        if path.exists():
            self.note(what, path, "there")
            return
        if not self.dry_run:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
                file.write(text)
        self.note(what, path, "made")


def add_init_command(
    commands: Any, common: argparse.ArgumentParser, client: Callable[[argparse.Namespace], Any]
) -> None:
    """Add the command to a parser's; it sets `run` to what carries it out."""
    parser = commands.add_parser(
        "init",
        parents=[common],
        help="make a first setup: folders, configuration, service, a grant, what a host of MCP needs",
        description="Makes a first setup for the user who runs it, asks nothing, and leaves alone what is there"
        " already. Run it again once the daemon runs: it then makes the first grant.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--for", dest="user", metavar="USER", default="", help="whose memory it is (the login name)")
    parser.add_argument("--host", choices=HOSTS, default="claude", help="which host of MCP is told (%(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be made")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=lambda args: _init(client, args))


def _init(client: Callable[[argparse.Namespace], Any], args: argparse.Namespace) -> int:
    user = args.user or login_name()
    if not user:
        raise InvalidArgument("there is no login name; say --for USER", field="user_id")
    config_path = args.config or paths.config_home(os.environ) / "memoryd.toml"
    setup = Setup(args.dry_run)
    socket = args.socket or paths.socket_path(os.environ)
    shared = socket.absolute().parent / "shared" / "memory.sock"
    setup.make(
        "configuration", config_path, CONFIG.format(socket=json.dumps(str(shared)), metrics=str(_has_metrics()).lower())
    )
    if config_path.exists():
        args.config = config_path
    config, places = settle(args)
    for what, folder in (("folder of the database", places.database.parent), ("folder of sockets", socket.parent)):
        if folder.is_dir():
            setup.note(what, folder, "there")
            continue
        if not args.dry_run:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        setup.note(what, folder, "made")
    _serve(setup, args, os.environ)
    token_file = config_path.parent / "token"
    where = config.shared.socket or str(shared)
    _grant(setup, client, args, user=user, token_file=token_file)
    whose = "" if user == login_name() else f" --user {shlex.quote(user)}"
    _say_mcp(setup, args.host, token_file, f"unix://{Path(where).absolute()}", whose)
    return _tell(setup, in_json=args.json)


def _has_metrics() -> bool:
    try:
        import prometheus_client  # noqa: F401  whether it is there
    except ImportError:
        return False
    return True


def _command() -> str:
    """Return this command, as a service starts it."""
    return shutil.which(sys.argv[0]) or shutil.which("memoryd") or str(Path(sys.argv[0]).absolute())


def _serve(setup: Setup, args: argparse.Namespace, env: Mapping[str, str]) -> None:
    """Make a service of this user where systemd is, and start it; else say how the daemon is started."""
    if args.data_dir or args.socket:
        setup.note("service", "none, as places were named", "there")
        return
    if not _systemd(["is-system-running"], env):
        setup.note("service", "systemd is not this user's service manager here", "waits")
        return
    command = _command()
    if PASSING & set(Path(command).parts):
        setup.note("service", f"{command} may go at any time; install memoryd first (pipx install …)", "waits")
        return
    unit = paths.config_home(env).parent / "systemd" / "user" / "memoryd.service"
    setup.make("service", unit, UNIT.format(command=shlex.quote(command)), 0o644)
    if setup.dry_run or _systemd(["is-active", "memoryd.service"], env) == "active":
        return
    _systemd(["daemon-reload"], env)
    _systemd(["enable", "--now", "memoryd.service"], env)
    is_up = _systemd(["is-active", "memoryd.service"], env) == "active"
    setup.note("daemon", "systemctl --user status memoryd", "started" if is_up else "waits")


def _systemd(words: list[str], env: Mapping[str, str]) -> str:
    """Return what this user's service manager answers; "" where there is none."""
    command = shutil.which("systemctl", path=env.get("PATH"))
    if command is None or "XDG_RUNTIME_DIR" not in env:
        return ""
    try:
        done = subprocess.run(  # noqa: S603  words of our own
            [command, "--user", *words], capture_output=True, text=True, timeout=SYSTEMD_S, check=False, env=dict(env)
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = done.stdout.strip()
    return "" if said in {"offline", "unknown", ""} and done.returncode else said or "done"


def _grant(
    setup: Setup,
    client: Callable[[argparse.Namespace], Any],
    args: argparse.Namespace,
    *,
    user: str,
    token_file: Path,
) -> None:
    """Make the first grant, and keep its token in a file for this user alone; it waits where no daemon answers."""
    if token_file.exists():
        setup.note("token of the first grant", token_file, "there")
        return
    try:
        with client(args) as host:
            host.server_info()
            if setup.dry_run:
                setup.note("token of the first grant", token_file, "made")
                return
            from memory_client import GrantSpec, check_permissions

            spec = GrantSpec(
                user_id=user, permissions=check_permissions(["full"]), label="first grant, of memoryd init"
            )
            setup.make("token of the first grant", token_file, f"{host.issue_token(spec).token}\n")
    except MemorydError:
        setup.note("token of the first grant", "needs the daemon", "waits")
        setup.next += ["memoryd serve &", "memoryd init"]


def _say_mcp(setup: Setup, host: str, token_file: Path, endpoint: str, whose: str) -> None:
    """Note what a host of MCP needs, and what to try."""
    from memory_mcp.snippets import Entry, snippet

    command = shutil.which("memory-mcp") or "memory-mcp"
    entry = Entry(command=command, environment={"MEMORY_ENDPOINT": endpoint, "MEMORY_TOKEN_FILE": str(token_file)})
    setup.snippet, setup.snippet_place = snippet(host, entry)
    setup.next += [
        f'memory add{whose} "I\'m allergic to peanuts"',
        f'memory search{whose} "What should I avoid eating?"',
        "memoryd inspect",
    ]


def _tell(setup: Setup, *, in_json: bool) -> int:
    if in_json:
        told = {"steps": setup.steps, "mcp": {"place": setup.snippet_place, "snippet": setup.snippet}}
        print(as_json({**told, "try": setup.next, "dry_run": setup.dry_run}))
        return 0
    width = max(len(step["became"]) for step in setup.steps)
    for step in setup.steps:
        print(f"{step['became']:<{width}}  {step['what']}: {step['where']}")
    print(f"\nfor a host of MCP, {setup.snippet_place}:\n\n{setup.snippet}")
    print("try this:\n" + "\n".join(f"  {line}" for line in setup.next))
    return 0
