"""
What `memoryd init` does: make a first setup for the user who runs it, and say what to try.

It asks nothing, and whatever is there already stays as it is: run it again after each step. What it prints to be run
names the same places and the same user as the command itself was given.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memory_cli.main import login_name
from memory_cli.output import as_json
from memory_client.endpoint import MAX_SOCKET_PATH_BYTES
from memory_mcp.parser import HOSTS

from memoryd import paths
from memoryd.cli.first_grant import FirstGrant
from memoryd.cli.places import options_of, places_of, settle
from memoryd.daemon.config import Config
from memoryd.errors import InvalidArgument
from memoryd.model.validation import check_id

__all__ = ["add_init_command"]

EXAMPLES = """examples:
  memoryd init
  memoryd init --dry-run
  memoryd init --for alice --host cursor"""
CONFIG = """\
# memoryd's configuration; every key with its value: memoryd check; what each means: docs/reference/keys.md

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
ExecStart={command}
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
MOST_WAIT_S = 3600
ID_BYTES = 26  # of the name of a sandbox's folder
MOST_NAME = 200  # characters of a user in the name of a file
STARTING_S = 30.0  # for a daemon that was begun just before


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

    def make(self, what: str, path: Path, text: str, mode: int = 0o600) -> bool:
        """Write a file unless it is there, and return whether it was; its folder is made for this user alone."""
        if os.path.lexists(path):
            self.note(what, path, "there")
            return True
        if not self.dry_run:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
                file.write(text)
        self.note(what, path, "made")
        return False


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
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=_seconds,
        default=0.0,
        help="wait so long for a daemon that is being started (0)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be made")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=lambda args: _init(client, args))


def _seconds(text: str) -> float:
    """Return a time to wait; ValueError for none."""
    seconds = float(text)
    if not 0 <= seconds <= MOST_WAIT_S:
        raise ValueError(text)
    return seconds


def _init(client: Callable[[argparse.Namespace], Any], args: argparse.Namespace) -> int:
    login = login_name()
    user = check_id(args.user or login, "user_id")
    if not user:
        raise InvalidArgument("there is no login name; say --for USER", field="user_id")
    for name in ("config", "data_dir", "socket"):
        if getattr(args, name) is not None:
            setattr(args, name, getattr(args, name).absolute())
    again, named = options_of(args), args.config
    config_path = (named or paths.config_home(os.environ) / "memoryd.toml").absolute()
    setup = Setup(args.dry_run)
    socket = (args.socket or paths.socket_path(os.environ)).absolute()
    shared = socket.parent / "shared" / "memory.sock"
    try:
        where = _make(setup, args, config_path, socket, shared)
    except OSError as error:
        raise InvalidArgument(
            f"{error.filename}: {error.strerror}; set HOME to a folder of this user's, or name other places:"
            " --config, --data-dir, --socket",
            field="config",
        ) from None
    is_served = _serve(setup, args, named, os.environ)
    whose = "" if user == login else f"-{_named_after(user)}"
    first = FirstGrant(setup, client, args, config_path.parent / f"token{whose}", user)
    if not first.settle(max(args.wait, STARTING_S) if is_served and not args.dry_run else args.wait):
        for_user = f" --for {shlex.quote(user)}" if args.user else ""
        host = "" if args.host == "claude" else f" --host {args.host}"
        setup.next += [*([] if is_served else [f"{_printed('memoryd')} serve{again} &"]),
                       f"{_printed('memoryd')} init --wait {STARTING_S:.0f}{for_user}{host}{again}"]  # fmt: skip
    _say_mcp(setup, args.host, first.token_file, f"unix://{where}")
    _say_next(setup, args, "" if user == login else f" --user {shlex.quote(user)}", again)
    return _tell(setup, in_json=args.json)


def _named_after(user: str) -> str:
    """Return a part of a file's name for a user."""
    plain = quote(user, safe="")
    return plain if len(plain) <= MOST_NAME else hashlib.blake2b(user.encode(), digest_size=16).hexdigest()


def _make(setup: Setup, args: argparse.Namespace, config_path: Path, socket: Path, shared: Path) -> Path:
    """Make the configuration and the folders; return where the shared socket will be."""
    text = CONFIG.format(socket=_toml(shared), metrics=str(_is_installed("prometheus_client")).lower())
    if os.path.lexists(config_path) and not config_path.is_file():
        raise InvalidArgument(f"{config_path} is no file; name another one with --config", field="config")
    for path in (socket, shared, places_of(args, Config()).sandboxes / ("x" * ID_BYTES) / "memory.sock"):
        if len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
            raise InvalidArgument(
                f"{path} is longer than the {MAX_SOCKET_PATH_BYTES} bytes of a socket's path; name a shorter --socket",
                field="socket",
            )
    is_there = setup.make("configuration", config_path, text)
    args.config = config_path if config_path.exists() else None
    config, places = settle(args)
    for what, folder in (("folder of the database", places.database.parent), ("folder of sockets", socket.parent)):
        if folder.is_dir():
            setup.note(what, folder, "there")
            continue
        if not args.dry_run:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        setup.note(what, folder, "made")
    if is_there and not config.shared.socket:
        line = f"set [shared] socket = {_toml(shared)} in {config_path}, and restart memoryd"
        setup.note("shared socket", line, "waits")
    for folder in dict.fromkeys((config_path.parent, socket.parent)):
        others = paths.open_to_others(folder) if folder.is_dir() else ""
        if others:
            setup.note("folder that others may write", f"{folder}: {others}", "waits")
    return Path(config.shared.socket or shared).absolute()


def _toml(path: Path) -> str:
    """Return a path as a string of TOML; InvalidArgument for one that is no text."""
    from memory_mcp.snippets import toml_text

    text = toml_text(str(path))
    try:
        tomllib.loads(f"x = {text}")
        text.encode()
    except (tomllib.TOMLDecodeError, UnicodeEncodeError):
        raise InvalidArgument(f"{str(path)!r} is no text in UTF-8; name another --socket", field="socket") from None
    return text


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _tool(name: str) -> str:
    """Return the absolute path of a command that was installed with this one; its bare name where there is none."""
    own = Path(shutil.which(sys.argv[0]) or sys.argv[0]).absolute().with_name(name)
    return str(own) if os.access(own, os.X_OK) and own.is_file() else shutil.which(name) or name


def _printed(name: str) -> str:
    """Return a command as it is typed: its name where the shell finds it, else its path."""
    return name if shutil.which(name) else shlex.quote(_tool(name))


def _may_go(command: str) -> bool:
    return bool(PASSING & set(Path(command).parts))


def _serve(setup: Setup, args: argparse.Namespace, config: Path | None, env: Mapping[str, str]) -> bool:
    """Make a service of this user where systemd is, and start it; return whether it runs, or will."""
    if args.data_dir or args.socket:
        setup.note("service", "none is made for --data-dir or --socket: memoryd serve starts it", "waits")
        return False
    if not _systemd(["is-system-running"], env):
        setup.note("service", "systemd is not this user's service manager here", "waits")
        return False
    command = _tool("memoryd")
    if _may_go(command):
        setup.note("service", f"{command} may go at any time; install memoryd first (pipx install …)", "waits")
        return False
    unit = paths.config_home(env).parent / "systemd" / "user" / "memoryd.service"
    words = [command, "serve", *(["--config", str(config)] if config else [])]
    setup.make("service", unit, UNIT.format(command=" ".join(map(_word_of_systemd, words))), 0o644)
    if setup.dry_run or _systemd(["is-active", "memoryd.service"], env) == "active":
        return True
    _systemd(["daemon-reload"], env)
    _systemd(["enable", "--now", "memoryd.service"], env)
    is_up = _systemd(["is-active", "memoryd.service"], env) == "active"
    setup.note("daemon", "systemctl --user status memoryd", "started" if is_up else "waits")
    return is_up


def _word_of_systemd(word: str) -> str:
    """Return a word of a command as systemd.service(5) reads it: in quotes, its signs taken as they are."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != word or any(sign in word for sign in " '\t;") else word


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


def _say_mcp(setup: Setup, host: str, token_file: Path, endpoint: str) -> None:
    """Note what a host of MCP needs."""
    from memory_mcp.snippets import Entry, snippet

    command = _tool("memory-mcp")
    if _may_go(command):
        setup.note("command of the snippet", f"{command} may go at any time; install memoryd first", "waits")
    entry = Entry(command=command, environment={"MEMORY_ENDPOINT": endpoint, "MEMORY_TOKEN_FILE": str(token_file)})
    setup.snippet, setup.snippet_place = snippet(host, entry)


def _say_next(setup: Setup, args: argparse.Namespace, whose: str, again: str) -> None:
    """Note what to try: as the host, at the socket that was named."""
    where = f" --endpoint unix://{shlex.quote(str(args.socket))}" if args.socket is not None else ""
    setup.next += [
        f'{_printed("memory")} add{whose}{where} "I\'m allergic to peanuts"',
        f'{_printed("memory")} search{whose}{where} "What should I avoid eating?"',
    ]
    if _is_installed("jinja2"):
        setup.next.append(f"{_printed('memoryd')} inspect{again}")


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
