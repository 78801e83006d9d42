"""What `memoryd` does around an upgrade: tell what the next start would do, and go back to the copy from before it."""

from __future__ import annotations

import argparse
import secrets
import sys
from dataclasses import asdict
from typing import Any

from memory_cli.output import as_json, size

from memoryd.cli.places import settle
from memoryd.cli.upkeep import working

__all__ = ["add_upgrade_commands"]


def add_upgrade_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the commands to a parser; each sets `run` to what carries it out."""
    upgrade = commands.add_parser(
        "upgrade",
        parents=[common],
        help="migrate a stopped store to the schema of this memoryd, as its next start would",
        description="Migrate a stopped store to the schema of this memoryd, as its next start would. A copy of the"
        " database is kept.",
        epilog="examples:\n  memoryd upgrade --dry-run\n  memoryd upgrade --data-dir /var/lib/memoryd\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    upgrade.add_argument("--dry-run", action="store_true", help="only tell from what to what, and what it needs")
    upgrade.set_defaults(run=_upgrade)
    downgrade = commands.add_parser(
        "downgrade",
        parents=[common],
        help="put the copy from before an upgrade back, for the memoryd of before",
        description="Put the copy from before an upgrade back, for the memoryd of before. What was written since is"
        " given up, and kept in files of another name.",
        epilog="examples:\n  memoryd downgrade --dry-run\n  memoryd downgrade --to-schema 16\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    downgrade.add_argument("--dry-run", action="store_true", help="only tell what would be given up")
    downgrade.add_argument("--to-schema", metavar="N", type=int, help="(default: that of before the last upgrade)")
    downgrade.set_defaults(run=_downgrade)
    for parser in (upgrade, downgrade):
        parser.add_argument("--json", action="store_true", help="print JSON")


def _upgrade(args: argparse.Namespace) -> int:
    from memoryd.daemon.store_options import file_options
    from memoryd.store.opening import StoreRefused, check_store, migrate_store

    config, places = settle(args)
    options = file_options(config, places)
    with working("reading"):
        checked = check_store(options)
    if not checked.schema_version:
        raise StoreRefused(f"{places.database} is not there, or empty; name the --data-dir")
    needed = places.database.stat().st_size if checked.migrates else 0
    told = {**asdict(checked), "migrates": checked.migrates, "needed_bytes": needed, "dry_run": args.dry_run}
    which = f"schema {checked.schema_version} to {checked.latest_schema_version}"
    if not checked.migrates:
        line = f"{places.database} has schema {checked.schema_version}, that of this memoryd: there is nothing to do"
    elif args.dry_run:
        line = f"would migrate {which}; the copy that is kept needs {size(needed)}"
    else:
        with working("migrating"):
            migrate_store(options, random_bytes=secrets.token_bytes)
        line = f"migrated {which}; go back with: memoryd downgrade"
    print(as_json(told) if args.json else line)
    return 0


def _downgrade(args: argparse.Namespace) -> int:
    from memoryd.daemon.store_options import file_options
    from memoryd.store.opening import downgrade_store

    config, places = settle(args)
    options = file_options(config, places)
    with working("copying"):
        done = downgrade_store(options, schema=args.to_schema, dry_run=args.dry_run)
    if args.json:
        print(as_json({**asdict(done), "dry_run": args.dry_run}))
        return 0
    lost = done.given_up_seq - done.commit_seq
    span = f"{lost} transactions, {done.commit_seq + 1} to {done.given_up_seq}" if lost > 0 else "no transaction"
    where = f"schema {done.schema_version}, transaction {done.commit_seq}"
    print(f"would go back to {where}, and give up {span}" if args.dry_run else f"went back to {where}; gave up {span}")
    if not args.dry_run:
        print(f"the newer files are kept: {done.kept}*")
        print(
            "what was purged since is in it again: a memoryd that knows the ledger of purges erases it at its start,"
            " an older one does not",
            file=sys.stderr,
        )
    return 0
