"""The store that a configuration names; no one above knows of what kind it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import cast
from uuid import UUID

from memoryd.model.call_context import Journal
from memoryd.model.measures import NO_MEASURES, Measures
from memoryd.store.base import Downgrade, Spool, Store, StoreCheck
from memoryd.store.ledger import PurgeLedger
from memoryd.store.ram import RamStore
from memoryd.store.refusal import StoreInUse, StoreRefused

__all__ = [
    "ServerOptions",
    "StoreInUse",
    "StoreOptions",
    "StoreRefused",
    "check_store",
    "downgrade_store",
    "migrate_store",
    "open_store",
    "prove_copy",
    "repair_store",
    "rewrite_copy",
    "take_copy",
]

RESTORERS = 2
"""So many threads read what is restored: no one else is served meanwhile."""
Tell = Callable[[int, int], None]
"""Is told how many rows of how many are done, where a start takes long."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a PostgreSQL server is reached; the fields are those of `store.postgres.Settings`."""

    dsn: str
    password_file: Path | None = None
    pool: int = 8
    prepare: bool = True
    statement_timeout_s: float = 30.0
    lock_timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Where a store is, and how much it may take."""

    path: Path | None
    """The database file; None: it lives in memory, and ends with the process."""
    memory_limit_bytes: int = 1 << 30
    min_free_bytes: int = 0
    """Below so much free space on the disk, inserts are refused."""
    ledger: Path | None = None
    """The folder of the ledger of purges; None: it has none."""
    spool: Spool | None = None
    """What of the log is kept for who ships it to a backup; None: no one does."""
    measures: Measures = NO_MEASURES
    server: ServerOptions | None = None
    """The server that holds it instead of a file."""


def _no_one(_: str) -> None:
    """Tell no one."""


def open_store(
    options: StoreOptions,
    *,
    random_bytes: Callable[[int], bytes],
    on_fatal: Callable[[str], None] = _no_one,
    open_journal: Callable[[], Journal | None] = lambda: None,
    tell: Tell = lambda _done, _total: None,
    clock: Callable[[], datetime] | None = None,
) -> Store:
    """
    Open a store, or make it where there is none; StoreRefused, before anything is changed, if it is not what it was.

    `on_fatal` is called, in a thread of the store's, when it can serve no longer. The journal, opened once the store is
    found whole, is told of each change set before it is committed; `tell` of what a start after an upgrade writes anew.
    `clock` is that of this process, for a store on a server, whose leases end by the server's.
    """
    if options.server is not None:
        return _open_postgres(options.server, random_bytes, open_journal, tell, clock)
    if options.path is None:
        return RamStore(random_bytes)
    from memoryd.store import duckdb

    opened = duckdb.open_database(
        options.path, memory_limit_bytes=options.memory_limit_bytes, random_bytes=random_bytes, tell=tell
    )
    ledger = None
    try:
        if options.ledger is not None:
            ledger = PurgeLedger(
                options.ledger,
                opened.store_id,
                duckdb.noted_purge(opened.connection),
                random_bytes=random_bytes,
                history_id=duckdb.history_id(opened.connection),
            )
        return duckdb.DuckDBStore(
            opened,
            min_free_bytes=options.min_free_bytes,
            on_fatal=on_fatal,
            journal=open_journal(),
            ledger=ledger,
            spool=options.spool,
            measures=options.measures,
        )
    except BaseException:
        if ledger is not None:
            ledger.close()
        opened.close()
        raise


def _open_postgres(
    server: ServerOptions,
    random_bytes: Callable[[int], bytes],
    open_journal: Callable[[], Journal | None],
    tell: Tell,
    clock: Callable[[], datetime] | None,
) -> Store:
    postgres = _postgres()
    settings = postgres.Settings(**asdict(server))
    opened = postgres.open_database(settings, random_bytes=random_bytes, tell=tell)
    return cast("Store", postgres.PostgresStore(settings, opened, journal=open_journal(), clock=clock))


def _postgres() -> ModuleType:
    """Return the engine; StoreRefused where what it needs is not installed."""
    try:
        from memoryd.store import postgres
    except ModuleNotFoundError as error:
        raise StoreRefused(
            f"store.engine = \"postgres\" needs {error.name}; run: pip install 'memoryd[postgres]'"
        ) from None
    return postgres


def check_store(options: StoreOptions) -> StoreCheck:
    """
    Read all of a store and change nothing; StoreRefused says what is wrong, StoreInUse that it is being served.

    Of one on a server only the server and the schema are looked at, whoever serves it.
    """
    if options.server is not None:
        postgres = _postgres()
        return cast("StoreCheck", postgres.check_database(postgres.Settings(**asdict(options.server))))
    from memoryd.store import duckdb

    return duckdb.check_database(_path_of(options), memory_limit_bytes=options.memory_limit_bytes)


def migrate_store(options: StoreOptions, *, random_bytes: Callable[[int], bytes]) -> StoreCheck:
    """Bring a store to the schema of this version, as a start would, and read all of it; StoreRefused."""
    from memoryd.store import duckdb

    return duckdb.migrate_database(
        _path_of(options), memory_limit_bytes=options.memory_limit_bytes, random_bytes=random_bytes
    )


def repair_store(options: StoreOptions, *, adopt: bool = False, accept_loss: int | None = None) -> StoreCheck:
    """
    Let a store be served as it is, once all of it was read; StoreRefused.

    With adopt, one whose side file is lost; with accept_loss, one whose last change set has that number.
    """
    from memoryd.store import duckdb

    return duckdb.repair_database(
        _path_of(options), memory_limit_bytes=options.memory_limit_bytes, adopt=adopt, accept_loss=accept_loss
    )


def downgrade_store(options: StoreOptions, *, schema: int | None = None, dry_run: bool = False) -> Downgrade:
    """Go back to the copy from before an upgrade, by default the last; the newer files are kept. StoreRefused."""
    from memoryd.store import duckdb

    return duckdb.downgrade_database(
        _path_of(options), memory_limit_bytes=options.memory_limit_bytes, schema=schema, dry_run=dry_run
    )


def prove_copy(path: Path, store_id: UUID, commit_seq: int, *, memory_limit_bytes: int) -> None:
    """Read all of the files of a backup, which must be this store up to this change set; StoreRefused."""
    from memoryd.store import duckdb

    duckdb.prove_copy(path, store_id, commit_seq, memory_limit_bytes=memory_limit_bytes)


def rewrite_copy(path: Path, target: Path, store_id: UUID, commit_seq: int, *, memory_limit_bytes: int) -> None:
    """Write what the files of a backup hold to a new file, without the bytes of what was purged. StoreRefused."""
    from memoryd.store import duckdb

    duckdb.rewrite_copy(path, target, store_id, commit_seq, memory_limit_bytes=memory_limit_bytes)


def take_copy(
    path: Path,
    store_id: UUID,
    commit_seq: int,
    *,
    memory_limit_bytes: int,
    random_bytes: Callable[[int], bytes],
    closes_sandboxes: bool,
    above: int = 0,
) -> int:
    """
    Make a store that can be served of the files of a backup, once all of it was read; StoreRefused.

    It begins a history of its own: returns the number of its last change set, which no one has seen before.
    """
    from memoryd.store import duckdb

    header = duckdb.prove_copy(path, store_id, commit_seq, memory_limit_bytes=memory_limit_bytes, readers=RESTORERS)
    return duckdb.begin_history(
        path,
        header,
        memory_limit_bytes=memory_limit_bytes,
        random_bytes=random_bytes,
        closes_sandboxes=closes_sandboxes,
        above=above,
    )


def _path_of(options: StoreOptions) -> Path:
    if options.server is not None:
        raise StoreRefused(
            "the memories are in PostgreSQL (store.engine), and not in a file: this command is for files; see"
            " docs/postgres.md"
        )
    if options.path is None:
        raise StoreRefused("a store in memory has no files")
    return options.path
