"""What `memoryd` does with backups: take one of a stopped store, list, verify and prune them, and restore."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import secrets
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_cli.common import path_of
from memory_cli.output import as_json, moment, one_line, size

from memoryd.cli.chains import chain_row, place_of_copies, read_chains, read_store, unledgered
from memoryd.cli.command import add_parser
from memoryd.cli.places import settle
from memoryd.cli.snapshots import a_clean_end, add_snapshot_command, identity_of, unpacked_if_packed, until
from memoryd.cli.upkeep import working
from memoryd.errors import InvalidArgument

if TYPE_CHECKING:
    from memoryd.backup.chain import Chain, Point
    from memoryd.backup.encryption import Identity

__all__ = ["add_backup_commands"]

CODES = "exit codes: 0 done, 1 failed, 65 a file of the backup is damaged or missing, 78 refused"
# The packages that the daemon needs are imported where they are used: --help starts at once.


def add_backup_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the commands to a parser; each sets `run` to what carries it out."""

    def command(
        of: Any, name: str, summary: str, examples: str, run: Callable[[argparse.Namespace], int] | None
    ) -> Any:
        parser = add_parser(of, name, summary, f"{examples}\n{CODES}", [common] if run else [])
        if run is not None:
            parser.add_argument("--json", action="store_true", help="print JSON")
            parser.set_defaults(run=a_clean_end(run))
        return parser

    group = command(
        commands,
        "backup",
        "take, list, verify and prune backups, and write one as a file",
        "  memoryd backup list /backup\n  memoryd backup verify /backup\n"
        "  memoryd jobs run backup    (of the running daemon, to backup.directory)\n",
        None,
    )
    actions = group.add_subparsers(dest="action", metavar="ACTION", required=True)
    take = command(
        actions, "take", "take a backup of a store that is not served; the daemon takes its own (backup.directory)",
        "  memoryd backup take /backup --data-dir /var/lib/memoryd\n"
        "  memoryd backup take /backup --data-dir /var/lib/memoryd --encrypt-to recipients.txt\n", _take,
    )  # fmt: skip
    listing = command(
        actions, "list", "list the chains of a folder, and which states they lead to",
        "  memoryd backup list /backup\n  memoryd backup list /backup --json\n", _list,
    )  # fmt: skip
    verify = command(
        actions, "verify", "read every file of every chain, and restore the last state as a trial",
        "  memoryd backup verify /backup\n  memoryd backup verify /backup --identity key.txt\n", _verify,
    )  # fmt: skip
    pruning = command(
        actions, "prune", "remove chains that are too old, whole; the newest and the last proved one stay",
        "  memoryd backup prune /backup --keep-days 30 --dry-run\n", _prune,
    )  # fmt: skip
    pruning.add_argument("--keep-days", metavar="N", type=int, help="(default: backup.keep_days)")
    pruning.add_argument("--dry-run", action="store_true", help="only show what would go")
    snapshot = add_snapshot_command(partial(command, actions))
    restoring = command(
        commands, "restore", "make a data directory of a backup, as the store was after one of its transactions",
        "  memoryd restore /backup --data-dir /var/lib/memoryd-restored --dry-run\n"
        "  memoryd restore /backup --data-dir /srv/m --at 2026-11-28T17:30\n"
        "  memoryd restore /backup --data-dir /srv/m --transaction 48213\n"
        "  memoryd restore memoryd.tar --data-dir /srv/m    (a snapshot; -: from standard input)\n", _restore,
    )  # fmt: skip
    for parser in (snapshot, restoring):
        point = parser.add_mutually_exclusive_group()
        point.add_argument(
            "--at", metavar="TIME", type=until, help="the last state up to a time (local, if it names no zone)"
        )
        point.add_argument("--transaction", metavar="N", type=int, help="the last state up to a transaction")
    restoring.add_argument("--dry-run", action="store_true", help="only restore as a trial; nothing is left of it")
    restoring.add_argument(
        "--ledger", metavar="DIR", type=path_of, help="a newer ledger of purges than that of the backup, if it is left"
    )
    restoring.add_argument(
        "--reopen-sandboxes", action="store_true", help="let the doors of sandboxes be opened at the first start"
    )
    restoring.add_argument(
        "folder", metavar="DIR|FILE", type=path_of, help="the folder of backups, or that of one store, or a snapshot"
    )
    take.add_argument(
        "--encrypt-to", metavar="FILE", type=path_of,
        help="recipients of age (age1…, ssh-…), one a line; needs the extra encryption (default:"
        " backup.encrypt_recipients_file)",
    )  # fmt: skip
    for parser in (verify, snapshot, restoring):
        parser.add_argument(
            "--identity", metavar="FILE", type=path_of, action="append", default=[],
            help="what opens a chain that is encrypted, as of age -i; it may be given again",
        )  # fmt: skip
    for parser in (take, listing, verify, pruning, snapshot):
        parser.add_argument("folder", metavar="DIR", type=path_of, help="the folder of backups, or that of one store")


def _list(args: argparse.Namespace) -> int:
    from memoryd.backup.folder import stores_in

    chains = [chain for folder in stores_in(args.folder.resolve()) for chain in read_chains(folder, in_brief=True)]
    rows = [chain_row(chain) for chain in chains]
    if args.json:
        print(as_json({"chains": rows}))
        return 0
    for row in rows:
        print(row["chain"])
        if row["first_time"] is None:
            print("  no state is complete yet")
            continue
        if row["reason"]:
            print(f"  begun because {one_line(row['reason'])}")
        print(
            f"  transaction {row['first_transaction']} of {moment(row['first_time'])} to {row['last_transaction']} of"
            f" {moment(row['last_time'])}, {row['state_count']} states, {size(row['stored_bytes'])}"
        )
        for recipient in row["recipients"]:
            print(f"  encrypted for {one_line(recipient)}")
        proof = row["proved_time"]
        print(f"  proved up to {row['proved_transaction']}, {moment(proof)}" if proof else "  not proved yet")
    return 0


def _try(chain: Chain, point: Point, memory_limit_bytes: int, elsewhere: Path) -> None:
    """Restore a state as a trial; in `elsewhere`, if it cannot be done next to the chain."""
    from memoryd.backup.folder import prove

    with working("restoring as a trial"):
        prove(chain, point, memory_limit_bytes=memory_limit_bytes, where=place_of_copies(chain, elsewhere))


def _verify(args: argparse.Namespace) -> int:
    from memoryd.backup.folder import stores_in

    config, _ = settle(args)
    identity = identity_of(args)
    stores = stores_in(args.folder.resolve())
    found = [_verify_history(store, identity, config.store.memory_limit_bytes) for store in stores]
    if args.json:
        rows = [row for one in found for row in one["chains"]]
        total = {name: sum(one[name] for one in found) for name in ("read_bytes", "ledger_lines")}
        each = [{**one, "chains": len(one["chains"])} for one in found]
        print(as_json({"chains": rows, **total, "proved": found[-1]["proved"], "histories": each}))
        return 0
    for store, one in zip(stores, found, strict=True):
        if len(stores) > 1:
            print(store)
        told = f"{len(one['chains'])} chains, {size(one['read_bytes'])}, and a ledger of {one['ledger_lines']} lines"
        print(f"{told}: every file is what was written")
        if one["proved"] is None:
            print("not restored as a trial: the chain is encrypted, name what opens it: --identity", file=sys.stderr)
            continue
        reached = f"transaction {one['proved']}, {moment(one['proved_time'])}"
        print(f"restored as a trial up to {reached}: every block could be read")
    return 0


def _verify_history(store: Path, identity: Identity | None, memory_limit_bytes: int) -> dict[str, Any]:
    """Read all chains of a history and its ledger, and restore the last state as a trial, if it can be read."""
    from memoryd.backup.folder import ledger_key_of, mark_of_chains, point_of
    from memoryd.backup.ledgers import LEDGER, check_copy, check_mark

    chains = read_chains(store, strict=True)
    with working("reading"):
        read = sum(count for chain in chains for count in chain.check())
        chain, point = point_of(chains)
        is_tried = identity is not None or not chain.is_encrypted
        if is_tried:
            chain.unlock(identity)
        key = ledger_key_of(chain) if is_tried else None
        lines = check_copy(store / LEDGER, chain.header["store_id"], key, is_sealed=not is_tried)
        check_mark(store / LEDGER, mark_of_chains(chains))
    if is_tried:
        _try(chain, point, memory_limit_bytes, Path(tempfile.gettempdir()))
    for warning in unledgered(chains):
        print(f"memoryd: warning: {warning}", file=sys.stderr)
    proved = {"proved": point.commit_seq, "proved_time": point.time} if is_tried else {"proved": None}
    return {"chains": [chain_row(chain) for chain in chains], "read_bytes": read, "ledger_lines": lines, **proved}


def _prune(args: argparse.Namespace) -> int:
    from memoryd.backup.folder import prune

    config, _ = settle(args)
    _, chains = read_store(args.folder, in_brief=True)
    keep_days = config.backup.keep_days if args.keep_days is None else args.keep_days
    if keep_days < 0:
        raise InvalidArgument(f"--keep-days is {keep_days}; it is at least 0", field="keep_days")
    gone = prune(chains, now=datetime.now(UTC), keep=timedelta(days=keep_days), dry_run=args.dry_run)
    if args.json:
        rows = [{"chain": str(pruned.chain.folder), "bytes": pruned.bytes} for pruned in gone]
        print(as_json({"removed": rows, "kept": len(chains) - len(gone), "dry_run": args.dry_run}))
        return 0
    verb = "would remove" if args.dry_run else "removed"
    for pruned in gone:
        print(f"{verb} {pruned.chain.folder}, {size(pruned.bytes)}")
    print(f"{len(chains) - len(gone)} of {len(chains)} chains {'would stay' if args.dry_run else 'stay'}")
    return 0


def _take(args: argparse.Namespace) -> int:
    config, places = settle(args)

    recipients = str(args.encrypt_to or config.backup.encrypt_recipients_file)

    async def take() -> Point:
        from memoryd.backup.folder import history_folder
        from memoryd.backup.shipper import Shipper
        from memoryd.daemon.backups import encryption_of, header_of
        from memoryd.daemon.store_options import file_options
        from memoryd.daemon.wiring import now_utc
        from memoryd.store.base import Spool
        from memoryd.store.opening import StoreRefused, check_store, open_store

        spool = Spool(config.backup.spool_bytes, now_utc)
        options = file_options(config, places, ledger=places.ledger, spool=spool)
        checked = check_store(options)
        if not checked.schema_version or checked.migrates:
            raise StoreRefused(
                f"{places.database} is not there; name the --data-dir"
                if not checked.schema_version
                else f"{places.database} has schema {checked.schema_version}; migrate it first: memoryd check --migrate"
            )
        store = open_store(options, random_bytes=secrets.token_bytes)
        try:
            info = await store.info()
            assert store.files is not None  # noqa: S101  it has a path
            shipper = Shipper(
                store.files.shipping,
                history_folder(args.folder.absolute(), info.store_id, info.history_id),
                places.ledger,
                header_of(info),
                now_utc,
                encryption_of(recipients, places.database),
            )
            await shipper.begin_chain()
            point = await shipper.prove(options.memory_limit_bytes)
        finally:
            await store.close()
        await shipper.finish()
        return point

    from memoryd.store.refusal import StoreInUse

    try:
        with working("copying"):
            point = asyncio.run(take())
    except StoreInUse as error:
        fact = str(error).partition(";")[0]
        way = "memoryd jobs run backup" if config.backup.directory else "set backup.directory, and restart it"
        raise StoreInUse(f"{fact}, which takes its own backups; {way}") from None
    if args.json:
        print(as_json({"transaction": point.commit_seq, "time": point.time}))
    else:
        print(f"transaction {point.commit_seq}: stored, restored as a trial, and every block could be read")
    return 0


def _restore(args: argparse.Namespace) -> int:
    if args.data_dir is None:
        raise InvalidArgument("name the folder to make, with --data-dir", field="data_dir")
    with unpacked_if_packed(args):
        return _restore_of(args)


def _restore_of(args: argparse.Namespace) -> int:
    from memoryd.backup.folder import (
        chains_of,
        histories,
        ledger_key_of,
        mark_of_chains,
        point_of,
        refuse_target,
        restore,
    )
    from memoryd.backup.ledgers import LEDGER, ledger_of, refuse_ledger

    config, _ = settle(args)
    store, chains = read_store(args.folder)
    chain, point = point_of(chains, transaction=args.transaction, time=args.at)
    _unlock(chain, chains, identity_of(args))
    limit = config.store.memory_limit_bytes
    named = args.chain_name if args.is_snapshot else str(chain.folder)
    told = {"chain": named, "transaction": point.commit_seq, "time": point.time, "dry_run": args.dry_run}
    target = args.data_dir.absolute()
    others = [folder for folder in histories(store.parent, chain.header["store_id"]) if folder != store]
    if args.is_snapshot and config.backup.directory:
        others += histories(Path(config.backup.directory), chain.header["store_id"])
    ledger = args.ledger or ledger_of(store, others)
    warnings = _warned(args, ledger, store, chains)
    if args.dry_run:
        refuse_target(target)
        key, mark = ledger_key_of(chain), mark_of_chains(chains)
        refuse_ledger(ledger, store / LEDGER, chain.header["store_id"], key, mark)
        _try(chain, point, limit, next(folder for folder in target.parents if folder.is_dir()))
        line = f"would restore transaction {point.commit_seq} of {moment(point.time)}; every block can be read"
        _say(args, {**told, "warnings": warnings}, line)
        return 0
    every = [*chains, *(later for folder in others for later in chains_of(folder, [], in_brief=True))]
    with working("restoring"):
        now = restore(
            chain,
            point,
            target,
            ledger,
            memory_limit_bytes=limit,
            random_bytes=secrets.token_bytes,
            closes_sandboxes=not args.reopen_sandboxes,
            above=max(one.points[-1].commit_seq for one in every if one.points),  # all up to these were given
        )
    line = f"{target}: transaction {point.commit_seq} of {moment(point.time)}, numbered from {now + 1} on from now"
    closed = not args.reopen_sandboxes
    more = {"data_dir": str(target), "next_transaction": now + 1, "sandboxes_closed": closed, "warnings": warnings}
    _say(args, {**told, **more}, line)
    if not args.json:
        if not warnings:
            print("what was purged later is erased by the first start, before it serves", file=sys.stderr)
        if not args.reopen_sandboxes:
            named = f" --config {shlex.quote(str(args.config))}" if args.config else ""
            serve = f"memoryd serve{named} --data-dir {shlex.quote(str(target))} --reopen-sandboxes"
            print(f"the doors of sandboxes stay closed until: {serve}", file=sys.stderr)
    return 0


def _warned(args: argparse.Namespace, ledger: Path, store: Path, chains: Sequence[Chain]) -> list[str]:
    """Return, and say, why something that was purged may be back after a restore."""
    warnings = unledgered(chains)
    if args.is_snapshot and ledger.is_relative_to(store):
        warnings.append(
            "what was purged after this snapshot was made is not known here, and is back; where there is a newer ledger"
            " of the store, restore with: --ledger BACKUP/STORE_ID/ledger"
        )
    for warning in warnings:
        print(f"memoryd: warning: {warning}", file=sys.stderr)
    return warnings


def _unlock(chain: Chain, chains: Sequence[Chain], identity: Identity | None) -> None:
    """Get ready to read a chain; NotForUs names the way to an earlier one that the identity opens, if there is any."""
    from memoryd.backup.refusal import NotForUs

    try:
        chain.unlock(identity)
    except NotForUs as error:
        for other in reversed(chains if identity is not None else ()):
            before = [point.commit_seq for point in other.points if point.commit_seq < chain.points[0].commit_seq]
            if before and _opens(identity, other):
                raise NotForUs(f"{error}; it opens {other.folder.name}: --transaction {before[-1]}") from None
        raise


def _opens(identity: Identity | None, chain: Chain) -> bool:
    from memoryd.backup.refusal import NotForUs

    with contextlib.suppress(NotForUs):
        chain.unlock(identity)
        return True
    return False


def _say(args: argparse.Namespace, told: dict[str, Any], line: str) -> None:
    print(as_json(told) if args.json else line)
