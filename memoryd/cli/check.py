"""What `memoryd check` does: look at configuration, model and database, and name all that is wrong at once."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfoNotFoundError

from memory_cli.output import as_json, one_line, size

from memoryd.cli.packages import differing_packages
from memoryd.cli.places import config_path, places_of, with_places
from memoryd.daemon.config import Config
from memoryd.daemon.config_file import read_config
from memoryd.daemon.config_key import ConfigError
from memoryd.errors import EXIT_REFUSED, StartupError
from memoryd.identity.listeners import check_directory
from memoryd.identity.socket_lease import check_apart, check_place
from memoryd.paths import NO_FILE, Places, open_to_others

if TYPE_CHECKING:
    from memoryd.store.base import StoreCheck

__all__ = ["add_check_command"]

# The packages that the daemon needs are imported where they are used: --help starts at once.


def add_check_command(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to a parser's; it sets `run` to what carries it out."""
    parser = commands.add_parser(
        "check",
        parents=[common],
        help="check configuration, model and database",
        description="Look at configuration, packages, model and database without starting or changing anything; all"
        " that is wrong is named at once, at the end. A database in a folder that cannot be written is read, too.",
        epilog="examples:\n  memoryd check\n  memoryd check --quiet && systemctl restart memoryd\n"
        "  memoryd check --config /etc/memoryd/memoryd.toml --json\n"
        "  memoryd check --data-dir /mnt/backup --migrate    (what a start would do, now)\n\n"
        "exit codes: 0 all is well, 75 the embedding endpoint is down, 78 the daemon would not start",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_check)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quiet", action="store_true", help="say only what is wrong")
    changing = parser.add_mutually_exclusive_group()
    changing.add_argument(
        "--migrate", action="store_true", help="bring the database to the schema of this version; a copy is kept"
    )
    changing.add_argument("--adopt", action="store_true", help="take a database as it is whose side file is lost")
    changing.add_argument(
        "--accept-loss", metavar="SEQ", type=int, help="go on with a database that ends at this transaction"
    )


class _Faults:
    """What is wrong, as far as it was looked at."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.exit_code = 0

    def add(self, problem: str, exit_code: int = EXIT_REFUSED) -> None:
        """Note a fault; what starting again does not mend weighs more than what may pass."""
        if problem not in self.said:
            self.said.append(problem)
        self.exit_code = max(self.exit_code, exit_code)

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Go on after a refusal, which is noted."""
        try:
            yield
        except ConfigError as error:
            for fault in error.faults:
                self.add(fault)
        except StartupError as error:
            self.add(str(error), error.exit_code)
        except (OSError, ZoneInfoNotFoundError) as error:
            self.add(str(error))


def _check(args: argparse.Namespace) -> int:
    faults = _Faults()
    config, wrong = read_config(config_path(args), os.environ)
    for problem in wrong:
        faults.add(problem)
    places = places_of(args, config)
    tell = _nothing if args.json or args.quiet else print
    for line in _key_lines(config):
        tell(line)
    tell(f"\nsocket    {places.socket}")
    seen = {"model": _model(config, faults), "llm": _llm(config, faults)}
    _rest(config, faults)
    checked = None
    with faults.noting():
        checked = _database(args, config, places)
        seen["database"] = _told(checked, config, places)
        if checked is not None and checked.store_id:
            _ledger(places, checked.store_id, faults)
    if checked is not None:  # no daemon serves it, which would listen there
        with faults.noting():
            _refuse_taken(config)
    _doors(config, places, faults)
    _files(config, places, faults)
    shipping = list[str]()
    with faults.noting():
        from memoryd.daemon.backups import check_backups

        shipping = check_backups(config, checked.store_id if checked is not None else "")
    packages = differing_packages()
    warnings = [warning] if (warning := open_to_others(places.database.parent)) else []
    warnings += shipping
    warnings += [f"other packages than those that were tested: {', '.join(map(str, packages))}"] if packages else []
    for name, problem in seen.items():
        if problem:
            tell(f"{name:<9} {problem}")
    if args.json:
        report: dict[str, Any] = {
            "config": _keys(config),
            "database": str(places.database),
            "socket": str(places.socket),
        }
        report["store"] = None if checked is None else {**asdict(checked), "migrates": checked.migrates}
        report["packages"] = [package._asdict() for package in packages]
        print(as_json({**report, "warnings": warnings, "faults": faults.said}))
    sys.stdout.flush()
    if not args.json:
        for warning in warnings:
            print(f"memoryd: warning: {warning}", file=sys.stderr)
        for problem in faults.said:
            print(f"memoryd: {one_line(with_places(problem, args))}", file=sys.stderr)
    return faults.exit_code


def _ledger(places: Places, store_id: str, faults: _Faults) -> None:
    """Look whether a start would take the ledger of purges, where there is one."""
    from memoryd.store.ledger import LINES, check_ledger

    if (places.ledger / LINES).exists():
        with faults.noting():
            check_ledger(places.ledger, store_id)


def _doors(config: Config, places: Places, faults: _Faults) -> None:
    """Look at where the sockets will be."""
    doors = [(places.socket, "--socket")]
    if config.shared.socket:
        doors.append((Path(config.shared.socket), "shared.socket"))
    for path, key in doors:
        with faults.noting():
            check_place(path, key)
    with faults.noting():
        check_apart(places.socket, config.shared.socket)
    with faults.noting():
        check_directory(places.sandboxes)


def _refuse_taken(config: Config) -> None:
    """Raise StartupError where figures could not be read, as something else listens there."""
    from memoryd.daemon.metrics import check_metrics

    address = check_metrics(config)
    if address is not None:
        from memoryd.metrics.endpoint import refuse_taken

        refuse_taken(address)


def _files(config: Config, places: Places, faults: _Faults) -> None:
    """Look whether the daemon can write where its files will be; what lies in a folder that was named is not."""
    shared = Path(config.shared.socket).parent if config.shared.socket else None
    figures = Path(config.metrics.listen).parent if config.metrics.listen.startswith("/") else None
    named: list[Path] = []
    for what, path, key in (
        ("the folder of the database,", places.database.parent, "--data-dir"),
        ("the folder of the socket,", places.socket.absolute().parent, "--socket"),
        ("the folder of the shared socket,", shared, "shared.socket"),
        ("the folder of sandboxes,", places.sandboxes, "sandbox.directory"),
        ("the folder of the socket of figures,", figures, "metrics.listen"),
        ("the file of the audit log,", places.audit, "audit.path"),
    ):
        if path is None or any(path.is_relative_to(folder) for folder in named):
            continue
        try:
            why = _obstacle(path, is_folder=key != "audit.path")
        except OSError as error:
            why = str(error.strerror).lower()
        if why:
            faults.add(f"{what} {path}, cannot be written: {why}; name another {key}")
            named.append(path)


def _obstacle(path: Path, *, is_folder: bool) -> str:
    """Return why something cannot be written where it is, or made with the folders that it lies in; "" if it can."""
    if path.exists():
        if path.is_dir() != is_folder:
            return "it is a file" if is_folder else "it is a folder"
        if not is_folder and (path.is_symlink() or not path.is_file()):
            return NO_FILE
        wanted = os.W_OK | os.X_OK if is_folder else os.W_OK
        return "" if os.access(path, wanted) else "permission denied"
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        return f"{above} is a file"
    return "" if os.access(above, os.W_OK | os.X_OK) else f"permission denied in {above}"


def _nothing(_: str) -> None:
    """Say nothing."""


def _keys(config: Config) -> list[dict[str, Any]]:
    keys: list[dict[str, Any]] = [
        {"key": f"{key.section}.{key.name}", "value": key.value, "default": key.default, "unit": key.unit}
        for key in config.entries()
    ]
    return keys + [
        {"key": f"agents.{agent}.{section}.{name}", "value": value}
        for agent, values in config.agents.items()
        for (section, name), value in values.items()
    ]


def _key_lines(config: Config) -> Iterator[str]:
    for key in config.entries():
        changed = "" if key.value == key.default else f" (default {key.default!r})"
        value = size(key.value) if key.unit == "bytes" else f"{key.value!r}{f' {key.unit}' if key.unit else ''}"
        yield f"{key.section}.{key.name} = {value}{changed}: {key.meaning}"
    for agent, values in config.agents.items():
        for (section, name), value in values.items():
            yield f"agents.{agent}.{section}.{name} = {value!r}"


def _model(config: Config, faults: _Faults) -> str:
    from memoryd.daemon.wiring import make_embedder

    with faults.noting():
        embedder = make_embedder(config)
        embedder.close()
        if not embedder.fingerprint:
            return 'none: search is by words alone; embedding.provider = "builtin" needs no network'
        return f"{embedder.provider}, {embedder.dimensions} dimensions: loads and passes its self-test"
    return ""


def _llm(config: Config, faults: _Faults) -> str:
    from memoryd.daemon.learners import make_endpoint

    with faults.noting():
        endpoint = make_endpoint(config)
        return "" if endpoint is None else f"{endpoint.model}: it is not asked here"
    return ""


def _rest(config: Config, faults: _Faults) -> None:
    """Look at what only has to be there: schedule, extractor, finders of names, readers, the files of the TCP door."""
    from memoryd.daemon.learners import make_extractor
    from memoryd.daemon.metrics import check_metrics
    from memoryd.daemon.readers import load_every_finder, make_answer_reader, make_change_reader
    from memoryd.daemon.schedule import expressions_of
    from memoryd.daemon.servers import server_credentials
    from memoryd.daemon.traces import check_traces
    from memoryd.daemon.wiring import make_reranker

    readers = make_reranker, make_answer_reader, make_change_reader
    for look in (expressions_of, check_metrics, check_traces, make_extractor, load_every_finder, *readers):
        with faults.noting():
            look(config)
    if config.tcp.listen and config.tcp.certificate_file and config.tcp.key_file:
        with faults.noting():
            server_credentials(config)


def _database(args: argparse.Namespace, config: Config, places: Places) -> StoreCheck | None:
    """Read all of the database, and change what was asked for; None while a daemon serves it."""
    from memoryd.daemon.store_options import file_options, store_options
    from memoryd.store.opening import StoreInUse, check_store, migrate_store, repair_store

    options = store_options(config, places)
    if args.migrate or args.adopt or args.accept_loss is not None:
        options = file_options(config, places)
    if args.migrate:
        return migrate_store(options, random_bytes=secrets.token_bytes)
    if args.adopt or args.accept_loss is not None:
        return repair_store(options, adopt=args.adopt, accept_loss=args.accept_loss)
    try:
        return check_store(options)
    except StoreInUse:
        return None


def _told(checked: StoreCheck | None, config: Config, places: Places) -> str:
    """Return what the database is like, in words."""
    if checked is not None and config.store.engine == "postgres":
        if not checked.schema_version:
            return "the server answers; the tables will be made at the first start"
        schema = f"schema {checked.schema_version}"
        if checked.migrates:
            schema += f", which this memoryd would migrate to {checked.latest_schema_version} at the start"
        return f"the server answers; {schema}"
    if checked is None:
        return f"{places.database} is in use by a running memoryd, so it was not looked at"
    if not checked.schema_version:
        return f"{places.database} will be made at the first start"
    whole = f"{places.database}: whole, up to transaction {checked.commit_seq}"
    if checked.migrates:
        return (
            f"{whole}; schema {checked.schema_version}, which this memoryd would migrate to"
            f" {checked.latest_schema_version} at the start"
        )
    return f"{whole}; its filter terms would be written anew" if checked.rewrites_filter_terms else whole
