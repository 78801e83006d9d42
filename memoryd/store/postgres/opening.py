"""Opening a database: what of a server is refused, the schema, and what is noted of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Any

import psycopg

from memoryd.errors import Unavailable
from memoryd.model import filter_terms
from memoryd.store import rows
from memoryd.store.base import StoreCheck
from memoryd.store.postgres.connect import NOTE_GENERATION, SCHEMA, Row, Settings
from memoryd.store.postgres.heads import LOCK_CLASS, LOCKS
from memoryd.store.postgres.queries import select_memories
from memoryd.store.refusal import StoreRefused

__all__ = ["MIGRATIONS", "Opened", "check_database", "open_database"]

LEAST_VERSION = 15
MIGRATIONS = ("schema.sql",)
"""Each brings a database to the schema of its place, counted from 1."""
MIGRATION_LOCK_S = 60
PAGE = 2048  # memories whose filter terms are written in one transaction
Tell = Callable[[int, int], None]
"""Is told how many memories of how many have their terms, while they are written anew."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A database that may be served."""

    store_id: str
    secret: bytes
    schema_version: int
    warnings: tuple[str, ...]


def open_database(
    settings: Settings,
    *,
    random_bytes: Callable[[int], bytes],
    tell: Tell = lambda _done, _total: None,
) -> Opened:
    """
    Look at the server, bring the schema up, and return what is noted of the store; StoreRefused.

    `tell` is told of what a start after an upgrade writes anew.
    """
    with _connected(settings) as con:
        with con.transaction():
            warnings = _looked_at(con)
            version = _migrate(con, random_bytes)
            warnings += _noted_generation(con)
        _refresh_filter_terms(con, tell)
        noted = dict(con.execute("SELECT name, value FROM meta").fetchall())
    return Opened(noted["store_id"], bytes.fromhex(noted["secret"]), version, warnings)


def check_database(settings: Settings) -> StoreCheck:
    """Look at the server and at the schema, and change nothing; StoreRefused."""
    with _connected(settings) as con, con.transaction(force_rollback=True):
        _looked_at(con)
        if _one(con, f"SELECT to_regclass('{SCHEMA}.meta') IS NULL"):
            return StoreCheck(0, 0, len(MIGRATIONS), rewrites_filter_terms=False)
        noted = dict(con.execute("SELECT name, value FROM meta").fetchall())
        seq = int(_one(con, "SELECT coalesce(sum(commit_seq), 0) FROM heads"))
    is_older = noted["filter_terms"] != str(filter_terms.VERSION)
    version = int(noted["schema_version"])
    return StoreCheck(seq, version, len(MIGRATIONS), rewrites_filter_terms=is_older, store_id=noted["store_id"])


@contextmanager
def _connected(settings: Settings) -> Iterator[psycopg.Connection[Row]]:
    """Hold a connection; StoreRefused for whatever the server says."""
    try:
        with psycopg.connect(settings.dsn, autocommit=True, **settings.parameters) as con:
            yield con
    except psycopg.Error as error:
        told = str(error).strip().splitlines()
        raise StoreRefused(f"store.dsn: {told[0] if told else type(error).__name__}") from None
    except Unavailable as error:
        raise StoreRefused(error.message) from None


def _one(con: psycopg.Connection[Row], sql: str) -> Any:
    row = con.execute(sql.encode()).fetchone()
    return None if row is None else row[0]


def _looked_at(con: psycopg.Connection[Row]) -> tuple[str, ...]:
    """Raise StoreRefused for a server that cannot keep what is promised; return what an operator should look at."""
    if con.info.server_version < LEAST_VERSION * 10_000:
        raise StoreRefused(
            f"PostgreSQL {con.info.server_version // 10_000} is too old; {LEAST_VERSION} or later is needed"
        )
    encoding = _one(con, "SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreRefused(f"the database has the encoding {encoding}; make one with ENCODING 'UTF8'")
    if _one(con, "SELECT lower('É') <> 'é'"):
        raise StoreRefused(
            "lower('É') is not 'é' in the database, so people would not be found in what names them; make one with"
            " LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' TEMPLATE template0 (17 and later), or LOCALE 'C.UTF-8'"
        )
    if _one(con, "SHOW fsync") == "off":
        raise StoreRefused("the server runs with fsync = off: what is acknowledged may be lost; switch it on")
    if not con.info.host.startswith("/") and not con.pgconn.ssl_in_use:
        raise StoreRefused(
            "the connection is not encrypted; add sslmode=verify-full to store.dsn, or use a Unix socket"
        )
    if _one(con, "SELECT pg_is_in_recovery()"):
        raise StoreRefused("the server is a standby, which only reads; name the primary in store.dsn")
    warnings = []
    if _one(con, "SHOW synchronous_commit") == "off":
        warnings.append(
            "synchronous_commit is off: what was acknowledged within the last second may be lost in a crash"
        )
    if _one(
        con,
        "SELECT count(*) > 0 AND count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) = 0 FROM pg_stat_replication",
    ):
        warnings.append("no standby is synchronous: a failover may lose what was acknowledged last")
    return tuple(warnings)


def _migrate(con: psycopg.Connection[Row], random_bytes: Callable[[int], bytes]) -> int:
    """Bring the schema up, as one of however many daemons start; return its version."""
    con.execute("SELECT set_config('lock_timeout', %s, true)", [f"{MIGRATION_LOCK_S}s"])
    con.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK_CLASS, LOCKS["migrations"]])
    if _one(con, f"SELECT to_regclass('{SCHEMA}.meta') IS NULL"):
        con.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
        version = 0
    else:
        version = int(_one(con, "SELECT value FROM meta WHERE name = 'schema_version'"))
    if version > len(MIGRATIONS) + 1:
        raise StoreRefused(
            f"the database has schema {version}, and this version of memoryd knows {len(MIGRATIONS)}; run a later one"
        )
    for number, name in enumerate(MIGRATIONS, 1):
        if number > version:
            con.execute(resources.files(__package__).joinpath(name).read_bytes(), prepare=False)  # many at once
    if not version:
        made = {
            "store_id": random_bytes(16).hex(), "secret": random_bytes(32).hex(), "feed_base": "0",
            "filter_terms": str(filter_terms.VERSION),
        }  # fmt: skip
        for name, value in made.items():
            con.execute("INSERT INTO meta VALUES (%s, %s)", [name, value])
    version = max(version, len(MIGRATIONS))
    con.execute(
        "INSERT INTO meta VALUES ('schema_version', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [str(version)],
    )
    return version


def _noted_generation(con: psycopg.Connection[Row]) -> tuple[str, ...]:
    """Let all be read anew where this is another history than that of before; return what an operator should know."""
    con.execute(NOTE_GENERATION)
    if _one(con, "SELECT generation() LIKE '?/%'"):
        return ("which cluster this is cannot be read: grant pg_monitor to the role, or do not restore into another",)
    return ()


def _refresh_filter_terms(con: psycopg.Connection[Row], tell: Tell) -> None:
    """
    Write the filter terms of all memories anew, if those of an older version are stored; one daemon at a time.

    Page by page; the version is noted after the last one, so that after a crash all are written again.
    """
    if _one(con, "SELECT value FROM meta WHERE name = 'filter_terms'") == str(filter_terms.VERSION):
        return
    con.execute("SELECT pg_advisory_lock(%s, %s)", [LOCK_CLASS, LOCKS["filter terms"]])  # until the connection ends
    total, done, after = int(_one(con, "SELECT count(*) FROM memories")), 0, ("", "")
    source = (
        "(SELECT * FROM memories WHERE (owner_id::text, id) > (%s, %s)"
        f' ORDER BY owner_id::text COLLATE "C", id LIMIT {PAGE})'
    )
    select = select_memories(source, "m.facets", "m.owner_id::text", "m.id")
    while page := con.execute(f'{select} ORDER BY m.owner_id::text COLLATE "C", m.id'.encode(), after).fetchall():
        changed = [
            (owner_id, memory_id, new)
            for *row, old, owner_id, memory_id in page
            if (new := rows.facets_text(rows.memory_of(row))) != old
        ]
        if changed:
            con.execute(
                "UPDATE memories AS m SET facets = c.facets FROM unnest(%s::uuid[], %s::text[], %s::text[])"
                " AS c(owner_id, id, facets) WHERE m.owner_id = c.owner_id AND m.id = c.id",
                list(map(list, zip(*changed, strict=True))),
            )
        after = page[-1][-2:]
        done += len(page)
        tell(done, total)
    con.execute("UPDATE meta SET value = %s WHERE name = 'filter_terms'", [str(filter_terms.VERSION)])
